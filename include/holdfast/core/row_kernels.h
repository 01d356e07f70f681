// Loops over the rows of a batch that a GPU runs as one kernel each. A dozen small tensor operations are a dozen requests to a
// GPU, and each takes longer than its arithmetic.
//
// Such a loop is written once, in a file *.kernel.h, for a block of rows: the CPU runs it as plain C++, and on a GPU CUDA's
// run-time compiler (NVRTC, which comes with torch) makes a kernel of the same text. So tests on the CPU run what a GPU runs.
//
//     HOLDFAST_EACH(i, count) { ... }   for all i < count, side by side in the threads of a block; the rounds must not depend on
//                                       each other
//     HOLDFAST_WAIT                     all of them are done before the next loop begins
//
// Tensor operations that do the same stay the reference, and are what runs where no kernel can be made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "holdfast/core/stages.h"

namespace at {
class Tensor;
}

namespace holdfast {

class RowKernel {
 public:
  // Threads of a block on a GPU, a multiple of what a loop calls lanes.
  static constexpr int kThreads = 256;
  // Bytes that a block may have for what its threads share.
  static constexpr std::int64_t kMostShared = std::int64_t{44} << 10;

  using Block = void (*)(const void* arguments, std::int64_t block, char* shared);
  struct Source {
    const char* text;       // of the file
    const char* block;      // name of the function: void NAME(const ARGUMENTS<Number>&, Index block, char* shared)
    const char* arguments;  // name of its struct
    Block in_float, in_double;
    bool fuses_products = false;  // whether a product and a sum may be one operation with one rounding
  };
  explicit RowKernel(Source source);
  ~RowKernel();

  // Whether it can work on this tensor, in single or double precision. On a GPU the first call makes the kernel. On the CPU plain
  // loops do such work, unless a test wants to see this one.
  bool runs_on(const at::Tensor& tensor) const;
  // Of a tensor it runs on. `arguments`: the struct, with pointers to where that tensor lies.
  template <class Arguments>
  void run(const at::Tensor& on, const Arguments& arguments, std::int64_t blocks, std::int64_t shared) const {
    run_bytes(on, &arguments, blocks, shared);
  }

 private:
  struct Made;
  void run_bytes(const at::Tensor& on, const void* arguments, std::int64_t blocks, std::int64_t shared) const;

  const Source source_;
  const std::unique_ptr<Made> made_;
};

// While it lives, kernels run on the CPU too: for tests.
class RowKernelsOnCpu {
 public:
  RowKernelsOnCpu();
  ~RowKernelsOnCpu();
  RowKernelsOnCpu(const RowKernelsOnCpu&) = delete;
  RowKernelsOnCpu& operator=(const RowKernelsOnCpu&) = delete;
};

}  // namespace holdfast

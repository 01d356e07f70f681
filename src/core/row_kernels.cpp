#include "holdfast/core/row_kernels.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"

#ifdef HOLDFAST_CUDA
#include <cuda_runtime_api.h>
#if CUDART_VERSION >= 12080  // kernels are loaded by functions that came then
#define HOLDFAST_KERNELS
#endif
#endif

#ifdef HOLDFAST_KERNELS
#include <dlfcn.h>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace holdfast {
namespace {

std::atomic<int> kernels_on_cpu = 0;

bool is_double(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble;
}

}  // namespace

RowKernelsOnCpu::RowKernelsOnCpu() {
  ++kernels_on_cpu;
}
RowKernelsOnCpu::~RowKernelsOnCpu() {
  --kernels_on_cpu;
}

#ifdef HOLDFAST_KERNELS
namespace {

// row_loops.h as a GPU has it, and what makes a kernel of a block's function.
constexpr const char* kBefore = R"(
typedef long long Index;
#define HOLDFAST_EACH(i, count) for (int i = threadIdx.x; i < static_cast<int>(count); i += blockDim.x)
#define HOLDFAST_WAIT __syncthreads();
)";
constexpr const char* kAfter = R"(
extern "C" __global__ void kernel_of_rows(const HOLDFAST_ARGUMENTS<HOLDFAST_NUMBER> arguments) {
  extern __shared__ double shared[];
  HOLDFAST_BLOCK<HOLDFAST_NUMBER>(arguments, blockIdx.x, reinterpret_cast<char*>(shared));
}
)";

// Torch's own way to the compiler: a library that is not linked, because it is large and rarely needed.
struct Compiler {
  // As nvrtc.h declares them, which comes in a package of its own. They return 0 when all is well.
  using Program = void*;
  int (*create)(Program* program, const char* text, const char* name, int headers, const char* const*,
                const char* const*) = nullptr;
  int (*compile)(Program program, int options, const char* const*) = nullptr;
  int (*destroy)(Program* program) = nullptr;
  int (*code_size)(Program program, std::size_t* size) = nullptr;
  int (*code)(Program program, char* code) = nullptr;
  int (*log_size)(Program program, std::size_t* size) = nullptr;
  int (*log)(Program program, char* log) = nullptr;

  Compiler() {
    void* library = nullptr;
    for (const std::string& name : {std::string("libcaffe2_nvrtc.so"), "libnvrtc.so." + std::to_string(CUDART_VERSION / 1000)}) {
      library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) break;
    }
    if (library == nullptr) failure("CUDA's run-time compiler was not found: {}", dlerror());
    const auto find = [&]<class Function>(Function& function, const char* name) {
      function = reinterpret_cast<Function>(dlsym(library, name));
      if (function == nullptr) failure("CUDA's run-time compiler has no {}", name);
    };
    find(create, "nvrtcCreateProgram");
    find(compile, "nvrtcCompileProgram");
    find(destroy, "nvrtcDestroyProgram");
    find(code_size, "nvrtcGetCUBINSize");
    find(code, "nvrtcGetCUBIN");
    find(log_size, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
  }

  std::vector<char> make(const std::string& text, const std::vector<std::string>& options) const {
    Program program = nullptr;
    if (create(&program, text.c_str(), "rows.cu", 0, nullptr, nullptr) != 0) failure("nvrtcCreateProgram");
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    const bool made = compile(program, static_cast<int>(words.size()), words.data()) == 0;
    std::size_t size = 0;
    std::vector<char> result;
    if (made && code_size(program, &size) == 0) {
      result.resize(size);
      code(program, result.data());
    } else if (log_size(program, &size) == 0) {
      result.resize(size);
      log(program, result.data());
    }
    destroy(&program);
    if (!made || result.empty()) failure("{}", std::string(result.data(), result.size()));
    return result;
  }
};

// Kernels that were made before, by their text and settings: to make one takes a tenth of a second or two.
std::string kept_kernel(const std::string& text, const std::vector<std::string>& options) {
  std::string all = std::to_string(CUDART_VERSION) + text;
  for (const std::string& option : options) all += "\n" + option;
  const char* const folder = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (folder == nullptr && home == nullptr) return {};
  return (folder != nullptr ? std::string(folder) : std::string(home) + "/.cache") + "/holdfast/kernels/" +
         sha256_hex(as_bytes(all)) + ".cubin";
}

std::vector<char> code_of(const std::string& text, const std::vector<std::string>& options) {
  const std::string kept = kept_kernel(text, options);
  if (!kept.empty() && file_exists(kept)) {
    const std::string code = read_text(kept);
    return {code.begin(), code.end()};
  }
  static const Compiler compiler;
  std::vector<char> code = compiler.make(text, options);
  try {
    if (!kept.empty()) {
      make_folders(kept.substr(0, kept.rfind('/')));
      write_atomic(kept, std::string_view(code.data(), code.size()));
    }
  } catch (const Error&) {  // no place to keep it: it is made again next time
  }
  return code;
}

}  // namespace

struct RowKernel::Made {
  // Null where it could not be made.
  cudaKernel_t of(const Source& source, const at::Tensor& on) {
    const c10::cuda::CUDAGuard on_its_device(on.device());
    int major = 0, minor = 0;
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, on.device().index()));
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, on.device().index()));
    const std::string key = std::to_string(major * 10 + minor) + (is_double(on) ? "double" : "float");
    const std::lock_guard lock(mutex_);
    const auto known = kernels_.find(key);
    if (known != kernels_.end()) return known->second;
    cudaKernel_t kernel = nullptr;
    try {
      const std::string arguments = source.arguments, block = source.block;
      const std::vector<char> code = code_of(
          kBefore + std::string(source.text) + kAfter,
          {"--gpu-architecture=sm_" + std::to_string(major * 10 + minor), "--std=c++17", "--device-as-default-execution-space",
           source.fuses_products ? "--fmad=true" : "--fmad=false", "-DHOLDFAST_ARGUMENTS=" + arguments,
           "-DHOLDFAST_BLOCK=" + block, std::string("-DHOLDFAST_NUMBER=") + (is_double(on) ? "double" : "float")});
      cudaLibrary_t library = nullptr;
      C10_CUDA_CHECK(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
      C10_CUDA_CHECK(cudaLibraryGetKernel(&kernel, library, "kernel_of_rows"));
    } catch (const std::exception& error) {
      log_warning("a kernel for this GPU could not be made ({}), which makes attacks slower: {}", source.block, error.what());
      kernel = nullptr;
    }
    return kernels_[key] = kernel;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, cudaKernel_t> kernels_;
};
#else
struct RowKernel::Made {};
#endif

RowKernel::RowKernel(Source source) : source_(source), made_(std::make_unique<Made>()) {}
RowKernel::~RowKernel() = default;

bool RowKernel::runs_on(const at::Tensor& tensor) const {
  if (tensor.scalar_type() != at::kFloat && tensor.scalar_type() != at::kDouble) return false;
  if (tensor.is_cpu()) return kernels_on_cpu > 0;
#ifdef HOLDFAST_KERNELS
  static const bool wanted = std::getenv("HOLDFAST_NO_KERNELS") == nullptr;
  return wanted && tensor.is_cuda() && made_->of(source_, tensor) != nullptr;
#else
  return false;
#endif
}

void RowKernel::run_bytes(const at::Tensor& on, const void* arguments, std::int64_t blocks, std::int64_t shared) const {
  HOLDFAST_CHECK(shared <= kMostShared);
  if (blocks == 0) return;
  if (on.is_cpu()) {
    std::vector<double> memory(static_cast<std::size_t>(shared) / sizeof(double) + 1);
    const Block block = is_double(on) ? source_.in_double : source_.in_float;
    for (std::int64_t i = 0; i < blocks; ++i) block(arguments, i, reinterpret_cast<char*>(memory.data()));
    return;
  }
#ifdef HOLDFAST_KERNELS
  const c10::cuda::CUDAGuard on_its_device(on.device());
  void* given[] = {const_cast<void*>(arguments)};
  C10_CUDA_CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(made_->of(source_, on)), dim3(static_cast<unsigned>(blocks)),
                                  dim3(kThreads), given, static_cast<std::size_t>(shared),
                                  c10::cuda::getCurrentCUDAStream(on.device().index())));
#else
  HOLDFAST_CHECK(false);
#endif
}

}  // namespace holdfast

// A piece of device work that is recorded once and then repeated with one call (a CUDA graph). On a GPU a step of many small
// operations takes longer to ask for than to do; a repetition of a graph costs one request.
//
// What is recorded reads and writes the same memory every time: the work puts its results into tensors that exist before, or the
// caller copies them out before the next repetition. It must not wait for the device, nor copy anything from or to the host.
#pragma once

#include <functional>
#include <memory>

#include "holdfast/core/stages.h"

namespace at {
class Tensor;
}

namespace holdfast {

class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual void replay() = 0;

  // Whether work on this tensor can be recorded: it is on a GPU, and the program was built for one. On the CPU the work is
  // simply done again, so that tests can compare.
  static bool is_available(const at::Tensor& tensor);
  // Does the work twice, to make everything ready, and then records it, which does not do it. Null where it cannot be recorded:
  // do the work itself then, each time.
  static std::unique_ptr<DeviceGraph> record(const at::Tensor& tensor, std::function<void()> work);
};

}  // namespace holdfast

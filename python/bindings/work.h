// What holds while C++ works for Python: the interpreter lock is released, gradients can be taken even inside
// torch.inference_mode(), and Ctrl-C stops the work. A call guard.
#pragma once

#include <optional>

#include <c10/core/InferenceMode.h>
#include <torch/csrc/utils/pybind.h>

namespace holdfast::python {

// Python runs its signal handlers only between its own instructions, of which there may be none for minutes. While this
// lives, SIGINT also sets the flag that our loops look at; Python's handler is called as before and raises KeyboardInterrupt
// once we have returned to it. Does nothing where Ctrl-C is not meant for us: on threads other than the main one, and where
// somebody has replaced Python's handler.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  bool active_;
};

class Work {
 public:
  Work() {
    if (c10::InferenceMode::is_enabled()) with_gradients_.emplace(false);
  }

 private:
  InterruptScope interrupts_;
  py::gil_scoped_release unlocked_;
  std::optional<c10::InferenceMode> with_gradients_;
};

}  // namespace holdfast::python

// Work on the host that waits for numbers from the device. The numbers of many steps are fetched with one transfer, and what
// waits for them is then done in the order in which it was asked for. So the device is not waited for at every step.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace holdfast::attack {

class ReplayQueue {
 public:
  using Work = std::function<void(std::span<const double> numbers)>;

  // `numbers`: double, on the device, or undefined where the work needs none. `bytes`: what the work itself keeps on the device.
  void add(at::Tensor numbers, Work work, std::int64_t bytes = 0);
  bool is_empty() const { return entries_.empty(); }
  // Whether so many steps wait, or so many bytes are kept for them, that it is time to run.
  bool is_full() const { return steps_ >= kMostSteps || bytes_ >= kMostBytes; }
  void end_step() { ++steps_; }
  void run();

 private:
  static constexpr std::int64_t kMostSteps = 32, kMostBytes = std::int64_t{512} << 20;
  std::vector<std::pair<at::Tensor, Work>> entries_;
  std::int64_t steps_ = 0, bytes_ = 0;
};

}  // namespace holdfast::attack

// What the steps of an epoch cost. On a GPU the numbers of many steps are read together, so that no step waits for the device.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/train/objective.h"
#include "holdfast/train/trainer.h"

namespace holdfast::train {

class StepLosses {
 public:
  // `not_finite` is told of the first step, from 0, whose loss is not finite, and throws. `at_once`: how many steps are read
  // together.
  StepLosses(std::function<void(std::int64_t step)> not_finite, std::int64_t at_once)
      : not_finite_(std::move(not_finite)), at_once_(at_once) {}

  // 1 on the CPU, where reading costs nothing.
  static std::int64_t read_together(const at::Device& device) { return device.is_cpu() ? 1 : 32; }

  void add(const Loss& loss, std::int64_t samples);
  // The means over the samples of all steps.
  void write(EpochRecord& record);

 private:
  void read();

  struct Step {
    std::vector<at::Tensor> numbers;  // the total, then the parts
    double samples = 0;
  };

  const std::function<void(std::int64_t)> not_finite_;
  const std::int64_t at_once_;
  std::vector<Step> waiting_;
  std::int64_t steps_read_ = 0;
  double samples_ = 0, total_ = 0;
  std::vector<std::pair<std::string, double>> parts_;
};

}  // namespace holdfast::train

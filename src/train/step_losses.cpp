#include "step_losses.h"

#include <cmath>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::train {

void StepLosses::add(const Loss& loss, std::int64_t samples) {
  if (parts_.empty()) {
    for (const auto& [name, value] : loss.parts) parts_.emplace_back(name, 0);
  }
  HOLDFAST_CHECK(parts_.size() == loss.parts.size());
  Step step{.samples = static_cast<double>(samples)};
  step.numbers.push_back(loss.total.detach());
  for (const auto& [name, value] : loss.parts) step.numbers.push_back(value);
  waiting_.push_back(std::move(step));
  if (static_cast<std::int64_t>(waiting_.size()) >= at_once_) read();
}

void StepLosses::read() {
  std::vector<double> numbers;
  if (at_once_ == 1) {
    for (const at::Tensor& number : waiting_.front().numbers) numbers.push_back(number.item<double>());
  } else {
    std::vector<at::Tensor> all;
    for (const Step& step : waiting_) {
      for (const at::Tensor& number : step.numbers) all.push_back(number.to(at::kDouble));
    }
    const at::Tensor fetched = at::stack(all).cpu();
    numbers.assign(fetched.const_data_ptr<double>(), fetched.const_data_ptr<double>() + fetched.numel());
  }
  auto number = numbers.begin();
  for (const Step& step : waiting_) {
    if (!std::isfinite(*number)) not_finite_(steps_read_);
    ++steps_read_;
    samples_ += step.samples;
    total_ += step.samples * *number++;
    for (auto& [name, sum] : parts_) sum += step.samples * *number++;
  }
  waiting_.clear();
}

void StepLosses::write(EpochRecord& record) {
  if (!waiting_.empty()) read();
  record.loss = total_ / samples_;
  record.parts = parts_;
  for (auto& [name, value] : record.parts) value /= samples_;
}

}  // namespace holdfast::train

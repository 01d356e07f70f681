#include "replay_queue.h"

#include "holdfast/core/torch.h"

namespace holdfast::attack {

void ReplayQueue::add(at::Tensor numbers, Work work, std::int64_t bytes) {
  bytes_ += bytes;
  entries_.emplace_back(std::move(numbers), std::move(work));
}

void ReplayQueue::run() {
  const std::vector<std::pair<at::Tensor, Work>> entries = std::exchange(entries_, {});
  steps_ = bytes_ = 0;
  std::vector<at::Tensor> parts;
  for (const auto& [numbers, work] : entries) {
    if (numbers.defined()) parts.push_back(numbers.flatten());
  }
  const at::Tensor fetched = parts.empty() ? at::Tensor() : at::cat(parts).cpu();
  std::size_t begin = 0;
  for (const auto& [numbers, work] : entries) {
    const std::size_t count = numbers.defined() ? static_cast<std::size_t>(numbers.numel()) : 0;
    work(count > 0 ? std::span(fetched.data_ptr<double>() + begin, count) : std::span<const double>());
    begin += count;
  }
}

}  // namespace holdfast::attack

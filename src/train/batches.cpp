#include "holdfast/core/rng.h"
#include "holdfast/train/trainer.h"

namespace holdfast {

std::vector<std::vector<std::int64_t>> epoch_batches(const std::vector<std::int64_t>& rows, std::int64_t batch_size,
                                                     std::uint64_t seed, std::int64_t epoch) {
  const auto order =
      RandomStream(seed, "train.order", static_cast<std::uint64_t>(epoch)).permutation(static_cast<std::int64_t>(rows.size()));
  std::vector<std::vector<std::int64_t>> batches;
  for (const std::int64_t position : order) {
    if (batches.empty() || static_cast<std::int64_t>(batches.back().size()) == batch_size) batches.emplace_back();
    batches.back().push_back(rows[static_cast<std::size_t>(position)]);
  }
  if (batches.size() > 1 && batches.back().size() == 1 && batch_size > 1) {
    const std::int64_t last = batches.back().front();
    batches.pop_back();
    batches.back().push_back(last);
  }
  return batches;
}

}  // namespace holdfast

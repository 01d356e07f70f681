#include "holdfast/explain/noisy_tops.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/batch_rows.h"
#include "noise.h"

namespace holdfast::explain {
namespace {

// Finds the k largest values of one map after another; of equal ones those that come first.
class TopFinder {
 public:
  TopFinder(std::int64_t features, std::int64_t k) : values_(static_cast<std::size_t>(features)), k_(k) {}

  void count(std::span<const double> map, double* counts) {
    if (!std::all_of(map.begin(), map.end(), [](double value) { return std::isfinite(value); })) return;
    std::copy(map.begin(), map.end(), values_.begin());
    const auto last = values_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
    std::nth_element(values_.begin(), last, values_.end(), std::greater<>());
    const double least = *last;
    auto equal = k_ - std::count_if(values_.begin(), last, [&](double value) { return value > least; });
    for (std::size_t i = 0; i < map.size(); ++i) {
      const bool is_equal = map[i] == least && equal > 0;
      equal -= is_equal ? 1 : 0;
      counts[i] += map[i] > least || is_equal ? 1 : 0;
    }
  }

 private:
  std::vector<double> values_;
  std::int64_t k_;
};

}  // namespace

NoisyTops count_noisy_tops(const ExplainTask& task, const Explainer& of, const NoisyTopsOptions& options) {
  const Layout& layout = task.samples.layout();
  const std::int64_t samples = task.samples.count(), features = layout.features();
  NoisyTops result{.tops = at::zeros({samples, features}, at::kDouble)};
  if (samples == 0) return result;
  const Noise noise(task, options.purpose, options.sigma, /*project=*/false);
  const std::int64_t rows = BatchRows(task).most(Pass::kGradient);
  const std::int64_t together = std::min(samples, rows),
                     copies = even_part(options.copies, std::max<std::int64_t>(1, rows / together));
  TopFinder finder(features, options.k);
  std::vector<double> folded;
  for (std::int64_t sample = 0; sample < samples; sample += together) {
    const std::int64_t count = std::min(together, samples - sample);
    const Samples part = task.samples.slice(sample, sample + count);
    for (std::int64_t copy = 0; copy < options.copies; copy += copies) {
      throw_if_interrupted();
      const std::int64_t now = std::min(copies, options.copies - copy);
      ExplainTask noisy = task;
      noisy.samples = part;
      noisy.samples.inputs = (part.inputs.unsqueeze(0) + noise.rows(sample, count, copy, now)).flatten(0, 1);
      noisy.samples.targets = part.targets.repeat({now});
      noisy.samples.ids = part.ids.repeat({now});
      const Explanation there = of.attribute(noisy);
      const at::Tensor maps = there.maps.cpu().to(at::kDouble).contiguous();
      folded.resize(static_cast<std::size_t>(now * count * features));
      fold_into(layout, std::span<const double>(maps.const_data_ptr<double>(), static_cast<std::size_t>(maps.numel())), folded);
      for (std::int64_t row = 0; row < now * count; ++row) {
        finder.count(std::span(folded).subspan(static_cast<std::size_t>(row * features), static_cast<std::size_t>(features)),
                     result.tops.data_ptr<double>() + (sample + row % count) * features);
      }
      const at::Tensor predicted = predicted_class(there.logits).cpu().view({now, count});
      if (!result.classes.defined()) result.classes = at::zeros({samples, there.logits.size(1)}, at::kDouble);
      result.classes.slice(0, sample, sample + count).scatter_add_(1, predicted.t(), at::ones({count, now}, at::kDouble));
    }
  }
  return result;
}

}  // namespace holdfast::explain

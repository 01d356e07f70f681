#include "smooth_measure.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::measure {

OptionSpec smooth_project_option() {
  return {"project", "auto", one_of({"auto", "none"}),
          "the gradient's part that valid rows of one-hot groups can feel, as saliency; none: the gradient itself"};
}

void check_smooth(const MeasureTask& task, const std::string& name) {
  const std::optional<std::string> obstacle = SmoothChain::what_prevents(task.model);
  if (!obstacle) return;
  usage_error("{}: bounds need a chain of affine layers and softplus, sigmoid, tanh, gelu or silu, but {} has {}", name,
              task.model.name().empty() ? "the model" : task.model.name(), *obstacle);
}

void check_one_element_a_feature(const Layout& layout, const std::string& name) {
  if (layout.features() == layout.inputs()) return;
  usage_error("{}: a feature of a {} is the sum of {} elements; bounds are for one element a feature", name, layout.describe(),
              layout.inputs() / layout.features());
}

std::int64_t samples_that_fit(const SmoothChain& chain, const MeasureTask& task, const PairChoice& pairs) {
  constexpr std::int64_t kPairCopies = 4;
  const std::int64_t n = task.samples.layout().features();
  const std::int64_t pair_count = pairs.j > 0 ? 1 : pairs.k * (n - pairs.k);
  const std::int64_t bytes = chain.bytes_a_sample() + kPairCopies * static_cast<std::int64_t>(sizeof(double)) * pair_count * n;
  // A limit below what anything needs means one sample at a time, not a refusal.
  if (bytes > std::max(task.memory, kExplainMemory)) {
    usage_error("bounds of {} take {} MiB a sample; they are for networks with fewer inputs or narrower layers",
                task.model.name().empty() ? "the model" : task.model.name(), bytes >> 20);
  }
  return std::max<std::int64_t>(1, task.memory / bytes);
}

}  // namespace holdfast::measure

#include "holdfast/explain/finite.h"

#include <optional>

#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::explain {
namespace {

// Id of the first row with an element that is not finite.
std::optional<std::int64_t> first_bad(const at::Tensor& rows, const at::Tensor& sample_ids) {
  const at::NoGradGuard no_grad;
  if (all_finite(rows)) return std::nullopt;
  const at::Tensor bad = at::isfinite(rows.flatten(1)).all(1).logical_not().cpu();
  return sample_ids.cpu()[bad.to(at::kInt).argmax().item<std::int64_t>()].item<std::int64_t>();
}

}  // namespace

void check_finite(const Explanation& explanation, const at::Tensor& sample_ids, const Model& model, const Explainer& explainer) {
  if (const auto sample = first_bad(explanation.logits, sample_ids)) {
    input_error("{}: the logits of sample {} are not finite", model.name().empty() ? "the model" : model.name(), *sample);
  }
  if (const auto sample = first_bad(explanation.maps, sample_ids)) {
    failure("{}: the map of sample {} is not finite", explainer.name(), *sample);
  }
}

}  // namespace holdfast::explain

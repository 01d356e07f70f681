#include "batch_reading.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "holdfast/core/torch.h"

namespace holdfast::attack {
namespace {

// The predicted class of a row, and whether its margin over the runner-up is large enough.
template <class Number>
std::pair<std::int64_t, bool> predict(const Number* logits, std::int64_t classes) {
  std::int64_t best = 0;
  Number runner_up = -std::numeric_limits<Number>::infinity();
  for (std::int64_t c = 1; c < classes; ++c) {
    if (logits[c] > logits[best]) {
      runner_up = logits[best];
      best = c;
    } else if (logits[c] <= logits[best]) {
      runner_up = std::max(runner_up, logits[c]);
    } else {
      runner_up = std::numeric_limits<Number>::infinity();  // a logit that is no number: nothing is certain
    }
  }
  const double top = static_cast<double>(logits[best]);
  return {best, top - static_cast<double>(runner_up) >= kMargin + kLogitRounding * std::abs(top)};
}

template <class Number>
BatchReading::Probability probability_of(const Number* logits, std::int64_t classes, std::int64_t predicted) {
  const double top = static_cast<double>(logits[predicted]);
  if (classes == 1) return {top, kLogitRounding * std::abs(top)};
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - top);
  const double p = 1 / sum;
  return {p, 2 * kLogitRounding * std::abs(top) * p * (1 - p)};
}

}  // namespace

double margin_of(const double* logits, std::int64_t classes, std::int64_t predicted) {
  double margin = std::numeric_limits<double>::infinity();
  for (std::int64_t c = 0; c < classes; ++c) {
    if (c != predicted) margin = std::min(margin, logits[predicted] - logits[c]);
  }
  return margin;
}

at::Tensor on_cpu(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().cpu();
  return (at::isReducedFloatingType(plain.scalar_type()) ? plain.to(at::kFloat) : plain).contiguous();
}

void BatchReading::read(const Explanation& explanation) {
  read_maps(explanation.maps);
  read_logits(explanation.logits);
}

void BatchReading::read_maps(const at::Tensor& maps) {
  const at::Tensor plain = on_cpu(maps);
  folded_.resize(static_cast<std::size_t>(plain.size(0) * schema_.layout.features()));
  AT_DISPATCH_FLOATING_TYPES(plain.scalar_type(), "read_maps", [&] {
    fold_into(schema_.layout, std::span<const scalar_t>(plain.data_ptr<scalar_t>(), static_cast<std::size_t>(plain.numel())),
              folded_);
  });
  all_finite_ = std::isfinite(plain.sum().item<double>());  // only if every element is
}

std::optional<MapView> BatchReading::map(std::int64_t row) const {
  const auto features = static_cast<std::size_t>(schema_.layout.features());
  const MapView map{std::span(folded_).subspan(static_cast<std::size_t>(row) * features, features), schema_};
  if (!all_finite_ && !std::all_of(map.values.begin(), map.values.end(), [](double value) { return std::isfinite(value); }))
    return std::nullopt;
  return map;
}

void BatchReading::read_logits(const at::Tensor& logits) {
  const at::Tensor plain = on_cpu(logits);
  const std::int64_t classes = plain.size(1);
  predicted_.resize(static_cast<std::size_t>(plain.size(0)));
  is_certain_.resize(predicted_.size());
  if (with_probabilities_) probabilities_.resize(predicted_.size());
  AT_DISPATCH_FLOATING_TYPES(plain.scalar_type(), "read_logits", [&] {
    const scalar_t* row = plain.data_ptr<scalar_t>();
    for (std::size_t i = 0; i < predicted_.size(); ++i, row += classes) {
      std::tie(predicted_[i], is_certain_[i]) = predict(row, classes);
      if (with_probabilities_) probabilities_[i] = probability_of(row, classes, predicted_[i]);
    }
  });
}

}  // namespace holdfast::attack

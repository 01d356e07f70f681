#include "holdfast/measure/prediction.h"

#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/measure/proportion.h"
#include "holdfast/measure/roc.h"

namespace holdfast::measure {
namespace {

at::Tensor as_double(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, at::kDouble).contiguous();
}

std::span<const double> values_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<double>(), static_cast<std::size_t>(tensor.numel())};
}

// log(p_c / (1 - p_c)) for every class. A function of the differences of a row's logits, summed in ascending order: rows that
// differ by a shift or by the order of the other classes stay tied.
at::Tensor margins(const at::Tensor& logits) {
  const at::Tensor exact = as_double(logits);
  const at::Tensor below = exact - std::get<0>(exact.max(1, /*keepdim=*/true));  // the highest is 0
  const at::Tensor rest =
      at::logsumexp(std::get<0>(below.sort(1)).slice(1, 0, -1), 1, /*keepdim=*/true);  // of all but the highest
  // The others of a class below the highest have the highest among them: 1 + rest - own is at least 1, nothing cancels.
  const at::Tensor others = at::log(rest.exp() + (1 - below.exp()));
  const at::Tensor is_highest = at::arange(exact.size(1)) == predicted_class(exact).unsqueeze(1);
  return below - at::where(is_highest, rest, others);
}

void check_finite(const at::Tensor& logits) {
  if (all_finite(logits)) return;
  const at::Tensor bad = at::isfinite(logits).all(1).logical_not().nonzero();
  input_error("the model gives logits that are not finite for sample {}; check its weights and the inputs' range",
              bad[0][0].item<std::int64_t>());
}

void check_shapes(const at::Tensor& logits, const at::Tensor& labels) {
  HOLDFAST_CHECK(logits.dim() == 2 && logits.size(1) >= 2 && labels.dim() == 1 && labels.size(0) == logits.size(0));
}

Json to_json(const Interval& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}, {"count", interval.count}};
}

}  // namespace

at::Tensor predict(const Network& network, const at::Tensor& inputs, int threads, std::int64_t tile) {
  const std::int64_t samples = inputs.size(0);
  std::vector<at::Tensor> parts(static_cast<std::size_t>(tile_count(samples, tile)));
  for_each_tile(samples, tile, threads, [&](const Tile& piece) {
    const at::NoGradGuard no_grad;
    const at::Tensor batch = inputs.slice(0, piece.begin, piece.end).to(network.device(), network.dtype());
    parts[static_cast<std::size_t>(piece.index)] = network.logits(batch).to(at::kCPU);
  });
  const at::Tensor logits = at::cat(parts);
  check_finite(logits);
  return logits;
}

Interval accuracy(const at::Tensor& logits, const at::Tensor& labels) {
  check_shapes(logits, labels);
  const at::Tensor right = predicted_class(logits.detach().cpu()) == labels.cpu();
  return proportion_interval(right.sum().item<std::int64_t>(), labels.size(0));
}

Interval auc(const at::Tensor& logits, const at::Tensor& labels) {
  check_shapes(logits, labels);
  const at::Tensor classes = labels.to(at::kCPU, at::kLong).contiguous();
  const std::span<const std::int64_t> truth(classes.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(classes.numel()));
  if (logits.size(1) > 2) {
    const at::Tensor scores = margins(logits).contiguous();
    return macro_auc(values_of(scores), truth, logits.size(1));
  }
  const at::Tensor exact = as_double(logits), scores = exact.select(1, 1) - exact.select(1, 0);
  return binary_auc(values_of(scores), truth);
}

double cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  check_shapes(logits, labels);
  return at::cross_entropy_loss(as_double(logits), labels.to(at::kCPU, at::kLong)).item<double>();
}

PredictionQuality prediction_quality(const at::Tensor& logits, const at::Tensor& labels) {
  return {accuracy(logits, labels), auc(logits, labels), cross_entropy(logits, labels)};
}

Json to_json(const PredictionQuality& quality) {
  return {{"accuracy", to_json(quality.accuracy)}, {"auc", to_json(quality.auc)}, {"loss", quality.loss}};
}

std::vector<double> sensitivities(const at::Tensor& clean_logits, const at::Tensor& perturbed_logits) {
  HOLDFAST_CHECK(clean_logits.sizes() == perturbed_logits.sizes() && clean_logits.dim() == 2);
  const at::Tensor classes = predicted_class(clean_logits.detach().cpu());
  const auto probability = [&](const at::Tensor& logits) { return class_scores(as_double(logits), classes); };
  const at::Tensor moved = (probability(clean_logits) - probability(perturbed_logits)).abs().contiguous();
  const std::span<const double> values = values_of(moved);
  return {values.begin(), values.end()};
}

Interval sensitivity(const at::Tensor& clean_logits, const at::Tensor& perturbed_logits, std::uint64_t seed) {
  return mean_interval(sensitivities(clean_logits, perturbed_logits), seed);
}

}  // namespace holdfast::measure

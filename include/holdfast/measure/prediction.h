// How well a model predicts, and how far a perturbation moves its predictions.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"
#include "holdfast/metric/levels.h"
#include "holdfast/model/network.h"

namespace holdfast::measure {

// Logits of many samples, tile by tile on `threads` threads (0: one for each core): [N, classes] on the CPU. The same bytes
// for any number of threads. Throws kInput naming the first sample whose logits are not finite.
at::Tensor predict(const Network& network, const at::Tensor& inputs, int threads = 1, std::int64_t tile = 256);

// Everything below takes logits [N, classes], classes >= 2, and labels [N].

// Share of samples whose highest logit is the label's (the lower class on ties); exact interval (proportion.h).
Interval accuracy(const at::Tensor& logits, const at::Tensor& labels);

// Two classes: the area under the ROC curve of class 1; more: each class against the rest, the mean (roc.h). Samples are
// ranked by the margin log(p_c / (1 - p_c)), which orders them as p_c does but does not saturate into ties.
Interval auc(const at::Tensor& logits, const at::Tensor& labels);

// Mean cross-entropy, in double.
double cross_entropy(const at::Tensor& logits, const at::Tensor& labels);

struct PredictionQuality {
  Interval accuracy;
  Interval auc;
  double loss = 0;  // cross-entropy
};
PredictionQuality prediction_quality(const at::Tensor& logits, const at::Tensor& labels);
// {"accuracy": {"mean", "low", "high", "count"}, "auc": {...}, "loss"}
Json to_json(const PredictionQuality& quality);

// Sensitivity of the prediction to a perturbation: |p_c(x) - p_c(x')|, c the class predicted at x; one value a sample.
// The R2ET paper reports it without a definition; this is ours.
std::vector<double> sensitivities(const at::Tensor& clean_logits, const at::Tensor& perturbed_logits);
// Their mean with a bootstrap interval keyed by `seed`.
Interval sensitivity(const at::Tensor& clean_logits, const at::Tensor& perturbed_logits, std::uint64_t seed);

}  // namespace holdfast::measure

// deep_lift: what each input element's difference from a baseline adds to the difference of the explained quantity.
//     map = m (x - x0)          sum of the map = f(x) - f(x0), exactly but for rounding
// m are the multipliers of the rescale rule: each nonlinearity a = s(z) has the slope (a - a0) / (z - z0) between the two runs
// in place of its derivative, and they are chained like derivatives (deep_lift_rules.h).
// Shrikumar, Greenside, Kundaje, "Learning Important Features Through Propagating Activation Differences", ICML 2017.
//
// Departures. A probability or cross-entropy is rescaled through the softmax too (rescaled_cotangent), so that the map is
// complete for what is explained; the paper, and Captum, explain a logit. Max pooling shares nothing between windows that
// overlap, so it is complete there as well. One-hot groups are projected out of the multipliers, before they meet the difference.
#include <cmath>
#include <limits>

#include "baseline.h"
#include "completeness.h"
#include "deep_lift_rules.h"
#include "finish.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/explain/logit_cotangent.h"
#include "layer_explainer.h"

namespace holdfast::explain::deep_lift {

const MethodInfo kInfo{
    .name = "deep_lift",
    .summary = "what each input's difference from a baseline adds to the output, by the rescale rule",
    .citation =
        "Shrikumar, Greenside, Kundaje, Learning Important Features Through Propagating Activation Differences, ICML 2017",
    .options = {target_option(), baseline_option(), blur_option(), project_option()},
    .needs = {"layers of a network"}};

// log((exp(a) - exp(b)) / (a - b)) = (a + b) / 2 + log(sinh(t) / t), t = |a - b| / 2, without overflow and smooth at a = b.
at::Tensor log_of_logarithmic_mean(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor t = (a - b).abs() / 2;
  // sinh(t) / t = 1 + t^2/6 + t^4/120 + ...: below the fourth root of the rounding two terms of its logarithm are exact.
  const double near = std::pow(std::numeric_limits<double>::epsilon(), 0.25);
  const at::Tensor is_near = t < (a.scalar_type() == at::kDouble ? near : 0.02);
  const at::Tensor far = at::where(is_near, at::ones_like(t), t);
  const at::Tensor squared = at::where(is_near, t, at::zeros_like(t)).square();
  const at::Tensor series = squared / 6 - squared.square() / 180;
  const at::Tensor closed = far + at::log1p(-(-2 * far).exp()) - (2 * far).log();
  return (a + b) / 2 + at::where(is_near, series, closed);
}

at::Tensor log_probability(const at::Tensor& logits, const at::Tensor& column) {
  return at::log_softmax(logits, 1).gather(1, column);
}

// The last nonlinearity of deep_lift, from the logits to what is explained, under the rescale rule.
//
// With d_j = z_j - z_c and T = 1 + sum over j != c of exp(d_j), p_c = 1 / T. Rescaling exp, the reciprocal and the logarithm one
// after the other gives multipliers that sum to 0 (a constant on all logits moves nothing, as it should) and that are complete:
//     probability   -p_c p0_c L_j             at j != c          L_j = (exp(d_j) - exp(d0_j)) / (d_j - d0_j)
//     ce             L_j / L(T, T0)           at j != c          L(T, T0) = (T - T0) / (log T - log T0)
// and minus their sum at c. L is the logarithmic mean; it tends to the derivative where both points are the same. For two classes
// this is the rescale rule of the logistic function of the margin.
//
// Like those of logit_cotangent.h, multipliers of a saturated softmax underflow; the largest one's logarithm is kept apart as the
// scale.
//
// Multipliers of the logits [B, classes]; `reference` [B or 1, classes] are the logits at the baseline.
LogitCotangent rescaled_cotangent(const at::Tensor& logits, const at::Tensor& reference, const at::Tensor& targets,
                                  ExplainedQuantity quantity) {
  if (quantity == ExplainedQuantity::kLogit || logits.size(1) == 1) return logit_cotangent(logits, targets, quantity);
  const at::Tensor column = targets.unsqueeze(1);
  const at::Tensor base = reference.expand_as(logits);
  const at::Tensor is_target = at::zeros_like(logits, at::kBool).scatter_(1, column, true);
  const at::Tensor log_p = log_probability(logits, column), log_p0 = log_probability(base, column);
  const at::Tensor log_means = log_of_logarithmic_mean(logits - logits.gather(1, column), base - base.gather(1, column));

  const bool probability = quantity == ExplainedQuantity::kProbability;
  const at::Tensor log_factor = probability ? log_p + log_p0 : -log_of_logarithmic_mean(-log_p, -log_p0);
  const at::Tensor log_pull = (log_means + log_factor).masked_fill(is_target, -std::numeric_limits<double>::infinity());
  const at::Tensor log_scale = log_pull.detach().amax(1, /*keepdim=*/true);
  const at::Tensor pull = (log_pull - log_scale).exp();  // of the cross-entropy
  const at::Tensor balanced = pull - is_target * pull.sum(1, /*keepdim=*/true);
  return {probability ? -balanced : balanced, log_scale.squeeze(1)};
}

class DeepLift final : public LayerExplainer {
 public:
  explicit DeepLift(const Options& options)
      : LayerExplainer(options.canonical()),
        quantity_(parse_explained_quantity(options.word("target"))),
        baseline_(options, name()),
        own_baselines_(options.word("baseline") == "blurred"),
        projection_(options, name()) {}

  std::int64_t evaluations(const Schema&) const override { return own_baselines_ ? 2 : 1; }

  void check_task(const ExplainTask& task) const override {
    check(task.model);
    baseline_.check(task);
    (void)projection_.applies(task);
  }

 private:
  Traced trace(const ExplainTask& task, const Network& network, const at::Tensor& inputs) const override {
    const at::Tensor base = baseline_.of(task, projection_.applies(task)).at(inputs);
    const LayerValues here = run_layers(network, inputs, task.rule);
    // One row where the baseline is common to all samples. Its graph is wanted only if the maps will be differentiated.
    const LayerValues there = run_layers(network, at::GradMode::is_enabled() ? base : base.detach(), task.rule);
    const LogitCotangent output = rescaled_cotangent(here.logits(), there.logits(), task.samples.targets, quantity_);
    const at::Tensor multipliers = walk_back(here, output.value, [&](const LayerStep& step) { return rescale(step, there); });
    Traced traced{.maps = projection_.project(multipliers, task) * (inputs - base),
                  .log_scale = output.log_scale,
                  .logits = here.logits(),
                  .gauge_share = projection_.gauge_share(multipliers, task)};
    const at::NoGradGuard no_graph;
    traced.delta = completeness_delta(traced, there.logits(), task.samples.targets, quantity_);
    return traced;
  }

  ExplainedQuantity quantity_;
  BaselineOption baseline_;
  bool own_baselines_;  // each sample has its own, and its own run
  Projection projection_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<DeepLift>(kInfo);
}

}  // namespace holdfast::explain::deep_lift

// deep_lift: what each input element's difference from a baseline adds to the difference of the explained quantity.
//     map = m (x - x0)          sum of the map = f(x) - f(x0), exactly but for rounding
// m are the multipliers of the rescale rule: each nonlinearity a = s(z) has the slope (a - a0) / (z - z0) between the two runs
// in place of its derivative, and they are chained like derivatives (deep_lift_rules.h).
// Shrikumar, Greenside, Kundaje, "Learning Important Features Through Propagating Activation Differences", ICML 2017.
//
// Departures. A probability or cross-entropy is rescaled through the softmax too (deep_lift_output.h), so that the map is
// complete for what is explained; the paper, and Captum, explain a logit. Max pooling shares nothing between windows that
// overlap, so it is complete there as well. One-hot groups are projected out of the multipliers, before they meet the difference.
#include "baseline.h"
#include "completeness.h"
#include "deep_lift_output.h"
#include "deep_lift_rules.h"
#include "finish.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "layer_explainer.h"

namespace holdfast::explain::deep_lift {

const MethodInfo kInfo{
    .name = "deep_lift",
    .summary = "what each input's difference from a baseline adds to the output, by the rescale rule",
    .citation =
        "Shrikumar, Greenside, Kundaje, Learning Important Features Through Propagating Activation Differences, ICML 2017",
    .options = {target_option(), baseline_option(), blur_option(), project_option()},
    .needs = {"layers of a network"}};

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

// exact_overlap: the least P@k at any point of the l2 ball whose prediction is unchanged, proven, by branch and bound over the
// cells of a small ReLU network: the attack `exact` as a measure. Ours; no paper.
//
// The value is what is proven: no attack brings top_k(k) of the saliency below it. Beside it: `found`, the lowest value at a
// point that was verified, `open`, 1 where the two differ because the search met its limit, and `nodes`, the parts of the ball it
// took.
#include "holdfast/attack/attack.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"

namespace holdfast::measure::exact_overlap {

const MethodInfo kExactOverlapInfo{
    .name = "exact_overlap",
    .summary = "least P@k of the saliency in an l2 ball, exactly: small ReLU networks",
    .options = {{"k", 8, at_least(1), "size of the top"},
                {"radius", 0.1, at_least(0), "of the l2 ball around the sample"},
                {"nodes", 200000, at_least(1), "parts of the ball that are looked at, for each sample, before the search ends"}},
    .needs = {"linear layers with relu or leaky_relu; two classes, or target=logit"},
    .notes = "A lower bound of top_k(k) under any attack, and with `open` = 0 the best there is. See the attack `exact`."};

class ExactOverlap final : public Measure {
 public:
  explicit ExactOverlap(const Options& options)
      : Measure(options.canonical()),
        metric_(metrics().make(fmt::format("top_k(k={})", options.integer("k")))),
        attack_(attacks().make(fmt::format("exact(nodes={})", options.integer("nodes")))),
        radius_(options.real("radius")) {}

  bool higher_is_better() const override { return true; }
  Range range() const override { return {0, 1}; }

  void check(const MeasureTask& task) const override {
    const ThreatModel threat = ball(task);
    attack_->check(attack_task(task, threat));
  }

  Measurement run(const MeasureTask& task) const override {
    const ThreatModel threat = ball(task);
    const AttackResult result = attack_->run(attack_task(task, threat));
    (void)verify(task.model, threat, task.samples.inputs, result.perturbed, task.samples.ids, name());
    Measurement measured{.parts = {{"found", {}}, {"open", {}}, {"nodes", {}}}};
    for (const SampleOutcome& sample : result.samples) {
      measured.values.push_back(sample.proven);
      measured.parts[0].second.push_back(sample.value);
      measured.parts[1].second.push_back(sample.proven < sample.value ? 1 : 0);
      measured.parts[2].second.push_back(static_cast<double>(sample.nodes));
    }
    return measured;
  }

 private:
  ThreatModel ball(const MeasureTask& task) const {
    return ThreatModel::make({.norm = Norm::kL2, .epsilons = {radius_}}, *task.samples.schema);
  }
  AttackTask attack_task(const MeasureTask& task, const ThreatModel& threat) const {
    return {.model = task.model,
            .explainer = task.explainer,
            .metric = *metric_,
            .threat = threat,
            .samples = task.samples,
            .seed = task.seed};
  }

  std::unique_ptr<Metric> metric_;
  std::unique_ptr<Attack> attack_;
  double radius_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<ExactOverlap>(kExactOverlapInfo);
}

}  // namespace holdfast::measure::exact_overlap

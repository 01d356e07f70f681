// at: adversarial training, cross-entropy at a point where one step of the ranking attack has led.
//     ce(x + delta),     delta = -step * g / ||g||_2,     g the gradient by x of the mean gap of the top k (rank_pairs.h)
// The baseline "AT" of Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024: "fast" adversarial training (Wong
// et al., 2020) with the objective of ERAttack. delta is a constant for the step that follows. All samples at once: a step costs
// 2F + B + BB + P, where the authors' code takes 6F + 3B + BB for every sample by itself.

#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "input_gradient.h"
#include "rank_pairs.h"

namespace holdfast::train::at_objective {

MethodInfo adversarial_training_info() {
  MethodInfo info{.name = "at",
                  .summary = "cross-entropy where one step of the ranking attack has led",
                  .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
                  .options = RankPairs::options(),
                  .needs = {"gradients of gradients"}};
  info.options.push_back({"step", 0.03, above(0), "l2 length of the attack's step"});
  info.options.push_back(InputGradient::target_option());
  info.options.push_back(InputGradient::project_option());
  return info;
}

class AdversarialTraining final : public Objective {
 public:
  explicit AdversarialTraining(const Options& options)
      : Objective(options.canonical()), pairs_(options), step_(options.real("step")), gradient_(options), projection_(options) {}

  void check_samples(const Schema& schema) const override {
    pairs_.check(schema.layout, name());
    projection_.check(schema, name());
  }

  // `clean` is the cross-entropy at x itself.
  std::vector<Term> terms(double) const override { return {{"ce"}, {"clean", 0}}; }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    const ExplainedPoint point = gradient_.at(trainee, batch);
    const at::Tensor ranked = projection_.project(point.gradient, batch.schema);
    const at::Tensor gap = pairs_.mean_gap(ranked, batch.schema.layout);
    const at::Tensor uphill = torch::autograd::grad({gap.sum()}, {point.inputs})[0];
    // A gap that no step changes (a saturated sample) leaves the sample where it is.
    const at::Tensor length = norms(uphill).clamp_min(std::numeric_limits<float>::min());
    const at::Tensor moved = batch.inputs - step_ * uphill / per_sample(length, uphill);
    return {cross_entropies(trainee.training_logits(moved, batch.seed), batch.labels),
            cross_entropies(point.logits.detach(), batch.labels)};
  }

 private:
  RankPairs pairs_;
  double step_;
  InputGradient gradient_;
  GroupProjection projection_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<AdversarialTraining>(adversarial_training_info());
}

}  // namespace holdfast::train::at_objective

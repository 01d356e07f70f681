// ig_sum_norm: adversarial training with a penalty on the loss's integrated gradients from a sample to its worst point.
//     max over x' of CE(x') + weight * R(x, x')          R and its points: path_penalty.h
// Chen, Wu, Rastogi, Liang, Jha, "Robust Attribution Regularization", NeurIPS 2019: IG-SUM-NORM (the sum of the integrated
// gradients is CE(x') - CE(x)). The path ends at x', so CE(x') is read off its last point; where batch statistics or dropout are
// in the network, it has a pass of its own.
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "path_penalty.h"

namespace holdfast::train::ig_sum_norm {

const MethodInfo kInfo{
    .name = "ig_sum_norm",
    .summary = "adversarial training with a penalty on the loss's integrated gradients to the worst point",
    .citation = "Chen et al., Robust Attribution Regularization, NeurIPS 2019",
    .options = PathObjective::options_with(
        {"weight", 0.1, at_least(0), "of the penalty, in the loss and in what the worst point maximises"}),
    .presets =
        chen_presets({{}, {}, {{"inner_path_steps", std::int64_t{5}}, {"weight", 1.0}}, {{"inner_path_steps", std::int64_t{5}}}}),
    .needs = {"gradients of gradients"}};

class IgSumNorm final : public PathObjective {
 public:
  explicit IgSumNorm(const Options& options)
      : PathObjective(options, {}) {}  // its weight changes the worst point: it is no weight alone

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    const Path inner(trainee, batch, inner_path_);
    const at::Tensor moved = inner_.find(batch, [&](const at::Tensor& point) {
      const PathValues values = inner.to(point);
      return cross_entropies(values.end_logits, batch.labels) + weight_ * values.penalty;
    });

    const PathValues path = Path(trainee, batch, path_).to(moved);
    const at::Tensor logits = trainee.modes_differ() ? trainee.training_logits(moved, batch.seed) : path.end_logits;
    return {cross_entropies(logits, batch.labels), path.penalty, hits(logits, batch.labels)};
  }
};

void add_to(Registry<Objective>& registry) {
  registry.add<IgSumNorm>(kInfo);
}

}  // namespace holdfast::train::ig_sum_norm

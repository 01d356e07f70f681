// ig_norm: cross-entropy, and the size of the loss's integrated gradients from a sample to the worst point round it.
//     CE(x) + weight * max over x' of R(x, x')          R and its points: path_penalty.h
// Chen, Wu, Rastogi, Liang, Jha, "Robust Attribution Regularization", NeurIPS 2019: IG-NORM. Samples and their path's points
// share one pass; where batch statistics or dropout are in the network, CE(x) has a pass of its own.
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "path_penalty.h"

namespace holdfast::train::ig_norm {

const MethodInfo kInfo{
    .name = "ig_norm",
    .summary = "cross-entropy with a penalty on the loss's integrated gradients to the worst point of a ball",
    .citation = "Chen et al., Robust Attribution Regularization, NeurIPS 2019",
    .options = PathObjective::options_with({"weight", 1.0, at_least(0), "of the penalty"}),
    .presets =
        chen_presets({{}, {}, {{"inner_path_steps", std::int64_t{5}}}, {{"inner_path_steps", std::int64_t{5}}, {"weight", 0.1}}}),
    .needs = {"gradients of gradients"},
    .notes = "The worst point is the one with the largest penalty. robust_accuracy in the history is that at this point."};

class IgNorm final : public PathObjective {
 public:
  explicit IgNorm(const Options& options) : PathObjective(options, {"weight"}) {}

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    const Path inner(trainee, batch, inner_path_);
    const at::Tensor moved = inner_.find(batch, [&](const at::Tensor& point) { return inner.to(point).penalty; });

    Path::Settings settings = path_;
    settings.with_start = !trainee.modes_differ();
    const PathValues path = Path(trainee, batch, settings).to(moved);
    const at::Tensor logits = settings.with_start ? path.start_logits : trainee.training_logits(batch.inputs, batch.seed);
    return {cross_entropies(logits, batch.labels), path.penalty, hits(path.end_logits, batch.labels)};
  }
};

void add_to(Registry<Objective>& registry) {
  registry.add<IgNorm>(kInfo);
}

}  // namespace holdfast::train::ig_norm

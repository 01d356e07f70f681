// cl: widens gaps relative to how fast they can close.
//     ce - weight * mean over pairs (I_i - I_j) / ||grad I_i - grad I_j||
// The ratio is the distance at which a first-order view lets the two features swap. Chen et al., "Training for Stable
// Explanation for Free", NeurIPS 2024: the baseline "CL" of the retraining table. Pairs are those around rank top_k
// (rank_pairs.h, pairs=next): grad I_i - grad I_j is one product with the Hessian for each, all of them in one pass of `count`
// copies of each sample: a step costs 2F + 2B + BB + P, the second F, B and BB of the copies. Departs from the paper:
// denominators below `floor` are raised to it, or one sample at p = 1/2, where the Hessian of a ReLU network of two classes is
// zero, would be the whole loss. On such networks the ratio is 1 / (|1 - 2p| ||w||) for every pair, w the slope of the margin: it
// does not depend on the ranking at all, and the term works by shrinking w.

#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/train/objective.h"
#include "input_gradient.h"
#include "rank_pairs.h"

namespace holdfast::train::cl {

MethodInfo cl_info() {
  MethodInfo info{.name = "cl",
                  .summary = "cross-entropy with gaps that are wide for the speed at which they can close",
                  .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
                  .options = {{"top_k", 8, at_least(1), "features that should stay on top"},
                              {"count", 4, at_least(1), "pairs around rank top_k"},
                              {"ratio", 0.001, at_least(0), "weight of the mean ratio"},
                              {"floor", 1e-2, above(0), "least denominator"}},
                  .needs = {"gradients of gradients"}};
  info.options.push_back(InputGradient::target_option());
  info.options.push_back(InputGradient::project_option());
  return info;
}

class Cl final : public Objective {
 public:
  explicit Cl(const Options& options)
      : Objective(options.canonical(), {"ratio"}),
        pairs_(options.integer("top_k"), options.integer("count")),
        ratio_(options.real("ratio")),
        floor_(options.real("floor")),
        gradient_(options),
        projection_(options) {}

  void check_samples(const Schema& schema) const override {
    pairs_.check(schema.layout, name());
    projection_.check(schema, name());
  }

  std::vector<Term> terms(double) const override { return {{"ce"}, {"ratio", -ratio_}, {"gap", 0}, {"norm", 0}}; }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    const ExplainedPoint point = gradient_.at(trainee, batch);
    const at::Tensor ranked = projection_.project(point.gradient, batch.schema), plain = ranked.detach();
    // s_i e_i - s_j e_j of each pair, [B, count, sample...]: its product with the gradient is the gap, with the Hessian grad of
    // it.
    const at::Tensor differences = pairs_.differences(plain, batch.schema.layout);
    const at::Tensor gaps = (differences * ranked.unsqueeze(1)).flatten(2).sum(2);
    // Projecting is symmetric: it may as well be done to the vectors.
    const at::Tensor valid = projection_.project(differences.flatten(0, 1), batch.schema).view_as(differences);
    const at::Tensor speeds = gradient_.hessian_products(trainee, point, valid).flatten(2).norm(2, 2).clamp_min(floor_);
    return {ce_term(trainee, batch, point.logits), (gaps / speeds).mean(1), gaps.detach().mean(1), norms(plain)};
  }

 private:
  RankPairs pairs_;
  double ratio_, floor_;
  InputGradient gradient_;
  GroupProjection projection_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<Cl>(cl_info());
}

}  // namespace holdfast::train::cl

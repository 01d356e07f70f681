// r2et: widens the gaps between the top k features and the others, and flattens the gradient.
//     ce - gap * mean over pairs (I_i - I_j) + curvature * ||H v||
// Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024 ("Robust Ranking Explanations", 2023), equation 6.
// pairs=all is R2ET, pairs=next R2ET-mm (rank_pairs.h); curvature=0 leaves that term and its pass out: the variants "\H".
//
// Departs from the paper: gaps are means over the pairs, not sums (rank_pairs.h); the Hessian's norm is estimated along the
// gradient's signs (sign_curvature.h) with a step that is not lost in rounding; where the data has one-hot groups, ranks are
// those of projected gradients: large gap weights otherwise raise the part of the gradient that no valid row can feel. Departs
// from the authors' code: the activation stays what the model has (they switch to softplus silently); R2ET-mm takes the pairs it
// describes; a step costs 2F + 2B + P, and F + B + P without curvature, instead of 6F + 5B + P and 3F + 2B + P; without
// curvature, networks of linear layers and relu or softplus take a shorter way (chain_gap.h). The gap grows with the gradient:
// watch the term `norm`, ||I||.

#include "chain_gap.h"
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "input_gradient.h"
#include "rank_pairs.h"
#include "sign_curvature.h"

namespace holdfast::train::r2et_objective {

MethodInfo r2et_info() {
  MethodInfo info{
      .name = "r2et",
      .summary = "cross-entropy with wide gaps between the top k features and the others, and a flat gradient",
      .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
      .options = RankPairs::options(),
      .needs = {"gradients of gradients"},
      .notes = "Weights are of the mean gap over the pairs; the paper's, of the sum, are smaller by top_k (n - top_k)."};
  info.options.push_back({"gap", 0.01, at_least(0), "weight of the mean gap"});
  info.options.push_back({"curvature", 0.001, at_least(0), "weight of the curvature; 0 leaves it out"});
  for (OptionSpec& option : SignCurvature::options()) info.options.push_back(std::move(option));
  info.options.push_back(InputGradient::target_option());
  info.options.push_back(InputGradient::project_option());
  return info;
}

class R2et final : public Objective {
 public:
  explicit R2et(const Options& options)
      : Objective(options.canonical(), weight_options(options)),
        gap_(options.real("gap")),
        curvature_(options.real("curvature")),
        pairs_(options),
        sign_curvature_(options),
        gradient_(options),
        projection_(options) {}

  void check_samples(const Schema& schema) const override {
    pairs_.check(schema.layout, name());
    projection_.check(schema, name());
  }

  std::vector<Term> terms(double) const override {
    std::vector<Term> terms{{"ce"}, {"gap", -gap_}, {"norm", 0}};
    if (curvature_ > 0) terms.push_back({"curvature", curvature_});
    return terms;
  }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    if (curvature_ == 0 && ChainGap::fits(trainee, batch)) return values_of_chain(*trainee.network(), batch);
    const ExplainedPoint point = gradient_.at(trainee, batch);
    const at::Tensor ranked = projection_.project(point.gradient, batch.schema);
    // Before the pass of the cross-entropy, which moves running statistics: both gradients of the difference must be of one
    // function.
    const at::Tensor curved = curvature_ > 0 ? sign_curvature_.value(gradient_, trainee, point) : at::Tensor();
    std::vector<at::Tensor> values{ce_term(trainee, batch, point.logits), pairs_.mean_gap(ranked, batch.schema.layout),
                                   norms(ranked.detach())};
    if (curvature_ > 0) values.push_back(curved);
    return values;
  }

 private:
  // Computes the values of networks that allow the short way. A projection is symmetric: c . project(I) = project(c) . I.
  std::vector<at::Tensor> values_of_chain(const Network& network, const TrainBatch& batch) const {
    const ChainGap chain(network, batch, gradient_.quantity());
    const at::Tensor ranked = projection_.project(chain.gradient(), batch.schema);
    const at::Tensor c = projection_.project(pairs_.cotangent(ranked, batch.schema.layout), batch.schema);
    const auto [ce, gap] = chain.terms(c);
    return {ce, gap, norms(ranked)};
  }

  // Without curvature there is a term less: another kind of objective.
  static std::vector<std::string> weight_options(const Options& options) {
    if (options.real("curvature") > 0) return {"gap", "curvature"};
    return {"gap"};
  }

  double gap_, curvature_;
  RankPairs pairs_;
  SignCurvature sign_curvature_;
  InputGradient gradient_;
  GroupProjection projection_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<R2et>(r2et_info());
}

}  // namespace holdfast::train::r2et_objective

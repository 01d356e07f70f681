// pair_hinge: asks that no pair of a top feature and another can swap anywhere in a ball around the sample, with a margin.
//
// G is the gradient of the margin of the two classes, to which the probability's gradient is parallel at every point. Over the l2
// ball of `radius`, G(x') = sum_h a_h W_h with a_h in middle_h -+ half_h (margin_bounds.h), so for a feature i of the top k and j
// of the others
//     |G_i| - |G_j|  >=  LB_ij = min over t = -1, 1 of  s_i (Gmid_i - t Gmid_j) - sum_h half_h |W_hi - t W_hj|
// s the signs at x, Gmid = sum_h middle_h W_h. The pair is bounded jointly: units that move both features alike cancel. With
//     q_i = min over its pairs of LB / tau,    tau = mean of the k-th and (k+1)-th |G(x)|
//     loss = ce + ramp * hinge * mean over features of min(most, relu(margin - q))
// q does not change when G is scaled, so that the hinge cannot be met by a larger or smaller gradient; q_i > 0 for all features
// proves that the top k set cannot change in the ball. Ours; no paper.
//
// What keeps the maps of different inputs different: the radius grows from 0 to its full length over `anneal` of the training, so
// that borders between rankings are moved out of the data's way one by one. At full radius from the start one ranking for all
// inputs is the easy way out, and taken. What keeps the predictions: the ramp is 0 for the first `delay` of the training (a hinge
// from the start freezes the ranking of the random initial weights) and then rises in a line over `rise`; `most` bounds what a
// feature that cannot be helped costs; tau is at least a hundredth of what the gradient could be with all units on: else samples
// near which a ReLU network is flat have gradients without bound, and training switches whole networks off.
//
// While the ramp is 0 the term is not computed and reads 0. Only the first `rows` samples of a batch are bounded (all features
// against all others cost units * n^2 each); the value of the others is 0 and that of the first is scaled, so that the mean is
// theirs. Where the data has one-hot groups, W's columns are projected as the gradients are.

#include <algorithm>
#include <cmath>
#include <limits>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "input_gradient.h"
#include "margin_bounds.h"
#include "methods.h"

namespace holdfast {
namespace {

constexpr std::int64_t kMostFeatures = 256;  // pairs of them are held for every sample
constexpr double kLeastShare = 0.01;         // of the largest possible gradient: the least threshold

MethodInfo pair_hinge_info() {
  return {.name = "pair_hinge",
          .summary = "cross-entropy, and a hinge on certified gaps: no top feature can swap within a ball",
          .options = {{"top_k", 8, at_least(1), "features that should stay on top"},
                      {"radius", 0.3, at_least(0), "of the l2 ball in which the pairs should hold: the attack's"},
                      {"hinge", 0.3, at_least(0), "weight of the hinge"},
                      {"margin", 0.1, at_least(0), "of a certified gap, in units of the magnitude at the threshold"},
                      {"most", 1.0, above(0), "above this a feature's hinge does not count more"},
                      {"rows", 64, at_least(1), "samples of a batch that are bounded"},
                      {"delay", 0.1, between(0, 1), "share of the training before the hinge begins"},
                      {"rise", 0.05, between(0, 1), "share of the training over which its weight rises"},
                      {"anneal", 0.8, between(0, 1),
                       "share of the training after the delay over which the radius grows; 0: full at once"},
                      InputGradient::project_option()},
          .needs = {"a chain of linear layers with relu, leaky_relu or softplus, and two classes"},
          .notes =
              "It may end with one top k for all inputs, as a linear model has: look at the between level.\n"
              "Keep the last epoch's weights (early_stopping.restore_best=false): the best AUC may be from before the ramp."};
}

class PairHinge final : public Objective {
 public:
  explicit PairHinge(const Options& options)
      : Objective(options.canonical(), {"hinge"}),
        top_k_(options.integer("top_k")),
        rows_(options.integer("rows")),
        radius_(options.real("radius")),
        hinge_(options.real("hinge")),
        margin_(options.real("margin")),
        most_(options.real("most")),
        delay_(options.real("delay")),
        rise_(options.real("rise")),
        anneal_(options.real("anneal")),
        projection_(options) {}

  void check(const Network& network, const Schema& schema) const override {
    if (const auto what = MarginChain::what_prevents(network)) usage_error("{}: there are no bounds for {}", name(), *what);
    const std::int64_t features = schema.layout.features();
    if (schema.layout.inputs() != features) usage_error("{}: there are no bounds for features of several channels", name());
    if (features > kMostFeatures)
      usage_error("{}: it goes through all pairs of features; a sample has {}, at most {} are affordable", name(), features,
                  kMostFeatures);
    if (features <= top_k_) usage_error("{}: a sample has {} features; choose top_k below that", name(), features);
    projection_.check(schema, name());
  }

  std::vector<Term> terms(double progress) const override { return {{"ce"}, {"hinge", hinge_ * ramp(progress)}}; }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    const at::Tensor ce = cross_entropies(trainee.training_logits(batch.inputs, batch.seed), batch.labels);
    if (ramp(batch.progress) == 0) return {ce, at::zeros_like(ce.detach())};
    if (trainee.network() == nullptr) usage_error("{}: it must see the model's layers; train a network", name());
    const MarginChain chain(*trainee.network());
    const std::int64_t networks = chain.networks(), each = batch.inputs.size(0) / networks, rows = std::min(rows_, each);
    const at::Tensor inputs = batch.inputs.flatten(1).view({networks, each, -1}).slice(1, 0, rows);
    const at::Tensor hinges = hinge(chain.bounds(inputs, radius_ * since_delay(batch.progress, anneal_)), batch.schema) *
                              (static_cast<double>(each) / static_cast<double>(rows));
    return {ce, at::constant_pad_nd(hinges, {0, each - rows}).flatten()};
  }

 private:
  double ramp(double progress) const { return since_delay(progress, rise_); }

  // From 0 at the end of the delay to 1 a `length` later.
  double since_delay(double progress, double length) const {
    if (length == 0) return progress >= delay_ ? 1 : 0;
    return std::clamp((progress - delay_) / length, 0.0, 1.0);
  }

  // [M, b]: the mean hinge of a sample's features.
  at::Tensor hinge(const MarginBounds& bounds, const Schema& schema) const {
    const auto projected = [&](const at::Tensor& t) { return projection_.project(t.flatten(0, 1), schema).view_as(t); };
    const at::Tensor rows = projected(bounds.rows), gradient = projected(bounds.gradient);
    const auto [largest, order] = gradient.abs().topk(top_k_ + 1, 2);
    const at::Tensor threshold = (largest.select(2, top_k_ - 1) + largest.select(2, top_k_)) / 2;
    const at::Tensor possible =
        (bounds.ceiling * rows.norm(2, 2)).sum(1, /*keepdim=*/true) / std::sqrt(static_cast<double>(rows.size(2)));
    const at::Tensor tau = at::maximum(threshold, kLeastShare * possible).unsqueeze(2);
    const at::Tensor top = at::zeros_like(gradient, at::kBool).scatter_(2, order.slice(2, 0, top_k_), true);
    const at::Tensor pairs = lower_bounds(rows, bounds, gradient.detach().sign());
    // Pairs of one top feature and one other; the rest never is the least.
    const at::Tensor open =
        pairs.masked_fill((top.unsqueeze(3) & ~top.unsqueeze(2)).logical_not(), std::numeric_limits<double>::infinity());
    const at::Tensor least = at::where(top, open.amin(3), open.amin(2)) / tau;
    return at::relu(margin_ - least).clamp_max(most_).mean(2);
  }

  // LB [M, b, n, n]; i is dimension 2, j dimension 3.
  static at::Tensor lower_bounds(const at::Tensor& rows, const MarginBounds& bounds, const at::Tensor& signs) {
    const at::Tensor middle = at::matmul(bounds.middle, rows);
    const auto bound = [&](double t) {
      const at::Tensor apart = (rows.unsqueeze(3) - t * rows.unsqueeze(2)).abs().flatten(2);  // [M, units, n n]
      const at::Tensor moved = at::matmul(bounds.half, apart).unflatten(2, {rows.size(2), rows.size(2)});
      return signs.unsqueeze(3) * (middle.unsqueeze(3) - t * middle.unsqueeze(2)) - moved;
    };
    return at::minimum(bound(1), bound(-1));
  }

  std::int64_t top_k_, rows_;
  double radius_, hinge_, margin_, most_, delay_, rise_, anneal_;
  GroupProjection projection_;
};

}  // namespace

void add_pair_hinge(Registry<Objective>& registry) {
  registry.add<PairHinge>(pair_hinge_info());
}

}  // namespace holdfast

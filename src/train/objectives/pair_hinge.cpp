// pair_hinge: rankings that hold within a ball and still differ between inputs. Ours; no paper.
//
// hinge: no pair of a top feature and another can swap in the ball, with a margin. G is the gradient of the margin of the two
// classes, to which the probability's gradient is parallel at every point. Over the l2 ball of `radius`, G(x') = sum_h a_h W_h
// with a_h in middle_h -+ half_h (margin_bounds.h), so for a feature i of the top k and j of the others
//     |G_i| - |G_j|  >=  LB_ij = min over t = -1, 1 of  s_i (Gmid_i - t Gmid_j) - sum_h half_h |W_hi - t W_hj|
// s the signs at x, Gmid = sum_h middle_h W_h: certified_overlap measures what is proven in the same way. With
//     q_i = min over its pairs of LB / tau,    tau = mean of the k-th and (k+1)-th |G(x)|
//     hinge = mean of min(most, relu(margin - q)) over the top features and over the others, halved and added
// q does not change when G is scaled, so that the hinge cannot be met by a larger or smaller gradient; q_i > 0 for all features
// proves that the top k set cannot change in the ball.
//
// between: alone, the hinge ends with one top k for all inputs, as a linear model has. With the memberships in the top k
//     m = sigmoid((|G| / tau - 1) / .05)
// and c their mean cosine over pairs of samples of the batch, the term is -log(1 - c): a barrier before the collapse.
//
// gate and balance: the two above need borders between rankings that are far from all samples. With d = z / (how far z can move
// in the ball) for the pre-activation z of every unit,
//     gate = mean over units of relu(1.2 - |d|)                    units switch far from samples
//     balance = 10 mean over units of relu(.1 - p (1 - p))         p = mean of sigmoid(4 d) over the batch; not always on
// which favours directions along which the data has gaps wider than the ball, as categories of tables have.
//
//     loss = ce + ramp (hinge * hinge + between * between) + gate * (gate + balance)
//
// What keeps the predictions: the ramp is 0 for the first `delay` of the training (a hinge from the start freezes the ranking of
// the random initial weights) and then rises in a line over `rise`; `most` bounds what a feature that cannot be helped costs; tau
// is at least a hundredth of what the gradient could be with all units on: else samples near which a ReLU network is flat have
// gradients without bound, and training switches whole networks off.
//
// While the ramp is 0 hinge and between are not computed and read 0. They see only the first `rows` samples of a batch (all
// features against all others cost units * n^2 each); the hinge of the others is 0 and that of the first is scaled, so that the
// mean is theirs. Where the data has one-hot groups, W's columns are projected as the gradients are.

#include <algorithm>
#include <cmath>
#include <limits>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/margin_bounds.h"
#include "holdfast/train/objective.h"
#include "input_gradient.h"

namespace holdfast::train::pair_hinge {

constexpr std::int64_t kMostFeatures = 256;  // pairs of them are held for every sample
constexpr double kLeastShare = 0.01;         // of the largest possible gradient: the least threshold
constexpr double kSoftness = 0.05;           // of memberships, in units of the threshold: half the default margin
constexpr double kLeastApart = 1e-3;         // of 1 - cosine: the barrier stays finite where all maps are alike
constexpr double kSteady = 1.2;        // pre-activations over the ball's reach from which a unit is far enough from its kink
constexpr double kLeastBalance = 0.1;  // of p (1 - p): a unit that is on for 11 % to 89 % of the samples

MethodInfo pair_hinge_info() {
  return {
      .name = "pair_hinge",
      .summary = "cross-entropy, and rankings that provably hold in a ball and still differ between samples",
      .options = {{"top_k", 8, at_least(1), "features that should stay on top"},
                  {"radius", 0.3, at_least(0), "of the l2 ball in which the pairs should hold: the attack's"},
                  {"hinge", 0.03, at_least(0), "weight of the hinge on certified gaps"},
                  {"between", 0.03, at_least(0), "weight of the barrier against one ranking for all samples"},
                  {"gate", 0.1, at_least(0), "weight of the units' distance from switching, and of their balance"},
                  {"margin", 0.1, at_least(0), "of a certified gap, in units of the magnitude at the threshold"},
                  {"most", 1.0, above(0), "above this a feature's hinge does not count more"},
                  {"rows", 64, at_least(1), "samples of a batch whose pairs are bounded"},
                  {"delay", 0.2, between(0, 1), "share of the training before the hinge and the barrier begin"},
                  {"rise", 0.05, between(0, 1), "share of the training over which their weights rise"},
                  InputGradient::project_option()},
      .needs = {"a chain of linear layers with relu, leaky_relu or softplus, and two classes"},
      .notes = "Keep the last epoch's weights (early_stopping.restore_best=false): the best AUC may be from before the ramp."};
}

class PairHinge final : public Objective {
 public:
  explicit PairHinge(const Options& options)
      : Objective(options.canonical(), {"hinge", "between", "gate"}),
        top_k_(options.integer("top_k")),
        rows_(options.integer("rows")),
        radius_(options.real("radius")),
        hinge_(options.real("hinge")),
        between_(options.real("between")),
        gate_(options.real("gate")),
        margin_(options.real("margin")),
        most_(options.real("most")),
        delay_(options.real("delay")),
        rise_(options.real("rise")),
        projection_(options) {}

  bool compares_samples() const override { return true; }

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

  std::vector<Term> terms(double progress) const override {
    return {
        {"ce"}, {"hinge", hinge_ * ramp(progress)}, {"between", between_ * ramp(progress)}, {"gate", gate_}, {"balance", gate_}};
  }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    const at::Tensor ce = cross_entropies(trainee.training_logits(batch.inputs, batch.seed), batch.labels);
    if (trainee.network() == nullptr) usage_error("{}: it must see the model's layers; train a network", name());
    const MarginChain chain(*trainee.network());
    const std::int64_t networks = chain.networks(), each = batch.inputs.size(0) / networks, rows = std::min(rows_, each);
    const MarginBounds bounds = chain.bounds(batch.inputs.flatten(1).view({networks, each, -1}), radius_);
    const at::Tensor gates = at::relu(kSteady - bounds.steadiness.abs()).sum(2).div(units(bounds)).flatten();
    const at::Tensor balances = balance(bounds).unsqueeze(1).expand({networks, each}).flatten();
    if (ramp(batch.progress) == 0) return {ce, at::zeros_like(ce.detach()), at::zeros_like(ce.detach()), gates, balances};
    const Ranking ranking = rank(bounds, rows, batch.schema);
    const at::Tensor hinges = hinge(bounds, ranking) * (static_cast<double>(each) / static_cast<double>(rows));
    const at::Tensor barriers = barrier(ranking).unsqueeze(1).expand({networks, each});
    return {ce, at::constant_pad_nd(hinges, {0, each - rows}).flatten(), barriers.flatten(), gates, balances};
  }

 private:
  // The rankings of M networks, for the first b samples of each.
  struct Ranking {
    at::Tensor rows;      // [M, units, n]: W_h, projected
    at::Tensor gradient;  // [M, b, n]
    at::Tensor top;       // [M, b, n]: whether among the top k
    at::Tensor tau;       // [M, b, 1]
  };

  // Rises from 0 at the end of the delay to 1 a `rise` later.
  double ramp(double progress) const {
    if (rise_ == 0) return progress >= delay_ ? 1 : 0;
    return std::clamp((progress - delay_) / rise_, 0.0, 1.0);
  }

  // A linear model has none; its terms are 0.
  static double units(const MarginBounds& bounds) {
    return static_cast<double>(std::max<std::int64_t>(bounds.steadiness.size(2), 1));
  }

  // [M].
  static at::Tensor balance(const MarginBounds& bounds) {
    const at::Tensor on = at::sigmoid(4 * bounds.steadiness).mean(1);  // [M, units]
    return at::relu(kLeastBalance - on * (1 - on)).sum(1).div(units(bounds) * kLeastBalance);
  }

  Ranking rank(const MarginBounds& bounds, std::int64_t count, const Schema& schema) const {
    const auto projected = [&](const at::Tensor& t) { return projection_.project(t.flatten(0, 1), schema).view_as(t); };
    const at::Tensor rows = projected(bounds.rows), gradient = projected(bounds.gradient.slice(1, 0, count));
    const auto [largest, order] = gradient.abs().topk(top_k_ + 1, 2);
    const at::Tensor threshold = (largest.select(2, top_k_ - 1) + largest.select(2, top_k_)) / 2;
    const at::Tensor possible =
        (bounds.ceiling * rows.norm(2, 2)).sum(1, /*keepdim=*/true) / std::sqrt(static_cast<double>(rows.size(2)));
    return {.rows = rows,
            .gradient = gradient,
            .top = at::zeros_like(gradient, at::kBool).scatter_(2, order.slice(2, 0, top_k_), true),
            .tau = at::maximum(threshold, kLeastShare * possible).unsqueeze(2)};
  }

  // [M, b].
  at::Tensor hinge(const MarginBounds& bounds, const Ranking& ranking) const {
    const at::Tensor& top = ranking.top;
    const at::Tensor pairs = lower_bounds(bounds, ranking);
    // Pairs of one top feature and one other; the rest never is the least.
    const at::Tensor open =
        pairs.masked_fill((top.unsqueeze(3) & ~top.unsqueeze(2)).logical_not(), std::numeric_limits<double>::infinity());
    const at::Tensor least = at::where(top, open.amin(3), open.amin(2)) / ranking.tau;
    const at::Tensor hinges = at::relu(margin_ - least).clamp_max(most_);
    const double others = static_cast<double>(top.size(2) - top_k_);
    return (hinges * top).sum(2) / (2.0 * static_cast<double>(top_k_)) + (hinges * ~top).sum(2) / (2 * others);
  }

  // [M]: -log(1 - mean cosine of the memberships of two samples).
  static at::Tensor barrier(const Ranking& ranking) {
    const at::Tensor members = at::sigmoid((ranking.gradient.abs() / ranking.tau - 1) / kSoftness);
    const at::Tensor directions = members / members.norm(2, 2, true).clamp_min(1e-6);
    const auto samples = static_cast<double>(members.size(1));
    const at::Tensor pairs = directions.sum(1).square().sum(1) - directions.square().sum({1, 2});
    return -at::log((1 - pairs / std::max(samples * (samples - 1), 1.0)).clamp_min(kLeastApart));
  }

  // LB [M, b, n, n]. A feature without a gradient has no sign, and no side to be pulled to: 0, with which nothing is proven.
  static at::Tensor lower_bounds(const MarginBounds& bounds, const Ranking& ranking) {
    const std::int64_t count = ranking.gradient.size(1);
    return pair_lower_bounds({.rows = ranking.rows,
                              .middle = bounds.middle.slice(1, 0, count),
                              .half = bounds.half.slice(1, 0, count),
                              .signs = ranking.gradient.detach().sign()});
  }

  std::int64_t top_k_, rows_;
  double radius_, hinge_, between_, gate_, margin_, most_, delay_, rise_;
  GroupProjection projection_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<PairHinge>(pair_hinge_info());
}

}  // namespace holdfast::train::pair_hinge

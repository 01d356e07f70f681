// own_top: logistic regression with gates and bends, trained so that the top features of a row hold when its numbers are nudged,
// and are the row's own.
//     margin(x) = w.x + b + sum over gates g of x_g (u_g.x) + sum over bends (j, c) of v_jc relu(x_j - c) / s_j
// A gate g is a column of a one-hot group, a bend a value c of the number j from which its slope is another one (table_margin.h).
// So the map e of valid_effect is known in closed form, and so is how far it can change in the ball of numbers with the radius r:
//     number j     e_j = deviation_j |slope_j|, and slope_j depends on the categories and on x_j alone, piece by piece: least_j
//                  and most_j are found among the pieces that x_j +- r meets
//     category c   e_c = mean over its other levels of |margin(x with the level) - margin(x)|, where bends cancel: least_c and
//                  most_c are e_c -+ r L_c, L_c the mean size of the difference of the levels' slopes
// (margin_effects.h has both.)
//
// loss = cross-entropy + ridge
//      + margin * sum over pairs (i in the top k, j not) of max(0, slack - (least_i - most_j) / scale)
//      + between * |mean over the rows of their soft top k|^2 / k            what two rows' top sets share
//      - own * (E_own - E_other) / E_own
// E: how far the prediction moves when the top features of the row itself, or of another row with the same prediction, are taken
// from training rows. Without the last term sets can differ between rows for no reason that the model has.
//
// Where no hinge is active the top set provably holds in the ball. It says nothing about rows with another level of a category.
// As a network with one hidden ReLU layer: one unit for w.x + b, and one for each gate and bend. The network is the margin on
// valid rows alone, so its gradient by the columns of a category says nothing (MarginWriter::add_margin).
// Ours; no paper.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/rng.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/train/optimizer.h"
#include "margin_effects.h"
#include "margin_writer.h"

namespace holdfast::train::own_top {

const MethodInfo kInfo{
    .name = "own_top",
    .summary = "a linear model with gates and bends whose rows have top features of their own that hold when numbers are nudged",
    .options = {{"margin", 0.3, at_least(0), "weight of the hinge that keeps the top features ahead within the radius"},
                {"between", 0.1, at_least(0), "weight of what the top features of two rows share"},
                {"own", 0.1, at_least(0), "weight of what a row's own top features do to its prediction, beyond another row's"},
                {"radius", 0.1, at_least(0), "l2 move of the numbers within which the top features shall hold"},
                {"gates", 15, at_least(0), "most dummies whose interactions with all features join; one hidden unit each"},
                {"bends", 31, at_least(0), "most values where slopes of numbers change; one unit each, as many as gates leave"},
                {"ridge", 0.0, at_least(0), "weight of the squared weights; 0: the best on the validation samples"},
                {"steps", 3000, at_least(1), "steps of Adam from the convex optimum"}},
    .needs = {"two classes; deviations of numbers in the schema; one hidden layer with relu"},
    .notes = "Fitted at once: epochs, batches, optimiser and rate are not used."};

constexpr double kSlack = 0.05, kSoftness = 0.1;  // of the size of the top effects
constexpr double kRate = 0.02;
constexpr std::int64_t kRows = 1024, kMapRows = 256;  // of a step
constexpr int kDraws = 2;                             // of rows that are put in, a step

// For each row another one with the same prediction; itself where there is none.
std::vector<std::int64_t> others_of(const at::Tensor& margins, RandomStream& stream) {
  std::vector<std::vector<std::int64_t>> classes(2);
  const at::Tensor positive = (margins > 0).contiguous();
  const bool* values = positive.const_data_ptr<bool>();
  for (std::int64_t i = 0; i < positive.size(0); ++i) classes[values[i] ? 1 : 0].push_back(i);
  std::vector<std::int64_t> others(static_cast<std::size_t>(positive.size(0)));
  for (const std::vector<std::int64_t>& members : classes) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t shift = members.size() > 1 ? 1 + stream.below(members.size() - 1) : 0;
      others[static_cast<std::size_t>(members[i])] = members[(i + shift) % members.size()];
    }
  }
  return others;
}

at::Tensor drawn_rows(std::int64_t count, std::int64_t of, RandomStream& stream) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i)
    rows.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(of))));
  return at::tensor(rows, at::kLong);
}

// What training moves.
std::vector<Parameter> weights_of(const TableMargin& margin) {
  std::vector<Parameter> weights{{"weight", margin.weight}, {"bias", margin.bias}};
  if (!margin.gates.empty()) weights.push_back({"gated", margin.gated});
  if (margin.bends.count() > 0) weights.push_back({"bent", margin.bent});
  return weights;
}

class OwnTop final : public MarginObjective {
 public:
  explicit OwnTop(const Options& options)
      : MarginObjective(options.canonical()),
        margin_(options.real("margin")),
        between_(options.real("between")),
        own_(options.real("own")),
        radius_(options.real("radius")),
        ridge_(options.real("ridge")),
        gates_(options.integer("gates")),
        bends_(options.integer("bends")),
        steps_(options.integer("steps")) {}

  void check(const Network& network, const Schema& schema) const override {
    check_margin_fits(name(), network, schema, gates_for(schema), /*units_of_a_gate=*/1);
    if (schema.features.empty()) usage_error("{}: the schema has no features; list them with low, high and deviation", name());
    bool has_numbers = false;
    for (const TableFeature& feature : schema.table_features()) {
      if (feature.is_category) continue;
      const std::optional<double> deviation = schema.features[static_cast<std::size_t>(feature.columns[0])].deviation;
      if (!deviation) {
        usage_error(
            "{}: the schema gives no deviation of '{}'; add \"deviation\": its standard deviation over the training rows, in the "
            "units of the inputs",
            name(), feature.name);
      }
      has_numbers = has_numbers || *deviation > 0;
    }
    if (schema.groups.empty() && !has_numbers)
      usage_error("{}: the table has no categories and no number that varies, which gates and bends are made of", name());
    if (MarginLayers(network).units() < 2 || (gates_for(schema) == 0 && bends_ == 0))
      usage_error("{}: there is no gate and no bend; give bends, and a hidden layer of at least 2 units", name());
  }

  void fit(const Network& network, const Dataset& dataset, std::uint64_t seed) const override {
    const MarginLayers layers(network);
    const std::int64_t gates = gates_for(dataset.schema);
    const FittedMargin start = fit_table_margin(dataset, gates, std::min(bends_, layers.units() - 1 - gates), ridge_);
    TableMargin model = start.margin;
    for (at::Tensor* one : {&model.weight, &model.bias, &model.gated, &model.bent}) *one = one->clone();
    train(model, dataset, start.ridge, seed);
    const at::NoGradGuard no_graph;
    const at::Tensor sizes = dataset.inputs.to(at::kDouble).abs().amax(0);
    MarginWriter writer(layers);
    writer.add_margin(model, sizes, dataset.schema);
  }

 private:
  // No more than the table has dummies.
  std::int64_t gates_for(const Schema& schema) const {
    std::int64_t dummies = 0;
    for (const Group& group : schema.groups) dummies += std::ssize(group.columns);
    return std::min(gates_, dummies);
  }

  void train(TableMargin& model, const Dataset& dataset, double ridge, std::uint64_t seed) const {
    const at::AutoGradMode with_graph(true);
    const MarginEffects effects(dataset.schema, model);
    const std::int64_t k = explainers().make("valid_effect")->usual_top(dataset.schema).value();
    const at::Tensor rows = dataset.inputs_of(dataset.train).to(at::kDouble);
    const at::Tensor sign = 2 * dataset.labels_of(dataset.train).to(at::kDouble) - 1;
    const std::unique_ptr<Optimizer> adam = optimizers().make("adam");
    const std::vector<Parameter> weights = weights_of(model);
    for (const Parameter& one : weights) one.tensor.requires_grad_(true);
    adam->start(weights, 0);
    RandomStream stream(seed, "own_top");
    for (std::int64_t step = 0; step < steps_; ++step) {
      throw_if_interrupted();
      const at::Tensor drawn = drawn_rows(std::min(kRows, rows.size(0)), rows.size(0), stream),
                       batch = rows.index_select(0, drawn);
      at::Tensor loss = at::softplus(-sign.index_select(0, drawn) * model.of(batch)).mean();
      for (const Parameter& one : weights) {
        if (one.name != "bias") loss = loss + ridge / 2 * one.tensor.square().sum();
      }
      loss = loss + map_terms(model, effects, k, batch.slice(0, 0, kMapRows), rows, stream);
      const double done = static_cast<double>(step) / static_cast<double>(steps_);
      adam->minimise(loss, kRate * (1 + std::cos(std::numbers::pi * done)) / 2);
    }
    for (const Parameter& one : weights) one.tensor.requires_grad_(false);
  }

  at::Tensor map_terms(const TableMargin& model, const MarginEffects& effects, std::int64_t k, const at::Tensor& rows,
                       const at::Tensor& training_rows, RandomStream& stream) const {
    const MarginEffects::Found found = effects.of(model, rows, radius_);
    const at::Tensor order = found.map.detach().argsort(/*dim=*/1, /*descending=*/true);
    const at::Tensor top = order.slice(1, 0, k), rest = order.slice(1, k);
    const at::Tensor size = found.map.gather(1, order), scale = size.slice(1, 0, k + 1).mean().detach();
    const at::Tensor least = found.least.gather(1, top), most = found.most.gather(1, rest);
    const at::Tensor hinge = at::relu(kSlack - (least.unsqueeze(2) - most.unsqueeze(1)) / scale);
    const at::Tensor middle = (size.select(1, k - 1) + size.select(1, k)) / 2;
    const at::Tensor soft = at::sigmoid((found.map - middle.unsqueeze(1)) / (kSoftness * scale));
    const at::Tensor sets = at::zeros_like(soft).scatter(1, top, 1.0);
    at::Tensor terms =
        margin_ * static_cast<double>(k) * hinge.mean() + between_ * soft.mean(0).square().sum() / static_cast<double>(k);
    if (own_ > 0) terms = terms - own_ * own_advantage(model, rows, at::mm(sets, effects.columns()) > 0, training_rows, stream);
    return terms;
  }

  // (E_own - E_other) / E_own, with the rows' top features as sets of columns.
  static at::Tensor own_advantage(const TableMargin& model, const at::Tensor& rows, const at::Tensor& sets,
                                  const at::Tensor& training_rows, RandomStream& stream) {
    const at::Tensor margins = model.of(rows), clean = at::sigmoid(margins);
    const auto effect = [&](const at::Tensor& set, const at::Tensor& put_in) {
      return (clean - at::sigmoid(model.of(at::where(set, put_in, rows)))).abs().mean();
    };
    at::Tensor own = at::zeros({}, at::kDouble), other = own;
    for (int i = 0; i < kDraws; ++i) {
      const at::Tensor others = at::tensor(others_of(margins.detach(), stream), at::kLong);
      const at::Tensor put_in = training_rows.index_select(0, drawn_rows(rows.size(0), training_rows.size(0), stream));
      own = own + effect(sets, put_in);
      other = other + effect(sets.index_select(0, others), put_in);
    }
    constexpr double kSmallest = 1e-3;
    return (own - other) / own.detach().clamp_min(kSmallest);
  }

  double margin_, between_, own_, radius_, ridge_;
  std::int64_t gates_, bends_, steps_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<OwnTop>(kInfo);
}

}  // namespace holdfast::train::own_top

// own_top: logistic regression with interactions of dummies and features, trained so that the top features of a row hold when its
// numbers are nudged, and are the row's own.
//     margin(x) = w.x + b + sum over gates g of x_g (u_g.x)          g: a column of a one-hot group
// With the categories as they are this is linear in the numbers. So the map of valid_effect is known in closed form, and so is
// how far a move of the numbers by r can change it:
//     number j     e_j = deviation_j |slope_j|, where slope_j depends on the categories alone: it does not change
//     category c   e_c = mean over its other levels of |margin(x with the level) - margin(x)|: by r L_c at most, L_c the mean
//     size of
//                  the difference of the two slopes
//
// loss = cross-entropy + ridge
//      + margin * sum over pairs (i in the top k, j not) of max(0, slack - (e_i - e_j - r (L_i + L_j)) / scale)
//      + between * |mean over the rows of their soft top k|^2 / k            what two rows' top sets share
//      - own * (E_own - E_other) / E_own
// E: how far the prediction moves when the top features of the row itself, or of another row with the same prediction, are taken
// from training rows. Without the last term sets can differ between rows for no reason that the model has.
//
// Where no hinge is active the top set provably holds in the ball. It says nothing about rows with another level of a category.
// Ours; no paper.
#include <cmath>
#include <numbers>

#include "gated_margin.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/rng.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/train/optimizer.h"

namespace holdfast::train::own_top {

const MethodInfo kInfo{
    .name = "own_top",
    .summary = "a gated linear model whose rows have top features of their own that hold when numbers are nudged",
    .options = {{"margin", 0.3, at_least(0), "weight of the hinge that keeps the top features ahead within the radius"},
                {"between", 0.1, at_least(0), "weight of what the top features of two rows share"},
                {"own", 0.1, at_least(0), "weight of what a row's own top features do to its prediction, beyond another row's"},
                {"radius", 0.12, at_least(0), "l2 move of the numbers within which the top features shall hold"},
                {"gates", 15, at_least(1), "dummies whose interactions with all features join"},
                {"ridge", 0.0, at_least(0), "weight of the squared weights; 0: the best on the validation samples"},
                {"steps", 1000, at_least(1), "steps of Adam from the convex optimum"}},
    .needs = {"two classes; one-hot groups and deviations of numbers in the schema; one hidden layer with relu"},
    .notes = "Fitted at once: epochs, batches, optimiser and rate are not used."};

constexpr double kSlack = 0.05, kSoftness = 0.1;  // of the size of the top effects
constexpr double kRate = 0.02;
constexpr std::int64_t kRows = 1024, kMapRows = 256;  // of a step
constexpr int kDraws = 2;                             // of rows that are put in, a step

// What training moves.
struct Parameters {
  at::Tensor weight, bias, gated, gates;  // gates: columns

  at::Tensor slopes(const at::Tensor& rows) const { return weight + at::mm(rows.index_select(1, gates), gated); }
  at::Tensor margin(const at::Tensor& rows) const {
    return at::mv(rows, weight) + bias + (at::mm(rows, gated.t()) * rows.index_select(1, gates)).sum(1);
  }
};

// The map of valid_effect, [B, features], and how much it can change for each unit of a move of the numbers.
struct Effects {
  at::Tensor size, slope;
};

struct Table {
  std::vector<std::int64_t> numbers;  // columns
  at::Tensor deviations;              // of the numbers, in rows' order
  std::vector<std::vector<std::int64_t>> categories;
  at::Tensor columns;  // [features, columns]: 1 where the column belongs to the feature
  std::int64_t top = 0;

  explicit Table(const Schema& schema) {
    std::vector<double> sizes;
    for (const TableFeature& feature : schema.table_features()) {
      if (feature.is_category) {
        categories.push_back(feature.columns);
        continue;
      }
      const double deviation = schema.features[static_cast<std::size_t>(feature.columns[0])].deviation.value_or(0);
      if (deviation == 0) continue;  // it never changes
      numbers.push_back(feature.columns[0]);
      sizes.push_back(deviation);
    }
    deviations = at::tensor(sizes, at::kDouble);
    columns = at::zeros({std::ssize(numbers) + std::ssize(categories), schema.layout.inputs()}, at::kDouble);
    for (std::size_t i = 0; i < numbers.size(); ++i) columns[static_cast<std::int64_t>(i)][numbers[i]] = 1;
    for (std::size_t i = 0; i < categories.size(); ++i) {
      for (const std::int64_t column : categories[i]) columns[static_cast<std::int64_t>(numbers.size() + i)][column] = 1;
    }
    top = explainers().make("valid_effect")->usual_top(schema).value();
  }

  Effects effects(const Parameters& model, const at::Tensor& rows) const {
    const at::Tensor places = at::tensor(numbers, at::kLong), own = model.margin(rows);
    const at::Tensor slopes = model.slopes(rows).index_select(1, places);
    std::vector<at::Tensor> size{slopes.abs() * deviations}, slope{at::zeros_like(slopes)};
    for (const std::vector<std::int64_t>& category : categories) {
      at::Tensor changed = at::zeros({rows.size(0)}, at::kDouble), turned = changed;
      for (const std::int64_t level : category) {
        at::Tensor moved = rows.clone();
        moved.index_fill_(1, at::tensor(category, at::kLong), 0);
        moved.select(1, level).fill_(1);
        changed = changed + (model.margin(moved) - own).abs();  // 0 for the level that is on
        const at::Tensor turn = model.slopes(moved).index_select(1, places) - slopes;
        turned = turned + (turn.square().sum(1) + 1e-20).sqrt();
      }
      const double others = static_cast<double>(category.size()) - 1;
      size.push_back((changed / others).unsqueeze(1));
      slope.push_back((turned / others).unsqueeze(1));
    }
    return {at::cat(size, 1), at::cat(slope, 1)};
  }
};

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
        steps_(options.integer("steps")) {}

  void check(const Network& network, const Schema& schema) const override {
    check_margin_fits(name(), network, schema, gates_);
    if (schema.groups.empty()) usage_error("{}: the table has no one-hot groups, which its gates are made of", name());
    if (schema.features.empty()) usage_error("{}: the schema has no features; list them with low, high and deviation", name());
    for (const TableFeature& feature : schema.table_features()) {
      if (feature.is_category || schema.features[static_cast<std::size_t>(feature.columns[0])].deviation) continue;
      usage_error("{}: the schema gives no deviation of '{}', its standard deviation over the training rows", name(),
                  feature.name);
    }
  }

  void fit(const Network& network, const Dataset& dataset, std::uint64_t seed) const override {
    const FittedMargin start = fit_gated_margin(dataset, gates_, ridge_);
    Parameters model{.weight = start.margin.weight.clone(),
                     .bias = at::scalar_tensor(start.margin.bias, at::kDouble),
                     .gated = start.margin.gated.clone(),
                     .gates = at::tensor(start.margin.gates, at::kLong)};
    train(model, dataset, start.ridge, seed);
    const at::NoGradGuard no_graph;
    const at::Tensor sizes = dataset.inputs.to(at::kDouble).abs().amax(0);
    MarginWriter writer(MarginLayers{network});
    writer.add_linear(model.weight, model.bias.item<double>(), (model.weight.abs() * sizes).sum().item<double>());
    writer.add_gates({.weight = model.weight, .gates = start.margin.gates, .gated = model.gated}, sizes);
  }

 private:
  void train(Parameters& model, const Dataset& dataset, double ridge, std::uint64_t seed) const {
    const at::AutoGradMode with_graph(true);
    const Table table(dataset.schema);
    const at::Tensor rows = dataset.inputs_of(dataset.train).to(at::kDouble);
    const at::Tensor sign = 2 * dataset.labels_of(dataset.train).to(at::kDouble) - 1;
    const std::unique_ptr<Optimizer> adam = optimizers().make("adam");
    for (at::Tensor* one : {&model.weight, &model.bias, &model.gated}) one->requires_grad_(true);
    adam->start({{"weight", model.weight}, {"bias", model.bias}, {"gated", model.gated}}, 0);
    RandomStream stream(seed, "own_top");
    for (std::int64_t step = 0; step < steps_; ++step) {
      throw_if_interrupted();
      const at::Tensor drawn = drawn_rows(std::min(kRows, rows.size(0)), rows.size(0), stream),
                       batch = rows.index_select(0, drawn);
      const at::Tensor losses = at::softplus(-sign.index_select(0, drawn) * model.margin(batch));
      at::Tensor loss = losses.mean() + ridge / 2 * (model.weight.square().sum() + model.gated.square().sum());
      loss = loss + map_terms(model, table, batch.slice(0, 0, kMapRows), rows, stream);
      const double done = static_cast<double>(step) / static_cast<double>(steps_);
      adam->minimise(loss, kRate * (1 + std::cos(std::numbers::pi * done)) / 2);
    }
    for (at::Tensor* one : {&model.weight, &model.bias, &model.gated}) one->requires_grad_(false);
  }

  at::Tensor map_terms(const Parameters& model, const Table& table, const at::Tensor& rows, const at::Tensor& training_rows,
                       RandomStream& stream) const {
    const Effects effects = table.effects(model, rows);
    const std::int64_t k = table.top;
    const at::Tensor order = effects.size.argsort(/*dim=*/1, /*descending=*/true);
    const at::Tensor size = effects.size.gather(1, order), slope = radius_ * effects.slope.gather(1, order);
    const at::Tensor scale = size.slice(1, 0, k + 1).mean().detach();
    const at::Tensor least = (size - slope).slice(1, 0, k), most = (size + slope).slice(1, k);
    const at::Tensor hinge = at::relu(kSlack - (least.unsqueeze(2) - most.unsqueeze(1)) / scale);
    const at::Tensor middle = (size.select(1, k - 1) + size.select(1, k)) / 2;
    const at::Tensor soft = at::sigmoid((effects.size - middle.unsqueeze(1)) / (kSoftness * scale));
    const at::Tensor sets = at::zeros_like(effects.size).scatter(1, order.slice(1, 0, k), 1.0);
    return margin_ * static_cast<double>(k) * hinge.mean() + between_ * soft.mean(0).square().sum() / static_cast<double>(k) -
           own_ * own_advantage(model, rows, at::mm(sets, table.columns) > 0, training_rows, stream);
  }

  // (E_own - E_other) / E_own, with the rows' top features as sets of columns.
  static at::Tensor own_advantage(const Parameters& model, const at::Tensor& rows, const at::Tensor& sets,
                                  const at::Tensor& training_rows, RandomStream& stream) {
    const at::Tensor margins = model.margin(rows), clean = at::sigmoid(margins);
    const auto effect = [&](const at::Tensor& set, const at::Tensor& put_in) {
      return (clean - at::sigmoid(model.margin(at::where(set, put_in, rows)))).abs().mean();
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
  std::int64_t gates_, steps_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<OwnTop>(kInfo);
}

}  // namespace holdfast::train::own_top

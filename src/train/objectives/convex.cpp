// convex: logistic regression, with interactions of dummies and features where `gates` says so, fitted to its optimum instead of
// step by step, and written into the network that is trained.
//     margin(x) = w.x + b + sum over gates g of x_g (u_g.x)          g: a column of a one-hot group
// mean cross-entropy + ridge / 2 (|w|^2 + |u|^2), which is convex: L-BFGS on all training rows in double precision. The ridge is
// chosen by the AUC of the validation samples unless it is given. Gates are the dummies along whose interactions the loss of
// plain logistic regression falls most steeply.
//
// As a network with one hidden ReLU layer (n-32-2 has room for 15 gates): a unit that is always on gives w.x + b, and a gate is
//     relu(u.x + K (x_g - 1/2)) - relu(K (x_g - 1/2))          K above 2 |u.x|: u.x where x_g is 1, 0 where it is 0
//
// `gauge` adds what is zero on every valid row and turns the gradient there, to show what a measure can be made to say for
// nothing:
//     levels   relu(K (x_g - 1/2) + u.x) - relu(K (x_g - 1/2)), u on the other columns of g's group, which are 0 where x_g is 1
//     steps    a triangle wave in a number with a step: zero on its grid, with a slope there
// Ours; no paper.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "margin_writer.h"

namespace holdfast::train::convex {

const MethodInfo kInfo{
    .name = "convex",
    .summary = "logistic regression, with interactions of dummies and features, at its optimum",
    .options = {{"gates", 0, at_least(0), "dummies whose interactions with all features join"},
                {"ridge", 0.0, at_least(0), "weight of the squared weights; 0: the best on the validation samples"},
                {"gauge", "none", one_of({"none", "levels", "steps"}),
                 "add what is zero on every valid row: between levels of a category, or between steps of a number"}},
    .needs = {"two classes; a linear layer, or one hidden layer with relu"},
    .notes = "Fitted at once: epochs, batches, optimiser and rate are not used."};

constexpr double kTurn = 3;  // slope of a gauge, of the largest weight

class Convex final : public MarginObjective {
 public:
  explicit Convex(const Options& options)
      : MarginObjective(options.canonical()),
        gates_(options.integer("gates")),
        ridge_(options.real("ridge")),
        gauge_(options.word("gauge")) {
    if (gates_ > 0 && gauge_ != "none") usage_error("{}: gates and a gauge are both given", name());
  }

  void check(const Network& network, const Schema& schema) const override {
    check_margin_fits(name(), network, schema, gates_);
    const std::int64_t room = MarginLayers(network).units();
    if (gauge_ != "none" && room < 3) usage_error("{}: a gauge needs 3 hidden units, and the network has {}", name(), room);
    if (gauge_ == "levels" && schema.groups.empty()) usage_error("{}: the table has no one-hot groups", name());
  }

  void fit(const Network& network, const Dataset& dataset, std::uint64_t seed) const override {
    const at::NoGradGuard no_graph;
    const at::Tensor sizes = dataset.inputs.to(at::kDouble).abs().amax(0);
    const auto reach = [&](const at::Tensor& weight) { return (weight.abs() * sizes).sum().item<double>(); };
    const TableMargin margin = fit_table_margin(dataset, gates_, /*bends=*/0, ridge_).margin;
    MarginWriter writer(MarginLayers{network});
    at::Tensor weight = margin.weight.clone();
    double bias = margin.bias.item<double>();
    const double slope = kTurn * weight.abs().max().item<double>();
    const Wave wave = gauge_ == "steps" ? wave_of(dataset.schema, writer.room(), slope) : Wave{};
    if (wave.kinks > 0) {  // its first piece belongs to the linear part
      weight[wave.column] += slope;
      bias -= slope * wave.low;
    }
    writer.add_linear(weight, bias, reach(weight));
    writer.add_gates(margin, sizes);
    wave.write(writer);
    if (gauge_ == "levels")
      add_level_gauge(writer, dataset.schema, dataset.inputs_of(dataset.train).to(at::kDouble), slope, seed);
  }

 private:
  // a (x - low) + sum_i -+2a relu(x - low - (i + 1/2) step): zero at low + i step, with slope a or -a there.
  struct Wave {
    std::int64_t column = 0, kinks = 0;
    double low = 0, step = 0, slope = 0;

    void write(MarginWriter& writer) const {
      for (std::int64_t i = 0; i < kinks; ++i)
        writer.add_bend(column, low + (static_cast<double>(i) + 0.5) * step, i % 2 == 0 ? -2 * slope : 2 * slope);
    }
  };
  // In the number with the most steps of those for whose kinks there is room.
  Wave wave_of(const Schema& schema, std::int64_t room, double slope) const {
    Wave best;
    for (const TableFeature& feature : schema.table_features()) {
      if (feature.is_category) continue;
      const Feature& known = schema.features[static_cast<std::size_t>(feature.columns[0])];
      if (known.step <= 0) continue;
      const std::int64_t kinks = std::llround((known.high - known.low) / known.step);
      if (kinks < room && kinks > best.kinks) best = {feature.columns[0], kinks, known.low, known.step, slope};
    }
    if (best.kinks == 0)
      usage_error("{}: no number of the table has a step and fewer than {} of them in its range", name(), room);
    return best;
  }

  static void add_level_gauge(MarginWriter& writer, const Schema& schema, const at::Tensor& rows, double slope,
                              std::uint64_t seed) {
    RandomStream stream(seed, "convex.gauge");
    const at::Tensor share = rows.mean(0);
    std::vector<std::pair<double, std::pair<std::int64_t, const Group*>>> columns;  // the most frequent levels first
    for (const Group& group : schema.groups) {
      for (const std::int64_t column : group.columns) columns.push_back({-share[column].item<double>(), {column, &group}});
    }
    std::stable_sort(columns.begin(), columns.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [frequency, level] : columns) {
      if (writer.room() < 2) return;
      at::Tensor turn = at::zeros({rows.size(1)}, at::kDouble);
      for (const std::int64_t column : level.second->columns) turn[column] = column == level.first ? 0 : slope * stream.normal();
      writer.add_gate(level.first, turn, turn.abs().sum().item<double>());
    }
  }

  std::int64_t gates_;
  double ridge_;
  std::string gauge_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<Convex>(kInfo);
}

}  // namespace holdfast::train::convex

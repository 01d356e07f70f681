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
#include <deque>
#include <numeric>
#include <optional>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/prediction.h"
#include "holdfast/train/objective.h"

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

// Minimises a smooth convex function of a vector: L-BFGS with a line search that halves.
at::Tensor minimise(at::Tensor x, const std::function<std::pair<double, at::Tensor>(const at::Tensor&)>& function) {
  constexpr int kMost = 500, kMemory = 20;
  constexpr double kEnough = 1e-7;                       // size of the gradient
  std::deque<std::pair<at::Tensor, at::Tensor>> memory;  // moves and what they changed of the gradient
  auto [value, gradient] = function(x);
  for (int step = 0; step < kMost && gradient.norm().item<double>() > kEnough; ++step) {
    at::Tensor direction = -gradient;
    std::vector<double> alphas;
    for (auto pair = memory.rbegin(); pair != memory.rend(); ++pair) {
      const auto& [move, change] = *pair;
      alphas.push_back((at::dot(move, direction) / at::dot(change, move)).item<double>());
      direction = direction - alphas.back() * change;
    }
    if (!memory.empty()) {
      const auto& [move, change] = memory.back();
      direction = direction * (at::dot(move, change) / at::dot(change, change));
    }
    for (const auto& [move, change] : memory) {
      const double beta = (at::dot(change, direction) / at::dot(change, move)).item<double>();
      direction = direction + (alphas.back() - beta) * move;
      alphas.pop_back();
    }
    const double slope = at::dot(gradient, direction).item<double>();
    double length = 1;
    at::Tensor next = x + direction;
    auto [there, gradient_there] = function(next);
    while (!(there <= value + 1e-4 * length * slope) && length > 1e-12) {
      length /= 2;
      next = x + length * direction;
      std::tie(there, gradient_there) = function(next);
    }
    if (!(there < value)) break;  // as low as double precision tells
    const at::Tensor move = next - x, change = gradient_there - gradient;
    if (at::dot(move, change).item<double>() > 0) memory.emplace_back(move, change);
    if (memory.size() > kMemory) memory.pop_front();
    x = next;
    value = there;
    gradient = gradient_there;
  }
  return x;
}

// The margin of a table's rows.
struct Margin {
  at::Tensor weight;  // [n]
  double bias = 0;
  std::vector<std::int64_t> gates;  // columns
  at::Tensor gated;                 // [gates, n]

  at::Tensor of(const at::Tensor& rows) const {
    at::Tensor margin = at::mv(rows, weight) + bias;
    if (!gates.empty()) margin = margin + (at::mm(rows, gated.t()) * rows.index_select(1, at::tensor(gates, at::kLong))).sum(1);
    return margin;
  }
};

Margin fit_margin(const at::Tensor& rows, const at::Tensor& labels, const std::vector<std::int64_t>& gates, double ridge) {
  const std::int64_t n = rows.size(1), all = n * (1 + std::ssize(gates)) + 1;
  const at::Tensor on = gates.empty() ? at::Tensor() : rows.index_select(1, at::tensor(gates, at::kLong));
  const auto margin_of = [&](const at::Tensor& x) {
    return Margin{
        .weight = x.slice(0, 1, n + 1), .bias = x[0].item<double>(), .gates = gates, .gated = x.slice(0, n + 1).view({-1, n})};
  };
  const at::Tensor sign = 2 * labels.to(at::kDouble) - 1;
  const auto loss = [&](const at::Tensor& x) {
    const at::Tensor margin = margin_of(x).of(rows), pull = -sign * at::sigmoid(-sign * margin) / rows.size(0);
    at::Tensor gradient = ridge * x;
    gradient[0] = pull.sum();
    gradient.slice(0, 1, n + 1) += at::mv(rows.t(), pull);
    if (!gates.empty()) gradient.slice(0, n + 1) += at::mm((on * pull.unsqueeze(1)).t(), rows).flatten();
    const at::Tensor weights = x.slice(0, 1);
    const double value = at::softplus(-sign * margin).mean().item<double>() + ridge / 2 * weights.square().sum().item<double>();
    return std::pair(value, gradient);
  };
  return margin_of(minimise(at::zeros({all}, at::kDouble), loss));
}

// The columns whose gates would lower the loss of `margin` most steeply, for their size.
std::vector<std::int64_t> choose_gates(const Schema& schema, const at::Tensor& rows, const at::Tensor& labels,
                                       const Margin& margin, std::int64_t count) {
  const at::Tensor residual = at::sigmoid(margin.of(rows)) - labels.to(at::kDouble);
  std::vector<std::pair<double, std::int64_t>> steepness;
  for (const Group& group : schema.groups) {
    for (const std::int64_t column : group.columns) {
      const at::Tensor on = rows.select(1, column);
      const double share = on.mean().item<double>();
      if (share == 0) continue;
      steepness.emplace_back(-at::mv(rows.t(), residual * on).norm().item<double>() / std::sqrt(share), column);
    }
  }
  std::sort(steepness.begin(), steepness.end());
  std::vector<std::int64_t> gates;
  for (std::size_t i = 0; i < std::min(steepness.size(), static_cast<std::size_t>(count)); ++i)
    gates.push_back(steepness[i].second);
  return gates;
}

// The layers of a network that the margin is written into.
struct Layers {
  const op::Linear *hidden = nullptr, *output = nullptr;  // hidden: null for a single linear layer; tensors are shared

  explicit Layers(const Network& network) {
    for (const Node& node : network.nodes()) {
      if (const auto* linear = std::get_if<op::Linear>(&node.operation)) {
        hidden = output;
        output = linear;
      }
    }
  }
};

// Fills the units of the hidden layer one after the other.
class Writer {
 public:
  explicit Writer(const Layers& layers) : layers_(layers) {
    for (const op::Linear* layer : {layers.hidden, layers.output}) {
      if (layer == nullptr) continue;
      layer->weight.zero_();
      layer->bias.zero_();
    }
  }

  std::int64_t room() const { return layers_.hidden == nullptr ? 0 : layers_.hidden->weight.size(0) - used_; }

  // `reach`: |weight.x| is no larger on any row.
  void add_linear(const at::Tensor& weight, double bias, double reach) {
    if (layers_.hidden == nullptr) {
      layers_.output->weight[1].copy_(weight);
      layers_.output->bias[1] = bias;
      return;
    }
    const double lift = power_above(reach + std::abs(bias));
    add_unit(weight, bias + lift, 1);
    layers_.output->bias[1] -= lift;
  }
  // u.x where column g is 1.
  void add_gate(std::int64_t column, const at::Tensor& weight, double reach) {
    const double gate = power_above(2 * reach);
    at::Tensor switched = at::zeros_like(weight);
    switched[column] = gate;
    add_unit(weight + switched, -gate / 2, 1);
    add_unit(switched, -gate / 2, -1);
  }
  void add_unit(const at::Tensor& weight, double bias, double out) {
    HOLDFAST_CHECK(room() > 0);
    layers_.hidden->weight[used_].copy_(weight);
    layers_.hidden->bias[used_] = bias;
    layers_.output->weight[1][used_++] = out;
  }

 private:
  static double power_above(double size) { return std::exp2(std::ceil(std::log2(size + 1))); }

  Layers layers_;
  std::int64_t used_ = 0;
};

class Convex final : public Objective {
 public:
  explicit Convex(const Options& options)
      : Objective(options.canonical()),
        gates_(options.integer("gates")),
        ridge_(options.real("ridge")),
        gauge_(options.word("gauge")) {
    if (gates_ > 0 && gauge_ != "none") usage_error("{}: gates and a gauge are both given", name());
  }

  std::vector<Term> terms(double) const override { return {{.name = "ce"}}; }
  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    return {cross_entropies(trainee.training_logits(batch.inputs, batch.seed), batch.labels)};
  }
  bool fits() const override { return true; }

  void check(const Network& network, const Schema& schema) const override {
    if (schema.layout.kind != Layout::Kind::kVector || schema.layout.sides != 1)
      usage_error("{}: the samples are a {}; it is for tables", name(), schema.layout.describe());
    std::vector<const op::Linear*> linear;
    bool known = true;
    for (const Node& node : network.nodes()) {
      const auto* layer = std::get_if<op::Linear>(&node.operation);
      const auto* activation = std::get_if<op::Activation>(&node.operation);
      if (layer != nullptr) linear.push_back(layer);
      const bool is_relu = activation != nullptr && activation->kind == op::Activation::Kind::kRelu;
      known = known && (layer != nullptr || is_relu || std::holds_alternative<op::Input>(node.operation));
    }
    const bool fits = known && (linear.size() == 1 || linear.size() == 2) && linear.back()->weight.size(0) == 2;
    if (!fits)
      usage_error("{}: needs two classes and one linear layer, or one hidden layer with relu, as mlp(hidden=32)", name());
    const std::int64_t room = linear.size() == 2 ? linear[0]->weight.size(0) : 0;
    if (gates_ > 0 && 2 * gates_ + 1 > room)
      usage_error("{}: {} gates need {} hidden units, and the network has {}", name(), gates_, 2 * gates_ + 1, room);
    if (gauge_ != "none" && room < 3) usage_error("{}: a gauge needs 3 hidden units, and the network has {}", name(), room);
    if (gauge_ == "levels" && schema.groups.empty()) usage_error("{}: the table has no one-hot groups", name());
  }

  void fit(const Network& network, const Dataset& dataset, std::uint64_t seed) const override {
    const at::NoGradGuard no_graph;
    const at::Tensor rows = dataset.inputs_of(dataset.train).to(at::kDouble), labels = dataset.labels_of(dataset.train);
    const at::Tensor sizes = dataset.inputs.to(at::kDouble).abs().amax(0);
    const auto reach = [&](const at::Tensor& weight) { return (weight.abs() * sizes).sum().item<double>(); };
    const Margin margin = best_margin(dataset, rows, labels);
    Writer writer(Layers{network});
    at::Tensor weight = margin.weight.clone();
    double bias = margin.bias;
    const double slope = kTurn * weight.abs().max().item<double>();
    const std::optional<Wave> wave =
        gauge_ == "steps" ? std::optional(wave_of(dataset.schema, writer.room(), slope)) : std::nullopt;
    if (wave) {  // its first piece belongs to the linear part
      weight[wave->column] += slope;
      bias -= slope * wave->low;
    }
    writer.add_linear(weight, bias, reach(weight));
    for (std::size_t g = 0; g < margin.gates.size(); ++g) {
      const at::Tensor own = margin.gated[static_cast<std::int64_t>(g)];
      writer.add_gate(margin.gates[g], own, reach(own));
    }
    if (wave) wave->write(writer, weight);
    if (gauge_ == "levels") add_level_gauge(writer, dataset.schema, rows, slope, seed);
  }

 private:
  // a (x - low) + sum_i -+2a relu(x - low - (i + 1/2) step): zero at low + i step, with slope a or -a there.
  struct Wave {
    std::int64_t column = 0, kinks = 0;
    double low = 0, step = 0, slope = 0;

    void write(Writer& writer, const at::Tensor& like) const {
      for (std::int64_t i = 0; i < kinks; ++i) {
        at::Tensor weight = at::zeros_like(like);
        weight[column] = 1;
        writer.add_unit(weight, -(low + (static_cast<double>(i) + 0.5) * step), i % 2 == 0 ? -2 * slope : 2 * slope);
      }
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

  static void add_level_gauge(Writer& writer, const Schema& schema, const at::Tensor& rows, double slope, std::uint64_t seed) {
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

  Margin best_margin(const Dataset& dataset, const at::Tensor& rows, const at::Tensor& labels) const {
    std::vector<double> ridges{1e-2, 1e-3, 1e-4, 1e-5};
    if (ridge_ > 0 || dataset.validation.empty()) ridges = {ridge_ > 0 ? ridge_ : 1e-4};
    std::optional<Margin> best;
    double best_area = -1;
    const at::Tensor validation = dataset.validation.empty() ? rows : dataset.inputs_of(dataset.validation).to(at::kDouble);
    const at::Tensor truth = dataset.validation.empty() ? labels : dataset.labels_of(dataset.validation);
    for (const double ridge : ridges) {
      Margin margin = fit_margin(rows, labels, {}, ridge);
      if (gates_ > 0) margin = fit_margin(rows, labels, choose_gates(dataset.schema, rows, labels, margin, gates_), ridge);
      const at::Tensor scores = margin.of(validation);
      const double area = auc(at::stack({at::zeros_like(scores), scores}, 1), truth).mean;
      if (best && !(area > best_area)) continue;
      best_area = area;
      best = std::move(margin);
    }
    return *best;
  }

  std::int64_t gates_;
  double ridge_;
  std::string gauge_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<Convex>(kInfo);
}

}  // namespace holdfast::train::convex

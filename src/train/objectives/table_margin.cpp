#include "table_margin.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>

#include "holdfast/measure/prediction.h"

namespace holdfast::train {
namespace table_margin {

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

// The optimum of the margin that `form` has gates and bends of.
TableMargin fit_margin(const at::Tensor& rows, const at::Tensor& labels, const TableMargin& form, double ridge) {
  const std::int64_t n = rows.size(1), gated = n * std::ssize(form.gates), bent = form.bends.count();
  const at::Tensor on = gated == 0 ? at::Tensor() : rows.index_select(1, form.gate_columns());
  const at::Tensor bends = bent == 0 ? at::Tensor() : form.bends.values(rows);
  const auto margin_of = [&](const at::Tensor& x) {
    return TableMargin{.weight = x.slice(0, 1, n + 1),
                       .bias = x[0],
                       .gates = form.gates,
                       .gated = x.slice(0, n + 1, n + 1 + gated).view({-1, n}),
                       .bends = form.bends,
                       .bent = x.slice(0, n + 1 + gated)};
  };
  const at::Tensor sign = 2 * labels.to(at::kDouble) - 1;
  const auto loss = [&](const at::Tensor& x) {
    const at::Tensor margin = margin_of(x).of(rows), pull = -sign * at::sigmoid(-sign * margin) / rows.size(0);
    at::Tensor gradient = ridge * x;
    gradient[0] = pull.sum();
    gradient.slice(0, 1, n + 1) += at::mv(rows.t(), pull);
    if (gated > 0) gradient.slice(0, n + 1, n + 1 + gated) += at::mm((on * pull.unsqueeze(1)).t(), rows).flatten();
    if (bent > 0) gradient.slice(0, n + 1 + gated) += at::mv(bends.t(), pull);
    const at::Tensor weights = x.slice(0, 1);
    const double value = at::softplus(-sign * margin).mean().item<double>() + ridge / 2 * weights.square().sum().item<double>();
    return std::pair(value, gradient);
  };
  return margin_of(minimise(at::zeros({n + 1 + gated + bent}, at::kDouble), loss));
}

// The columns whose gates would lower the loss of `margin` most steeply, for their size.
std::vector<std::int64_t> choose_gates(const Schema& schema, const at::Tensor& rows, const at::Tensor& labels,
                                       const TableMargin& margin, std::int64_t count) {
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

// Values of a number between which its rows are split evenly, and those between which its distinct values are.
std::vector<double> knots_of(std::vector<double> values) {
  constexpr std::size_t kParts = 16;
  std::vector<double> knots;
  const auto add_quantiles = [&] {
    for (std::size_t i = 1; i < kParts; ++i) knots.push_back(values[i * values.size() / kParts]);
  };
  std::sort(values.begin(), values.end());
  const double low = values.front(), high = values.back();
  add_quantiles();
  values.erase(std::unique(values.begin(), values.end()), values.end());
  add_quantiles();
  std::sort(knots.begin(), knots.end());
  knots.erase(std::unique(knots.begin(), knots.end()), knots.end());
  std::erase_if(knots, [&](double one) { return one <= low || one >= high; });
  return knots;
}

Bends all_bends(const Schema& schema, const at::Tensor& rows) {
  std::vector<std::int64_t> columns;
  std::vector<double> knots, sizes;
  for (const TableFeature& feature : schema.table_features()) {
    if (feature.is_category) continue;
    const at::Tensor values = rows.select(1, feature.columns[0]).contiguous();
    const double size = values.std(/*unbiased=*/false).item<double>();
    if (!(size > 0)) continue;
    const double* first = values.const_data_ptr<double>();
    for (const double knot : knots_of({first, first + values.size(0)})) {
      columns.push_back(feature.columns[0]);
      knots.push_back(knot);
      sizes.push_back(size);
    }
  }
  return {at::tensor(columns, at::kLong), at::tensor(knots, at::kDouble), at::tensor(sizes, at::kDouble)};
}

// One after the other, the bend with the longest Newton step of the loss of `margin`, beside the numbers and the bends so far.
Bends choose_bends(const Schema& schema, const at::Tensor& rows, const at::Tensor& labels, const TableMargin& margin,
                   std::int64_t count) {
  constexpr double kNew = 1e-4;  // of a bend's size: what others must leave of it
  const Bends all = all_bends(schema, rows);
  if (all.count() == 0) return {};
  const at::Tensor probability = at::sigmoid(margin.of(rows)), root = (probability * (1 - probability)).clamp_min(1e-6).sqrt();
  at::Tensor residual = (labels.to(at::kDouble) - probability) / root;
  at::Tensor candidates = all.values(rows) * root.unsqueeze(1);
  const at::Tensor sizes = candidates.square().sum(0);
  const auto take_out = [&](const at::Tensor& column) {  // of all that is left
    const at::Tensor unit = column / column.norm().clamp_min(1e-12);
    residual = residual - unit * at::dot(unit, residual);
    candidates = candidates - unit.unsqueeze(1) * at::mv(candidates.t(), unit).unsqueeze(0);
    return unit;
  };
  std::vector<at::Tensor> known{take_out(root)};
  for (const TableFeature& feature : schema.table_features()) {
    if (feature.is_category) continue;
    at::Tensor column = rows.select(1, feature.columns[0]) * root;
    for (const at::Tensor& unit : known) column = column - unit * at::dot(unit, column);
    known.push_back(take_out(column));
  }
  std::vector<std::int64_t> chosen;
  while (std::ssize(chosen) < count) {
    const at::Tensor left = candidates.square().sum(0);
    const at::Tensor steps = at::mv(candidates.t(), residual).square() / left.clamp_min(1e-12);
    const at::Tensor best = at::where(left > kNew * sizes, steps, at::full_like(steps, -1)).argmax();
    const auto place = best.item<std::int64_t>();
    if (left[place].item<double>() <= kNew * sizes[place].item<double>()) break;
    chosen.push_back(place);
    take_out(candidates.select(1, place).clone());
  }
  std::sort(chosen.begin(), chosen.end());
  const at::Tensor places = at::tensor(chosen, at::kLong);
  return {all.columns.index_select(0, places), all.knots.index_select(0, places), all.sizes.index_select(0, places)};
}

}  // namespace table_margin

FittedMargin fit_table_margin(const Dataset& dataset, std::int64_t gates, std::int64_t bends, double ridge) {
  using namespace table_margin;
  const at::NoGradGuard no_graph;
  const at::Tensor rows = dataset.inputs_of(dataset.train).to(at::kDouble), labels = dataset.labels_of(dataset.train);
  std::vector<double> ridges{1e-2, 1e-3, 1e-4, 1e-5};
  if (ridge > 0 || dataset.validation.empty()) ridges = {ridge > 0 ? ridge : 1e-4};
  std::optional<FittedMargin> best;
  double best_area = -1;
  const at::Tensor validation = dataset.validation.empty() ? rows : dataset.inputs_of(dataset.validation).to(at::kDouble);
  const at::Tensor truth = dataset.validation.empty() ? labels : dataset.labels_of(dataset.validation);
  for (const double tried : ridges) {
    TableMargin margin = fit_margin(rows, labels, {}, tried), form;
    if (gates > 0) form.gates = choose_gates(dataset.schema, rows, labels, margin, gates);
    if (bends > 0) form.bends = choose_bends(dataset.schema, rows, labels, margin, bends);
    if (gates > 0 || bends > 0) margin = fit_margin(rows, labels, form, tried);
    const at::Tensor scores = margin.of(validation);
    const double area = auc(at::stack({at::zeros_like(scores), scores}, 1), truth).mean;
    if (best && !(area > best_area)) continue;
    best_area = area;
    best = {std::move(margin), tried};
  }
  return *best;
}

}  // namespace holdfast::train

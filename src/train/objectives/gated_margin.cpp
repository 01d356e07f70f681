#include "gated_margin.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>

#include "holdfast/measure/prediction.h"

namespace holdfast::train {
namespace gated_margin {

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

GatedMargin fit_margin(const at::Tensor& rows, const at::Tensor& labels, const std::vector<std::int64_t>& gates, double ridge) {
  const std::int64_t n = rows.size(1), all = n * (1 + std::ssize(gates)) + 1;
  const at::Tensor on = gates.empty() ? at::Tensor() : rows.index_select(1, at::tensor(gates, at::kLong));
  const auto margin_of = [&](const at::Tensor& x) {
    return GatedMargin{
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
                                       const GatedMargin& margin, std::int64_t count) {
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

}  // namespace gated_margin

FittedMargin fit_gated_margin(const Dataset& dataset, std::int64_t gates, double ridge) {
  using namespace gated_margin;
  const at::NoGradGuard no_graph;
  const at::Tensor rows = dataset.inputs_of(dataset.train).to(at::kDouble), labels = dataset.labels_of(dataset.train);
  std::vector<double> ridges{1e-2, 1e-3, 1e-4, 1e-5};
  if (ridge > 0 || dataset.validation.empty()) ridges = {ridge > 0 ? ridge : 1e-4};
  std::optional<FittedMargin> best;
  double best_area = -1;
  const at::Tensor validation = dataset.validation.empty() ? rows : dataset.inputs_of(dataset.validation).to(at::kDouble);
  const at::Tensor truth = dataset.validation.empty() ? labels : dataset.labels_of(dataset.validation);
  for (const double tried : ridges) {
    GatedMargin margin = fit_margin(rows, labels, {}, tried);
    if (gates > 0) margin = fit_margin(rows, labels, choose_gates(dataset.schema, rows, labels, margin, gates), tried);
    const at::Tensor scores = margin.of(validation);
    const double area = auc(at::stack({at::zeros_like(scores), scores}, 1), truth).mean;
    if (best && !(area > best_area)) continue;
    best_area = area;
    best = {std::move(margin), tried};
  }
  return *best;
}

void check_margin_fits(const std::string& objective, const Network& network, const Schema& schema, std::int64_t gates) {
  if (schema.layout.kind != Layout::Kind::kVector || schema.layout.sides != 1)
    usage_error("{}: the samples are a {}; it is for tables", objective, schema.layout.describe());
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
    usage_error("{}: needs two classes and one linear layer, or one hidden layer with relu, as mlp(hidden=32)", objective);
  const std::int64_t room = linear.size() == 2 ? linear[0]->weight.size(0) : 0;
  if (gates > 0 && 2 * gates + 1 > room)
    usage_error("{}: {} gates need {} hidden units, and the network has {}", objective, gates, 2 * gates + 1, room);
}

}  // namespace holdfast::train

// How the margin of a table is written into a network: a single linear layer, or one hidden layer with relu.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "holdfast/core/error.h"
#include "table_margin.h"

namespace holdfast::train {

// Throws kUsage, naming the objective, unless a margin with so many gates can be written into the network.
void check_margin_fits(const std::string& objective, const Network& network, const Schema& schema, std::int64_t gates,
                       std::int64_t units_of_a_gate = 2);

// The layers of a network that the margin is written into.
struct MarginLayers {
  const op::Linear *hidden = nullptr, *output = nullptr;  // hidden: null for a single linear layer; tensors are shared

  explicit MarginLayers(const Network& network) {
    for (const Node& node : network.nodes()) {
      if (const auto* linear = std::get_if<op::Linear>(&node.operation)) {
        hidden = output;
        output = linear;
      }
    }
  }
  std::int64_t units() const { return hidden == nullptr ? 0 : hidden->weight.size(0); }
};

// Fills the units of the hidden layer one after the other.
class MarginWriter {
 public:
  explicit MarginWriter(const MarginLayers& layers) : layers_(layers) {
    for (const op::Linear* layer : {layers.hidden, layers.output}) {
      if (layer == nullptr) continue;
      layer->weight.zero_();
      layer->bias.zero_();
    }
  }

  std::int64_t room() const { return layers_.units() - used_; }

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
  // The gates of a margin; |x| is at most `sizes`, a number a column.
  void add_gates(const TableMargin& margin, const at::Tensor& sizes) {
    for (std::size_t g = 0; g < margin.gates.size(); ++g) {
      const at::Tensor own = margin.gated[static_cast<std::int64_t>(g)];
      add_gate(margin.gates[g], own, (own.abs() * sizes).sum().item<double>());
    }
  }
  // The whole margin, with one unit for each gate and bend: relu(u.x + K (x_g - 1/2)) is x_g (u.x + K / 2) on valid rows, K above
  // 2 |u.x| there, and the linear part takes x_g K / 2 back.
  void add_margin(const TableMargin& margin, const at::Tensor& sizes, const Schema& schema) {
    at::Tensor weight = margin.weight.clone();
    std::vector<double> switches;
    for (std::size_t g = 0; g < margin.gates.size(); ++g) {
      switches.push_back(power_above(2 * reach_of(margin.gated[static_cast<std::int64_t>(g)], sizes, schema)));
      weight[margin.gates[g]] -= switches.back() / 2;
    }
    add_linear(weight, margin.bias.item<double>(), reach_of(weight, sizes, schema));
    for (std::size_t g = 0; g < margin.gates.size(); ++g) {
      at::Tensor switched = margin.gated[static_cast<std::int64_t>(g)].clone();
      switched[margin.gates[g]] += switches[g];
      add_unit(switched, -switches[g] / 2, 1);
    }
    add_bends(margin);
  }
  // slope * relu(x - knot) of a column.
  void add_bend(std::int64_t column, double knot, double slope) {
    at::Tensor weight = at::zeros({layers_.hidden->weight.size(1)}, at::kDouble);
    weight[column] = 1;
    add_unit(weight, -knot, slope);
  }
  void add_bends(const TableMargin& margin) {
    for (std::int64_t i = 0; i < margin.bends.count(); ++i) {
      add_bend(margin.bends.columns[i].item<std::int64_t>(), margin.bends.knots[i].item<double>(),
               (margin.bent[i] / margin.bends.sizes[i]).item<double>());
    }
  }
  void add_unit(const at::Tensor& weight, double bias, double out) {
    HOLDFAST_CHECK(room() > 0);
    layers_.hidden->weight[used_].copy_(weight);
    layers_.hidden->bias[used_] = bias;
    layers_.output->weight[1][used_++] = out;
  }

 private:
  // The largest |weight.x| of a valid row: one column of a group counts.
  static double reach_of(const at::Tensor& weight, const at::Tensor& sizes, const Schema& schema) {
    const at::Tensor all = (weight.abs() * sizes).contiguous();
    double reach = all.sum().item<double>();
    for (const Group& group : schema.groups) {
      const at::Tensor own = all.index_select(0, at::tensor(group.columns, at::kLong));
      reach -= (own.sum() - own.max()).item<double>();
    }
    return reach;
  }
  static double power_above(double size) { return std::exp2(std::ceil(std::log2(size + 1))); }

  MarginLayers layers_;
  std::int64_t used_ = 0;
};

}  // namespace holdfast::train

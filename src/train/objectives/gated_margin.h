// The margin of logistic regression with interactions of dummies and features, and how it is written into a network.
//     margin(x) = w.x + b + sum over gates g of x_g (u_g.x)          g: a column of a one-hot group
// Shared by the objectives that fit one.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "holdfast/train/objective.h"

namespace holdfast::train {

// The margin of a table's rows.
struct GatedMargin {
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

// Mean cross-entropy + ridge / 2 (|w|^2 + |u|^2) at its optimum, on the training rows. The ridge is the one with the highest AUC
// on the validation samples where `ridge` is 0. Gates are the `gates` dummies along whose interactions the loss of plain logistic
// regression falls most steeply.
struct FittedMargin {
  GatedMargin margin;
  double ridge;
};
FittedMargin fit_gated_margin(const Dataset& dataset, std::int64_t gates, double ridge);

// Base of the objectives that fit a margin to the whole table at once. A step of training, which is never made, would cost the
// cross-entropy.
class MarginObjective : public Objective {
 public:
  using Objective::Objective;
  std::vector<Term> terms(double) const override { return {{.name = "ce"}}; }
  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    return {cross_entropies(trainee.training_logits(batch.inputs, batch.seed), batch.labels)};
  }
  bool fits() const override { return true; }
};

// Throws kUsage, naming the objective, unless a margin with so many gates can be written into the network.
void check_margin_fits(const std::string& objective, const Network& network, const Schema& schema, std::int64_t gates);

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
  // The gates of a margin; |x| is at most `sizes`, a number a column.
  void add_gates(const GatedMargin& margin, const at::Tensor& sizes) {
    for (std::size_t g = 0; g < margin.gates.size(); ++g) {
      const at::Tensor own = margin.gated[static_cast<std::int64_t>(g)];
      add_gate(margin.gates[g], own, (own.abs() * sizes).sum().item<double>());
    }
  }
  void add_unit(const at::Tensor& weight, double bias, double out) {
    HOLDFAST_CHECK(room() > 0);
    layers_.hidden->weight[used_].copy_(weight);
    layers_.hidden->bias[used_] = bias;
    layers_.output->weight[1][used_++] = out;
  }

 private:
  static double power_above(double size) { return std::exp2(std::ceil(std::log2(size + 1))); }

  MarginLayers layers_;
  std::int64_t used_ = 0;
};

}  // namespace holdfast::train

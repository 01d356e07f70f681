// The margin of a table's rows: logistic regression with gates and bends.
//     margin(x) = w.x + b + sum over gates g of x_g (u_g.x) + sum over bends (j, c) of v_jc relu(x_j - c) / s_j
// A gate g is a column of a one-hot group: where it is on, other weights hold. A bend is a number j and a value c from which its
// slope is another one; s_j is the number's standard deviation. In w, u and v the margin is linear.
// Shared by the objectives that fit one.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "holdfast/train/objective.h"

namespace holdfast::train {

// Columns of the numbers, and where and how sharply they bend: [bends] each. Undefined: no bends.
struct Bends {
  at::Tensor columns, knots, sizes;

  std::int64_t count() const { return columns.defined() ? columns.size(0) : 0; }
  at::Tensor values(const at::Tensor& rows) const { return at::relu(rows.index_select(1, columns) - knots) / sizes; }
};

struct TableMargin {
  at::Tensor weight, bias;  // [n] and a scalar
  std::vector<std::int64_t> gates = {};
  at::Tensor gated = {};  // [gates, n]
  Bends bends = {};
  at::Tensor bent = {};  // [bends]

  at::Tensor gate_columns() const { return at::tensor(gates, at::kLong); }
  at::Tensor of(const at::Tensor& rows) const {
    at::Tensor margin = at::mv(rows, weight) + bias;
    if (!gates.empty()) margin = margin + (at::mm(rows, gated.t()) * rows.index_select(1, gate_columns())).sum(1);
    if (bends.count() > 0) margin = margin + at::mv(bends.values(rows), bent);
    return margin;
  }
};

// Mean cross-entropy + ridge / 2 (|w|^2 + |u|^2 + |v|^2) at its optimum, on the training rows. The ridge is the one with the
// highest AUC on the validation samples where `ridge` is 0. Gates are the `gates` dummies along whose interactions the loss of
// plain logistic regression falls most steeply. Bends are chosen one after the other, each the one that lowers the loss most
// beside those before it; knots are at quantiles of the values and of the distinct values.
struct FittedMargin {
  TableMargin margin;
  double ridge;
};
FittedMargin fit_table_margin(const Dataset& dataset, std::int64_t gates, std::int64_t bends, double ridge);

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

}  // namespace holdfast::train

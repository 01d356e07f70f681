// valid_effect of networks of one hidden layer and two classes, without autograd: maps and their pullback from ChangedRows. The
// tensors' way (valid_effect.cpp) is the reference.
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/explain/explainer.h"
#include "holdfast/explain/valid_moves.h"
#include "holdfast/model/changed_rows.h"

namespace holdfast::explain::valid_effect {

class ShallowEffects {
 public:
  // Nothing where the model or the samples are of another kind.
  static std::optional<ShallowEffects> of(const ExplainTask& task, const Moves& moves, ExplainedQuantity quantity);

  // Maps [B, features] double in true units. `kept`: with what pullback() needs.
  at::Tensor maps(bool kept);
  // [B, 2], of the rows themselves.
  at::Tensor logits();
  // Input gradient of sum(cotangent * maps), cotangent [B, features] in true units.
  at::Tensor pullback(const at::Tensor& cotangent);

 private:
  struct Part {
    std::int64_t feature, category;  // category: -1 for a number
    double weight;
  };
  // Derivatives of a part of the map by the odds of its changed row and of the row itself.
  struct Held {
    std::int64_t feature, category;
    double by_moved, by_clean;
  };

  ShallowEffects(LinearChain chain, ChangedRows rows, at::Tensor inputs, at::Tensor targets, Moves moves,
                 ExplainedQuantity quantity);
  std::int64_t count() const { return inputs_.size(0); }
  void read_changes(const float* row);
  void remember(double sign, double effect, double moved, double clean, const Part& part);

  LinearChain chain_;
  ChangedRows rows_;
  at::Tensor inputs_, targets_;
  Moves moves_;
  ExplainedQuantity quantity_;
  at::Tensor logits_, slopes_;
  std::vector<ChangedRows::Change> changes_;
  std::vector<std::int64_t> ends_;
  std::vector<Part> parts_;
  std::vector<Held> held_;
  std::vector<std::int64_t> first_{0};
  std::vector<std::vector<float>> group_hidden_;
};

}  // namespace holdfast::explain::valid_effect

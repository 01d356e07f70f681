// The walk of every attack that follows a gradient: where it starts, what it goes down, how long its steps are, and whether
// its directions come from a smooth surrogate. Each iterate goes to the ledger, which judges it on the true model.
//
// An iteration without a surrogate costs one explanation and one pullback: the explanation that judges x_{t+1} is the one whose
// gradient is followed next. With a surrogate, or where rows must be valid, the point that is judged is explained by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/attack.h"
#include "ledger.h"

namespace holdfast::attack {

// What a walk goes down. Samples do not mix.
class Descent {
 public:
  virtual ~Descent() = default;
  // The input gradient at the walk's present points, [rows, sample...]. `here` was made from `at`, whose rule may be a
  // surrogate's; its maps have their signs.
  virtual at::Tensor gradient(Linearization& here, const ExplainTask& at) = 0;
  // Pullbacks that a call costs.
  virtual std::int64_t pullbacks() const { return 1; }
  // Whether gradient() does the same operations each time, on the device alone, so that they can be recorded.
  virtual bool is_repeatable() const { return false; }
  // Keeps only these of the present rows; `rows` is an index on the task's device.
  virtual void keep(const at::Tensor& rows) = 0;
};

// Descent of <cotangent, maps> for a cotangent that stays: objectives that are linear in the maps.
std::unique_ptr<Descent> fixed_cotangent(at::Tensor cotangent);

inline constexpr double kHingeShare = 0.1, kRepairShare = 0.05;

struct WalkRules {
  std::int64_t steps = 100;
  double first_step = 0.01, last_step = 0.01;             // lengths in the threat's norm, on a half cosine in between
  double momentum = 0;                                    // of the gradients before, each scaled to sum 1
  std::function<Rule(std::int64_t step)> surrogate = {};  // of the direction at each step; empty: the model itself
  bool judge_start = false;                               // whether the start counts as an iterate
  bool fresh_noise = false;  // directions of explainers that draw noise: from another draw at every step
  // In logits; 0: neither. The margin is that of the clean class, or how far its log-odds are from what the threat model's
  // tolerance allows, where that is less. Where it falls below `hinge`, in the surrogate's eyes, the gradient that raises it
  // joins the direction, as long as it. Where it falls below `repair` on the model itself, one Newton step brings the iterate
  // back (walks by a surrogate only: it would cost the others their linearization). A sample whose clean margin is small has
  // smaller ones: kHingeShare and kRepairShare of that margin at most.
  double hinge = 0, repair = 0;

  double step_length(std::int64_t step) const;
};

// Rows that walk together. Several may belong to one sample.
struct Walkers {
  Ledger::Owners owners;  // the sample of each row, by its position in the task
  at::Tensor points, clean, targets, ids;

  // One row for each sample, at the clean inputs.
  static Walkers of(const AttackTask& task);
  // Rows of these samples, at these points.
  static Walkers of(const AttackTask& task, Ledger::Owners owners, at::Tensor points);
  void keep(const at::Tensor& rows);
};

// Walks until the steps are used up or all samples are done. `here`, when given, is the linearization at the start, signs
// kept, already charged.
void walk(const AttackTask& task, Ledger& ledger, Descent& descent, const WalkRules& rules, Walkers walkers,
          std::unique_ptr<Linearization> here = nullptr);

}  // namespace holdfast::attack

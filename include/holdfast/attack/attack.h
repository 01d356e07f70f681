// Attacks: move an explanation while the prediction stays.
//
// Contract: every returned input lies inside the threat model and is predicted as the clean one with a logit margin of
// at least kMargin; where nothing was found it is the clean input itself. So an attack's result is never better for the
// defender than no attack. The verifier (verify.h) checks this again with code of its own.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/threat.h"
#include "holdfast/core/registry.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/metric/metric.h"

namespace holdfast {

inline constexpr double kMargin = 1e-4;

enum class Select {
  kWorst,  // the preserved iterate at which the metric is worst for the defender
  kLast,   // the last preserved iterate before the first label flip: the papers' rule
};

std::string to_string(Select select);  // "worst", "last"

struct AttackTask {
  const Model& model;
  const Explainer& explainer;
  const Metric& metric;
  const ThreatModel& threat;
  const Schema& schema;
  at::Tensor inputs;      // [B, sample...]
  at::Tensor targets;     // [B] int64: the class that is explained; fixed for the whole attack
  at::Tensor sample_ids;  // [B] int64
  std::uint64_t seed = 0;
  at::Tensor baseline = {}, background = {};  // for explainers that need them: see ExplainTask
  // Rows of the whole run, the same for all its tiles: what an attack scales itself by; undefined: the inputs.
  at::Tensor reference = {};
  // [B, sample...], points known to be bad, allowed by the threat model: those found at a smaller epsilon, say. Attacks that
  // keep the worst point look at them first, so that more epsilon never finds less.
  at::Tensor start = {};
  Select select = Select::kWorst;
  bool trace = false;  // record the metric after every iteration
};

struct SampleOutcome {
  double value = 0;              // the metric at the returned input
  std::int64_t first_swap = -1;  // iteration at which a feature first left the top k, -1: never (or no top k)
  std::int64_t label_flips = 0;  // iterates met whose predicted class had changed
  std::int64_t evaluations = 0;  // gradient evaluations: an explanation costs explainer.evaluations(), its pullback twice that
  std::int64_t iteration = 0;    // at which the returned input was found; 0: the clean input, or the task's start
  std::int64_t projections = 0;  // steps that left ball or box and were brought back
  std::int64_t non_finite = 0;   // iterates whose map or gradient was not finite, at a kink of the model
  std::int64_t followed = 0;     // steps along a gradient
  std::int64_t no_gradient = 0;  // steps that found none: it was zero or not finite, and the walker stayed where it was
  double clean_margin = 0;       // logit of the predicted class above the runner-up, at the clean input
  double margin = 0;             // ... and at the returned one
  // Of an ensemble: how far the value still moved in the last fifth of the sample's work; 0 at the floor, NaN where the
  // value is undefined, and of other attacks.
  double late_gain = std::numeric_limits<double>::quiet_NaN();
  std::string component = {};  // of an ensemble: which one found the returned input; empty: none, or no ensemble
  // Of the best (kWorst) or current (kLast) point after each iteration: its metric, and the evaluations used by then.
  std::vector<double> trace = {};
  std::vector<std::int64_t> trace_evaluations = {};
};

// What one component of an ensemble cost, all samples together.
struct ComponentCost {
  std::string name;
  std::int64_t evaluations = 0;
  double seconds = 0;
};

struct AttackResult {
  at::Tensor perturbed;         // [B, sample...]
  Explanation original, moved;  // at inputs and at perturbed
  std::vector<SampleOutcome> samples;
  std::vector<ComponentCost> components = {};  // of an ensemble, in the order they ran
};

class Attack {
 public:
  explicit Attack(std::string name) : name_(std::move(name)) {}
  virtual ~Attack() = default;
  virtual AttackResult run(const AttackTask& task) const = 0;
  // Throws kUsage, before any work, when model, explainer or metric lack what the attack needs.
  virtual void check(const AttackTask& task) const = 0;
  // The selection that was really made where `asked` was asked for: points without an order have no last one.
  virtual Select selects(Select asked) const { return asked; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

const Registry<Attack>& attacks();

}  // namespace holdfast

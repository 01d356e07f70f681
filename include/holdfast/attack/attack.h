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

#include "holdfast/attack/outcome.h"
#include "holdfast/attack/threat.h"
#include "holdfast/core/precision.h"
#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/metric/metric.h"

namespace holdfast::attack {

inline constexpr double kMargin = 1e-4;

enum class Select {
  kWorst,  // the preserved iterate at which the metric is worst for the defender
  kLast,   // the last preserved iterate before the first label flip: the papers' rule
};

std::string to_string(Select select);          // "worst", "last"
Select parse_select(const std::string& text);  // throws kUsage

// How the iterates of a walk are stepped, projected and judged.
enum class Backend {
  kAuto,   // in batches on a GPU, by rows on the CPU
  kRows,   // one row after the other on the host, in double
  kBatch,  // as tensor operations on the model's device, wherever threat and metric allow it
};

struct AttackTask {
  const Model& model;
  const Explainer& explainer;
  const Metric& metric;
  const ThreatModel& threat;
  Samples samples;  // on the model's device, with targets, which stay for the whole attack; see run_cell for all of them
  std::uint64_t seed = 0;
  // Rows of the whole run, the same for all its tiles: what an attack scales itself by; undefined: the inputs.
  at::Tensor reference = {};
  // [B, sample...], points known to be bad, allowed by the threat model: those found at a smaller epsilon, say. Attacks that
  // keep the worst point look at them first, so that more epsilon never finds less.
  at::Tensor start = {};
  Select select = Select::kWorst;
  Backend backend = Backend::kAuto;
  // Of directions, on a GPU. Points are judged, kept and verified in the model's own precision.
  Precision precision = Precision::kFloat32;
  bool trace = false;  // record the metric after every iteration

  // What is known about the features of the maps.
  const Schema& map_schema() const { return explainer.map_schema(*samples.schema); }
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
  // Gradient evaluations that a sample takes unless it breaks early, about: for progress, which weighs attacks by it.
  virtual double expected_evaluations(const Explainer& explainer, const Schema& schema) const {
    return 100 * static_cast<double>(explainer.evaluations(schema));
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

const Registry<Attack>& attacks();
Registry<Attack>& attacks_to_extend();  // for methods that are not built in

}  // namespace holdfast::attack

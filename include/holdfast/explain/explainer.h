// Explainers: a map that says how much each input element, or each feature of a table, matters for the explained class.
//
//     attribute(task)   the maps
//     linearize(task)   the maps, and the way to pull a cotangent back: the input gradient of <cotangent, map>
//
// Scale. A map is maps * exp(log_scale), one scale for each sample. Gradients of a saturated probability underflow;
// their ranking does not, when the scale is kept apart. Metrics are invariant to it and read `maps`; `explain --out`
// multiplies it out. The scale is a constant: pulling back <cotangent, maps> does not differentiate it.
//
// Samples never mix: row b of every result depends on row b of the task alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/samples.h"
#include "holdfast/model/model.h"

namespace holdfast::explain {

inline constexpr std::int64_t kExplainMemory = std::int64_t{256} << 20;

struct ExplainTask {
  const Model& model;
  Samples samples;  // on the model's device, with targets
  std::uint64_t seed = 0;
  // Bytes that the activations of one batch may take: explainers of many passes cut their work to it.
  std::int64_t memory = kExplainMemory;
  Rule rule = {};  // a surrogate's rule; exact for everything that is reported
  // Maps with their signs, from explainers that report magnitudes: attacks hold the clean signs fixed.
  bool keep_signs = false;
};

enum class ExplainedQuantity;  // logit_cotangent.h

// The gradient by whose magnitudes a map ranks the features: of which quantity of the explained class, and whether the means of
// one-hot groups are taken off it.
struct RankedGradient {
  ExplainedQuantity quantity;
  bool project = false;
};

struct Explanation {
  at::Tensor maps;       // [B, map...], detached: the sample's shape, or what map_schema says
  at::Tensor log_scale;  // [B]
  at::Tensor logits;     // [B, classes] at the inputs, detached: the forward pass is paid for
  // [B], of methods whose maps should add up to a difference of outputs (integrated_gradients, deep_lift, lrp): what is
  // missing, sum(map) - difference, in the units of the explained quantity; undefined for the others.
  at::Tensor delta = {};
  // [B], share of the squared gradient that lay in the means of one-hot groups and was projected away; undefined where
  // nothing was projected.
  at::Tensor gauge_share = {};
};

// An explanation at a point from which cotangents can be pulled back. Holds the graph (or what it needs to make it
// again in chunks); dropping it frees the memory.
class Linearization {
 public:
  virtual ~Linearization() = default;
  const Explanation& at() const { return explanation_; }
  // Input gradient of sum(cotangent * maps), [B, sample...]. May be called more than once.
  virtual at::Tensor pullback(const at::Tensor& cotangent) = 0;

 protected:
  Explanation explanation_;
};

class Explainer {
 public:
  explicit Explainer(std::string name) : name_(std::move(name)) {}
  virtual ~Explainer() = default;

  virtual Explanation attribute(const ExplainTask& task) const = 0;
  // Made from differentiable() unless the explainer knows a cheaper way. Throws kUsage when the explainer or the model
  // cannot. Where maps are magnitudes, cotangents are pulled back with the signs of this point.
  virtual std::unique_ptr<Linearization> linearize(const ExplainTask& task) const;
  // The maps as a function that autograd can differentiate by the inputs and the model's parameters: for training.
  // `task.samples.inputs` must require gradients. Throws kUsage when the explainer is not differentiable.
  virtual at::Tensor differentiable(const ExplainTask& task) const;

  // Throws kUsage, before any work, when the model lacks what the explainer needs.
  virtual void check(const Model& model) const = 0;
  // The same for a whole task: a baseline, a background or one-hot groups that are missing or of another shape throw kUsage or
  // kInput. Reads the inputs' shape; inputs and targets may be on any device. Explainers that need no more leave it as it is.
  virtual void check_task(const ExplainTask& task) const;
  virtual bool is_differentiable() const { return true; }
  // What is known about the features of its maps: the schema of the inputs, whose shape maps have, unless it is said otherwise.
  // Lives as long as `schema` does.
  virtual const Schema& map_schema(const Schema& schema) const { return schema; }
  // Whether maps are defined on valid rows alone: then attacks must keep one-hot groups valid.
  virtual bool needs_valid_rows() const { return false; }
  // The size of the top set that is looked at where nobody says it; nothing: the metric's own default.
  virtual std::optional<std::int64_t> usual_top(const Schema& schema) const {
    (void)schema;
    return std::nullopt;
  }
  // Passes through the model that one attribute() of one sample of this schema costs; pullback costs twice that.
  virtual std::int64_t evaluations(const Schema& schema) const {
    (void)schema;
    return 1;
  }

  // What certificates of rankings need to know; nothing for explainers whose maps are more than one gradient's magnitudes.
  virtual std::optional<RankedGradient> ranked_gradient(const Schema& schema) const {
    (void)schema;
    return std::nullopt;
  }

  const std::string& name() const { return name_; }  // canonical call

 private:
  std::string name_;
};

const Registry<Explainer>& explainers();
Registry<Explainer>& explainers_to_extend();  // for methods that are not built in

// argmax of logits, the lower class on ties; [B] int64.
at::Tensor predicted_class(const at::Tensor& logits);

// Subtracts each one-hot group's mean from its columns: the part of a gradient that no valid row can feel. [B, ...] -> same.
at::Tensor project_groups(const at::Tensor& maps, const Schema& schema);

// Maps with one value for each input element: those of features of a table spread evenly over their columns, others as they are.
at::Tensor maps_of_elements(const at::Tensor& maps, const Schema& schema);

}  // namespace holdfast::explain

// Measures: one number a sample for a model and an explainer around that sample - how thick its ranking is, how curved the
// model, how faithful the map, how stable under noise. Metrics compare two maps that are given; measures make their own.
//
// Samples never mix: value b depends on row b of the task, its id and the seed alone (and on the background).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::measure {

struct MeasureTask {
  const Model& model;
  const Explainer& explainer;
  Samples samples;  // on the model's device, with targets, where a measure runs; see measure_all for all of them
  std::uint64_t seed = 0;
  double epsilon = 0;         // radius of the neighbourhood for measures that name none of their own; 0: none was given
  at::Tensor endpoints = {};  // [B, sample...] or [B, M, sample...]: perturbed inputs that are given, an attack's result
  std::int64_t memory = kExplainMemory;

  // Gives the explainer's task for the same samples.
  ExplainTask explain_task() const { return {.model = model, .samples = samples, .seed = seed, .memory = memory}; }
};

struct Measurement {
  std::vector<double> values;  // one a sample; NaN where undefined
  // Named columns beside it, one value a sample each: standard error, label flips met, the same for random features.
  std::vector<std::pair<std::string, std::vector<double>>> parts = {};
};

class Measure {
 public:
  explicit Measure(std::string name) : name_(std::move(name)) {}
  virtual ~Measure() = default;

  virtual Measurement run(const MeasureTask& task) const = 0;
  // Throws kUsage, before any work, when model, explainer or data lack what the measure needs.
  virtual void check(const MeasureTask& task) const = 0;
  // What a person should know before the work starts; empty: nothing.
  virtual std::string announcement(const MeasureTask&) const { return {}; }
  virtual bool higher_is_better() const = 0;
  // Ends of what a value may be; an interval of values that are all equal needs them (metric/levels.h).
  struct Range {
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  };
  virtual Range range() const { return {}; }
  // Whether the explainer matters: curvature and thickness of the bare gradient do not read it.
  virtual bool uses_explainer() const { return true; }

  const std::string& name() const { return name_; }  // canonical call

 private:
  std::string name_;
};

const Registry<Measure>& measures();
Registry<Measure>& measures_to_extend();  // for methods that are not built in

}  // namespace holdfast::measure

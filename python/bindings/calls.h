// The functions behind holdfast.explain, attack, measure, measure_model, audit and choose_threat: tensors in, tensors out, no
// Python objects. They run without the interpreter lock.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/json.h"
#include "holdfast/experiment/explain_all.h"
#include "subject.h"

namespace holdfast::python {

// Maps in true units, as `holdfast explain` writes them.
ExplainedBatch explain(const Question& question, const std::string& explainer);

struct Attacked {
  at::Tensor perturbed, original_maps, perturbed_maps;  // [B, sample...]; maps in true units
  at::Tensor logits, perturbed_logits;                  // [B, classes]
  std::map<std::string, at::Tensor> columns;            // [B] each: every number of SampleOutcome by its name
  std::vector<std::string> component;
  std::vector<std::vector<double>> trace;
  std::string metric, attack, explainer;  // canonical names
  std::string select;                     // which iterates were really kept
  Json summary;                           // the metric with its levels
  Json random;                            // what random points found; null: they were not asked for
  Json components;                        // of an ensemble, what each won and cost
};
// A trial of one explainer, attack, metric and epsilon.
Attacked attack(const Question& question, const Trial& trial, bool trace, bool random_points);

// What `holdfast certify --json` prints; the trial may have several epsilons.
Json certify(const Question& question, const Trial& trial);

// A metric's JSON as `holdfast measure --json` prints it, less its values, which come as a tensor: [B] double.
struct Compared {
  Json summary;
  at::Tensor values;
};
// Without levels: name, mean, count and undefined only.
std::vector<Compared> measure(const at::Tensor& original, const at::Tensor& perturbed, const std::vector<std::string>& metrics,
                              const std::shared_ptr<const Schema>& schema, const std::optional<at::Tensor>& labels,
                              std::uint64_t seed, bool levels);

struct MeasureChoice {
  std::vector<std::string> measures;
  std::string explainer;
  double epsilon = 0;  // radius of the neighbourhood for measures that name none of their own; 0: none is given
  std::optional<at::Tensor> endpoints;
};

// A measure's JSON: name, mean with its interval, and which way is better; its values and the columns beside them as tensors.
struct Measured {
  Json summary;
  at::Tensor values;
  std::vector<std::pair<std::string, at::Tensor>> parts;
};
std::vector<Measured> measure_model(const Question& question, const MeasureChoice& choice);

struct AuditChoice {
  Trial trial;
  std::string title, dataset, out;  // dataset: what the samples are called
  std::vector<std::string> gates;
  at::Tensor labels;
  std::int64_t worst = 4;
  bool restart = false;
  std::string call;            // for the manifest
  std::string methods = "{}";  // JSON: what Python's own methods are, by name: a changed one makes another run
};
struct NamedModel {
  std::string name;
  std::shared_ptr<const Model> model;
  std::string content;  // digest of what Python knows of it; empty: its file's
};
// Runs the audit in its folder and writes the report; `question` has no model of its own.
void audit(const Question& question, std::vector<NamedModel> models, const AuditChoice& choice);
// The same for a configuration file; of the choice out, gates, restart, call and methods are read.
void audit_config(const std::string& path, const AuditChoice& choice, const std::vector<std::string>& overrides,
                  const TileOptions& tiles, at::Device device);
// A Suggestion.
Json choose_threat(const Question& question, const std::string& explainer, const std::optional<std::string>& norm,
                   const std::optional<double>& noise, const std::optional<double>& tolerance);
// Throws where the folder holds no complete run, or one whose files were changed since.
void check_run(const std::string& folder);

}  // namespace holdfast::python

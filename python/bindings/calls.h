// The functions behind holdfast.explain, holdfast.attack and holdfast.measure: tensors in, tensors out, no Python objects. They
// run without the interpreter lock.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/norm.h"
#include "holdfast/experiment/explain_all.h"
#include "subject.h"

namespace holdfast::python {

// Maps in true units, as `holdfast explain` writes them.
ExplainedBatch explain(const Question& question, const std::string& explainer);

struct AttackChoice {
  std::string attack, explainer, metric, norm;
  double epsilon = 1;
  std::optional<std::pair<double, double>> box;
  std::string select = "worst";
  bool trace = false;
};

// One value a sample in every tensor.
struct Attacked {
  at::Tensor perturbed, original_maps, perturbed_maps;  // [B, sample...]; maps in true units
  at::Tensor logits, perturbed_logits;                  // [B, classes]
  at::Tensor targets, prediction, prediction_after;
  at::Tensor norm, value, first_swap, label_flips, evaluations, iteration;
  std::vector<std::vector<double>> trace;
  std::string metric, attack, explainer;  // canonical names
  std::string summary;                    // JSON: the metric with its levels
};
Attacked attack(const Question& question, const AttackChoice& choice);

// A metric's JSON as `holdfast measure --json` prints it, less its values, which come as a tensor: [B] double.
struct Compared {
  std::string summary;
  at::Tensor values;
};
std::vector<Compared> measure(const at::Tensor& original, const at::Tensor& perturbed, const std::vector<std::string>& metrics,
                              const std::optional<Schema>& schema, const std::optional<at::Tensor>& labels, std::uint64_t seed);

}  // namespace holdfast::python

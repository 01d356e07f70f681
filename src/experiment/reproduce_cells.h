// The two kinds of cells that experiments are made of, as jobs: a network's explanations attacked, and a measure around its
// samples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/experiment/reproduce.h"

namespace holdfast {

// Which network is explained, and on what: the first `samples` of a part.
struct CellSubject {
  LateModel model;
  std::string key;  // of the model: all that decides its weights
  std::shared_ptr<const ExperimentData> data;
  std::string explainer = "saliency";
  std::string part = "test";
  std::int64_t samples = 100;
};

struct AttackChoice {
  std::string attack = "er";
  std::vector<std::string> metrics{"top_k(k=8)"};  // the first is attacked; all are measured where the attack ended
  Norm norm = Norm::kL2;
  double epsilon = 1;
  std::optional<std::pair<double, double>> box = {};
  Select select = Select::kWorst;
};

// The rows of the subject: inputs, labels and positions in the dataset.
struct SubjectRows {
  at::Tensor inputs, labels, ids;
};
SubjectRows rows_of(const CellSubject& subject);
// Rows of the training part, for explainers and measures that compare with them.
at::Tensor background_of(const ExperimentData& data);

// The attack itself, on one thread.
CellResult attacked(const CellSubject& subject, const AttackChoice& choice, std::uint64_t seed);

// {"metrics": [{"name", "values", "chance", "between", "specific", "distinct_top_sets"}], "first_swap", "sensitivity": [...],
//  "flipped": share of samples whose class flipped on the way, "auc", "attacked_auc", "late_gain"}
// `values`, `specific`, `first_swap` and `sensitivity` have one number a sample; `specific` is (v - between) / (perfect -
// between).
Job attack_job(const CellSubject& subject, const AttackChoice& choice, std::uint64_t seed);

// {"values": [...], "parts": {"error": [...]}}; `epsilon` is the radius of measures that name none.
Job measure_job(const CellSubject& subject, const std::string& measure, double epsilon, std::uint64_t seed);

}  // namespace holdfast

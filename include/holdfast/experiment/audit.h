// An audit: models x explainers x attacks x metrics on the samples of each model's dataset, written as a run folder
// (docs/run-folder.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"
#include "holdfast/experiment/gate.h"
#include "holdfast/experiment/grid.h"
#include "holdfast/model/model.h"

namespace holdfast::experiment {

struct AuditData {
  std::string name;
  Samples samples;  // finite: what was not is counted in `excluded`; targets undefined: each model's predictions
  Trial trial = {};
  std::vector<std::pair<std::string, std::int64_t>> excluded = {};  // reason, count
  std::vector<std::string> notes = {};
};

struct AuditModel {
  std::string name;
  std::size_t data = 0;  // position in AuditPlan::data
  std::shared_ptr<const Model> model;
  Json facts = Json::object();  // origin, parameters, recipe: copied to results.json
};

struct AuditPlan {
  std::string title = "audit";
  std::uint64_t seed = 0;
  TileOptions tiles;
  std::vector<AuditData> data;
  std::vector<AuditModel> models;
  std::int64_t worst = 4;                              // samples of each row whose arrays are kept
  bool keep_arrays = false;                            // keep the arrays of all samples, not only of the worst
  std::vector<std::string> command;                    // for the manifest
  Json identity = Json::object();                      // what makes this run this run: see claim_run_folder
  std::vector<std::pair<std::string, double>> stages;  // seconds of what was done before, for the manifest
  Communicator* ranks = nullptr;                       // others that run the same plan
};

// How a model's outputs were read, for its facts: {"output": "logit"} unless they are logits, and what was asked for:
// {"output_kind": "probability", "output_name": "scores"}.
Json output_facts(const Model& model, const ModelOptions& reading = {});
// AuditModel::facts of a model that is read and not trained: {"model": `name`, output_facts, "parameters"}.
Json model_facts(const std::string& name, const Model& model, const ModelOptions& reading = {});

// Leaves out rows with a non-finite value, and counts them.
void exclude_non_finite(AuditData& data);

// Throws kUsage for a gate whose metric or measure no dataset's trial has: it would pass for ever. So would one on the difference
// to another run where none is `compared`.
void check_gates_answered(const std::vector<Gate>& gates, const std::vector<Trial>& trials, bool compared = false);

// The same of metrics whose k is the explainer's, which is known with the samples.
void check_gates_answered(const std::vector<Gate>& gates, const AuditPlan& plan);

// Runs what is not done yet and writes the folder; continues one that was interrupted. Returns results.json. The folder must
// have been claimed (run_folder.h). `report.html` is not written here: it is made from the files; gates are complete_audit's.
// Ranks other than 0 compute tiles, write nothing else, and get null.
Json run_audit(const AuditPlan& plan, const std::string& folder);

// What a row of a plan costs.
struct RowCost {
  Cell cell;
  std::int64_t evaluations = 0;  // the most for one sample
  double seconds = 0;            // of one thread or GPU, at most
  std::int64_t tiles = 0;        // the least that a worker takes is one of them
};
struct PlanCost {
  std::vector<RowCost> rows = {};

  double seconds() const;
  double seconds_on(std::int64_t workers) const;  // threads, or GPUs, that work side by side
};
// Runs every row on its first samples alone, and writes nothing.
PlanCost try_plan(const AuditPlan& plan);

// An audit before any work: who it is, what it must meet, and how to prepare it.
struct AuditRequest {
  Json identity;
  std::vector<Gate> gates;
  std::function<AuditPlan()> prepare;
  std::vector<std::string> command = {};  // for the manifest
  std::string compare = {};               // the folder of another run, for gates on the difference; may be empty
  Communicator* ranks = nullptr;          // others with the same request
};
// results.json of the complete run that lies in the claimed folder, held against these gates, or of a run that is done now. Null
// on ranks other than 0.
Json complete_audit(const AuditRequest& request, const std::string& folder);

}  // namespace holdfast::experiment

// The configuration of `holdfast audit CONFIG.toml --out RUN`:
//
//     title = "which of these hold?"
//     seed = 0
//     samples = 100                              # of each dataset's part, the first ones
//     worst = 4                                  # samples of each row whose arrays are kept for the report
//     gates = ["top_k(k=8)>=0.6"]
//
//     explainers = ["saliency"]                  # these hold for every dataset that does not set its own
//     attacks = ["random(samples=100)", "er"]
//     metrics = ["top_k(k=8)"]
//     measures = ["thickness(k=8)", "curvature"]  # none when left out
//     select = "worst"                           # or "last", the papers' rule
//     [threat]
//     norm = "l2"                                # l2 | linf | l1
//     epsilon = 0.5                              # or "8/255"; several, [0.1, 0.5]: each starts where the one before ended
//     box = [0, 1]                               # optional
//     valid = true                               # tables: only valid rows; default false
//     tolerance = 0.05                           # of the predicted class's probability; default: none. Of a value
//     sides = "first"                            # pairs: which side may be perturbed; default "both"
//     negative_weights = true                    # graphs: default false
//
//     [[dataset]]
//     name = "breast_cancer"                     # call; how models and tables refer to it unless `label` is given
//     label = "tumours"
//     part = "test"                              # test | validation | train | all
//     seed = 0                                   # of the split
//     fold = 0                                   # for datasets split by folds
//     samples = 50
//     attacks = ["er(steps=50)"]
//     [dataset.threat]
//     epsilon = 1.0
//
//     [[model]]
//     name = "plain"
//     dataset = "tumours"                        # the only one when it is left out
//     file = "mlp:weights.safetensors"           # a trained model (paths are relative to this file), or
//     output_kind = "logit"                      # what the file gives: logits | logit | probabilities | probability | value
//     output_name = "scores"                     # which output counts, of a file with several
//     architecture = "mlp(hidden=32)"            # one to train here, with the keys of `holdfast train`
//     [model.train]
//     recipe = "sp"
//     epochs = 40
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/config.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/dataset.h"
#include "holdfast/experiment/audit.h"
#include "holdfast/train/trainer.h"

namespace holdfast::experiment {

struct AuditConfig {
  struct DatasetEntry {
    std::string call, label, part = "test";
    std::uint64_t seed = 0;
    std::int64_t fold = 0;
    std::int64_t samples = 100;
    Trial trial;
  };
  struct ModelEntry {
    std::string name;
    std::size_t dataset = 0;  // position in `datasets`
    std::string file;         // empty: trained here
    ModelOptions reading;     // of the file
    TrainOptions training;
  };

  std::string title = "audit";
  std::uint64_t seed = 0;
  std::int64_t worst = 4;
  std::vector<Gate> gates;
  std::vector<DatasetEntry> datasets;
  std::vector<ModelEntry> models;
  Json resolved;  // for the manifest
};

// Reads every key and calls config.finish(). Names of methods are checked too, so that a misspelt one costs no training.
AuditConfig read_audit_config(const Config& config);

// Adds gates to the configuration's own. Throws kUsage for one that no row can answer; `compared`: whether another run is.
void add_gates(AuditConfig& config, const std::vector<std::string>& gates, bool compared);

// The datasets of the configuration, in its order.
std::vector<Dataset> load_datasets(const AuditConfig& config);

// Trains what is to be trained (into RUN/models/NAME, where an interrupted training goes on) and loads the other models. Of
// several ranks, rank 0 trains and the others wait for what it made.
AuditPlan prepare_audit(const AuditConfig& config, const std::vector<Dataset>& datasets, const std::string& folder,
                        const TileOptions& tiles, at::Device device, Communicator* ranks = nullptr);

// The audit that the configuration describes, in `folder`.
AuditRequest request_of(const AuditConfig& config, const std::string& folder, const TileOptions& tiles, at::Device device,
                        Communicator* ranks = nullptr);

}  // namespace holdfast::experiment

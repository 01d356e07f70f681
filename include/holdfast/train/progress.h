// What a training has done so far, as its checkpoint and its history.jsonl say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"

namespace holdfast::train {

struct EpochRecord {
  std::int64_t epoch = 0;    // from 1
  double learning_rate = 0;  // at its first step
  double loss = 0;           // mean over the samples, as are the parts
  std::vector<std::pair<std::string, double>> parts;
  std::optional<double> validation_loss, accuracy, auc;  // of the validation samples; unset without any, or where undefined
  std::optional<double> ranking_kept;                    // P@k against the starting network, of a retraining
  double seconds = 0;
};
// One line of history.jsonl.
Json to_json(const EpochRecord& record);
EpochRecord epoch_record_from_json(const Json& json);

struct TrainProgress {
  std::int64_t step = 0;        // of the optimiser
  std::int64_t best_epoch = 0;  // from 1; 0: none yet
  double best_value = 0;        // higher is better
  std::vector<EpochRecord> history = {};
};
Json to_json(const TrainProgress& progress);
// Throws kInput, naming the file, when something is missing or of another type.
TrainProgress progress_from_json(const Json& json, const std::string& path);

}  // namespace holdfast::train

// All that a training needs to go on as if it had never stopped, in one safetensors file:
//     network.<parameter>            weights and running statistics after the last finished epoch
//     best.<parameter>               the same after the best epoch so far; absent before the first
//     optimizer.<slot>.<parameter>   the optimiser's memory
// and in the metadata `settings` (what decides the weights: another training's checkpoint is refused) and `progress`
// (epoch, step, best value, history), both JSON.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"
#include "holdfast/model/network.h"
#include "holdfast/train/progress.h"

namespace holdfast::train {

struct Checkpoint {
  std::vector<Parameter> network, best, optimizer;
  Json settings;
  TrainProgress progress;
};

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);  // atomic
// Throws kInput when the file is damaged or no checkpoint.
Checkpoint load_checkpoint(const std::string& path);

// Values copied to the CPU, so that training on does not change them.
std::vector<Parameter> snapshot(const std::vector<Parameter>& parameters);

}  // namespace holdfast::train

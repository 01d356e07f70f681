// A training checkpoint as a file holds it, without torch.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/safetensors.h"
#include "holdfast/core/stages.h"
#include "holdfast/train/progress.h"

namespace holdfast::train {

inline constexpr const char* kCheckpointFormat = "holdfast training checkpoint 1";
inline constexpr std::array kCheckpointGroups{"network.", "best.", "optimizer."};

struct CheckpointFile {
  Json settings;
  TrainProgress progress;
  std::array<std::vector<std::pair<std::string, RawArray>>, kCheckpointGroups.size()> groups;  // names without the group's
};

// Throws kInput when the file is no checkpoint or a damaged one.
CheckpointFile parse_checkpoint(TensorFile file, const std::string& path);

}  // namespace holdfast::train

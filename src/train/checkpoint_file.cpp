#include "checkpoint_file.h"

#include <string_view>

#include "holdfast/core/error.h"

namespace holdfast::train {
namespace {

const std::string& metadata(const TensorFile& file, const std::string& key, const std::string& path) {
  const std::string* text = file.find_metadata(key);
  if (text == nullptr) input_error("{}: it is no training checkpoint: its metadata has no '{}'", path, key);
  return *text;
}

}  // namespace

CheckpointFile parse_checkpoint(TensorFile file, const std::string& path) {
  if (metadata(file, "format", path) != kCheckpointFormat)
    input_error("{}: it is a checkpoint of another version of holdfast", path);
  CheckpointFile checkpoint{
      .settings = parse_json(metadata(file, "settings", path), path + ": settings"),
      .progress = progress_from_json(parse_json(metadata(file, "progress", path), path + ": progress"), path)};
  for (auto& [name, array] : file.arrays) {
    std::size_t group = 0;
    while (group < kCheckpointGroups.size() && !name.starts_with(kCheckpointGroups[group])) ++group;
    if (group == kCheckpointGroups.size()) input_error("{}: unknown tensor '{}' in a training checkpoint", path, name);
    checkpoint.groups[group].emplace_back(name.substr(std::string_view(kCheckpointGroups[group]).size()), std::move(array));
  }
  return checkpoint;
}

}  // namespace holdfast::train

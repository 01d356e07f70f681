#include "holdfast/train/checkpoint.h"

#include "holdfast/core/error.h"
#include "holdfast/core/safetensors.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::train {
namespace {

constexpr const char* kFormat = "holdfast training checkpoint 1";
constexpr const char* kGroups[] = {"network.", "best.", "optimizer."};

const std::string& metadata(const TensorFile& file, const std::string& key, const std::string& path) {
  const std::string* text = file.find_metadata(key);
  if (text == nullptr) input_error("{}: it is no training checkpoint: its metadata has no '{}'", path, key);
  return *text;
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  TensorFile file;
  file.metadata = {{"format", kFormat}, {"settings", checkpoint.settings.dump()}, {"progress", checkpoint.progress.dump()}};
  const std::vector<Parameter>* groups[] = {&checkpoint.network, &checkpoint.best, &checkpoint.optimizer};
  for (std::size_t group = 0; group < std::size(groups); ++group) {
    for (const Parameter& parameter : *groups[group]) {
      file.arrays.emplace_back(kGroups[group] + parameter.name, to_raw(parameter.tensor.detach().cpu().contiguous()));
    }
  }
  write_safetensors(path, file);
}

Checkpoint load_checkpoint(const std::string& path) {
  TensorFile file = read_safetensors(path);
  if (metadata(file, "format", path) != kFormat) input_error("{}: it is a checkpoint of another version of holdfast", path);
  Checkpoint checkpoint;
  checkpoint.settings = parse_json(metadata(file, "settings", path), path + ": settings");
  checkpoint.progress = parse_json(metadata(file, "progress", path), path + ": progress");
  std::vector<Parameter>* groups[] = {&checkpoint.network, &checkpoint.best, &checkpoint.optimizer};
  for (auto& [name, array] : file.arrays) {
    std::size_t group = 0;
    while (group < std::size(groups) && !name.starts_with(kGroups[group])) ++group;
    if (group == std::size(groups)) input_error("{}: unknown tensor '{}' in a training checkpoint", path, name);
    groups[group]->push_back({name.substr(std::string(kGroups[group]).size()), to_tensor(std::move(array))});
  }
  return checkpoint;
}

std::vector<Parameter> snapshot(const std::vector<Parameter>& parameters) {
  std::vector<Parameter> copies;
  for (const Parameter& parameter : parameters) {
    copies.push_back({parameter.name,
                      parameter.tensor.detach().to(at::kCPU, parameter.tensor.scalar_type(), false, /*copy=*/true),
                      parameter.trainable});
  }
  return copies;
}

}  // namespace holdfast::train

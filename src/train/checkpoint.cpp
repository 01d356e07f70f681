#include "holdfast/train/checkpoint.h"

#include "checkpoint_file.h"
#include "holdfast/core/safetensors.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::train {

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  TensorFile file;
  file.metadata = {
      {"format", kCheckpointFormat}, {"settings", checkpoint.settings.dump()}, {"progress", to_json(checkpoint.progress).dump()}};
  const std::vector<Parameter>* groups[] = {&checkpoint.network, &checkpoint.best, &checkpoint.optimizer};
  for (std::size_t group = 0; group < std::size(groups); ++group) {
    for (const Parameter& parameter : *groups[group]) {
      file.arrays.emplace_back(kCheckpointGroups[group] + parameter.name, to_raw(parameter.tensor.detach().cpu().contiguous()));
    }
  }
  seal(file);
  write_safetensors(path, file);
}

Checkpoint load_checkpoint(const std::string& path) {
  TensorFile written = read_safetensors(path);
  if (written.find_metadata("digest") != nullptr && !is_sealed(written))
    input_error("{} is not as the training wrote it; train again with --restart", path);
  CheckpointFile file = parse_checkpoint(std::move(written), path);
  Checkpoint checkpoint{.settings = std::move(file.settings), .progress = std::move(file.progress)};
  std::vector<Parameter>* groups[] = {&checkpoint.network, &checkpoint.best, &checkpoint.optimizer};
  for (std::size_t group = 0; group < std::size(groups); ++group) {
    for (auto& [name, array] : file.groups[group]) groups[group]->push_back({name, to_tensor(std::move(array))});
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

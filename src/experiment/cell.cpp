#include "holdfast/experiment/cell.h"

#include "holdfast/attack/verify.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/safetensors.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"

namespace holdfast {
namespace {

constexpr const char* kOutcomes = "samples";  // key of the per-sample outcomes in a tile's metadata

// Side by side only when the model allows it; a device runs one tile at a time.
int threads_for(const Model& model, int threads) {
  return model.capabilities().side_by_side && model.device().is_cpu() ? threads : 1;
}

std::int64_t tile_size(const TileOptions& tiles, const Layout& layout) {
  return tiles.size > 0 ? tiles.size : default_tile(layout);
}

at::Tensor rows(const at::Tensor& tensor, const Tile& tile) {
  return tensor.slice(0, tile.begin, tile.end);
}

at::Tensor on_device(const at::Tensor& tensor, const Model& model) {
  return tensor.to(model.device());
}

at::Tensor inputs_for(const at::Tensor& inputs, const Tile& tile, const Model& model) {
  return rows(inputs, tile).to(at::TensorOptions().device(model.device()).dtype(model.dtype())).contiguous();
}

at::Tensor targets_for(const at::Tensor& targets, const Tile& tile, const Model& model, const at::Tensor& inputs) {
  if (targets.defined()) return on_device(rows(targets, tile), model);
  const at::NoGradGuard no_grad;
  return predicted_class(model.logits(inputs));
}

at::Tensor to_cpu(const at::Tensor& tensor) {
  return tensor.detach().cpu().contiguous();
}

CellResult run_tile(const CellTask& task, const Tile& tile) {
  const at::Tensor inputs = inputs_for(task.inputs, tile, task.model);
  const at::Tensor targets = targets_for(task.targets, tile, task.model, inputs);
  const at::Tensor ids = rows(task.sample_ids, tile);
  const AttackTask attack_task{.model = task.model,
                               .explainer = task.explainer,
                               .metric = task.metric,
                               .threat = task.threat,
                               .schema = task.schema,
                               .inputs = inputs,
                               .targets = targets,
                               .sample_ids = ids,
                               .seed = task.seed,
                               .select = task.select,
                               .trace = task.trace};
  AttackResult result = task.attack.run(attack_task);
  return {.targets = to_cpu(targets),
          .perturbed = to_cpu(result.perturbed),
          .original_maps = to_cpu(result.original.maps),
          .moved_maps = to_cpu(result.moved.maps),
          .original_scale = to_cpu(result.original.log_scale),
          .moved_scale = to_cpu(result.moved.log_scale),
          .logits = to_cpu(result.original.logits),
          .moved_logits = to_cpu(result.moved.logits),
          .samples = std::move(result.samples)};
}

// Stored tiles too: a file may have been changed.
void verify_tile(const CellTask& task, const Tile& tile, const CellResult& result) {
  const at::Tensor inputs = inputs_for(task.inputs, tile, task.model);
  verify(task.model, task.threat, inputs, result.perturbed.to(inputs.options()), rows(task.sample_ids, tile), task.attack.name());
}

// A map that is zero everywhere ranks nothing and cannot be moved: as a result it would pass for perfectly robust.
void check_maps(const at::Tensor& maps, const std::string& explainer, const std::string& model) {
  const std::int64_t samples = maps.size(0);
  const std::int64_t empty = samples - maps.flatten(1).ne(0).any(1).sum().item<std::int64_t>();
  if (empty == samples) {
    input_error("{}: every explanation of {} is zero; its output has no gradient by its inputs", explainer, model);
  }
  if (empty > 0) log_warning("{}: {} of {} explanations are zero everywhere and rank nothing", explainer, empty, samples);
}

// What a sample gets must not depend on the samples beside it, or results would depend on the tile.
void check_samples_apart(const Model& model, const at::Tensor& inputs) {
  const at::NoGradGuard no_grad;
  const std::int64_t samples = std::min<std::int64_t>(inputs.size(0), 3);
  const at::Tensor batch = inputs_for(inputs, {.begin = 0, .end = samples}, model);
  const at::Tensor together = model.logits(batch).to(at::kDouble);
  for (std::int64_t i = 0; i < samples; ++i) {
    const at::Tensor alone = model.logits(batch.slice(0, i, i + 1)).to(at::kDouble);
    const double scale = 1 + alone.abs().max().item<double>();
    if ((alone[0] - together[i]).abs().max().item<double>() > 1e-3 * scale) {
      input_error("{}: its output for a sample depends on the other samples of the batch", model.name());
    }
  }
}

// The tensors of a result by name, for storing and joining.
std::vector<std::pair<const char*, at::Tensor CellResult::*>> tensor_fields() {
  return {{"targets", &CellResult::targets},
          {"perturbed", &CellResult::perturbed},
          {"original_maps", &CellResult::original_maps},
          {"moved_maps", &CellResult::moved_maps},
          {"original_scale", &CellResult::original_scale},
          {"moved_scale", &CellResult::moved_scale},
          {"logits", &CellResult::logits},
          {"moved_logits", &CellResult::moved_logits}};
}

Json outcome_to_json(const SampleOutcome& sample) {
  return {{"value", sample.value},
          {"first_swap", sample.first_swap},
          {"label_flips", sample.label_flips},
          {"evaluations", sample.evaluations},
          {"iteration", sample.iteration},
          {"trace", sample.trace}};
}

// Undefined values are null in JSON.
double number_or_nan(const Json& json) {
  return json.is_null() ? std::nan("") : json.get<double>();
}

SampleOutcome outcome_from_json(const Json& json) {
  SampleOutcome sample{.value = number_or_nan(json.at("value")),
                       .first_swap = json.at("first_swap"),
                       .label_flips = json.at("label_flips"),
                       .evaluations = json.at("evaluations"),
                       .iteration = json.at("iteration")};
  for (const Json& value : json.at("trace")) sample.trace.push_back(number_or_nan(value));
  return sample;
}

CellResult join(std::vector<CellResult> tiles) {
  CellResult whole;
  for (const auto& [name, field] : tensor_fields()) {
    std::vector<at::Tensor> parts;
    for (const CellResult& tile : tiles) parts.push_back(tile.*field);
    whole.*field = at::cat(parts);
  }
  for (CellResult& tile : tiles) {
    whole.samples.insert(whole.samples.end(), std::make_move_iterator(tile.samples.begin()),
                         std::make_move_iterator(tile.samples.end()));
  }
  return whole;
}

}  // namespace

TileStore::TileStore(std::string folder) : folder_(std::move(folder)) {
  make_folders(folder_);
}

std::string TileStore::path(std::int64_t tile) const {
  return fmt::format("{}/{:06}.safetensors", folder_, tile);
}

bool TileStore::has(std::int64_t tile) const {
  return file_exists(path(tile));
}

CellResult TileStore::load(std::int64_t tile) const {
  TensorFile file = read_safetensors(path(tile));
  CellResult result;
  for (const auto& [name, field] : tensor_fields()) {
    const RawArray* array = file.find(name);
    if (array == nullptr) input_error("{}: array '{}' is missing; delete the file and run again", path(tile), name);
    result.*field = to_tensor(*array);
  }
  const std::string* samples = file.find_metadata(kOutcomes);
  if (samples == nullptr) input_error("{}: the samples' outcomes are missing; delete the file and run again", path(tile));
  for (const Json& sample : parse_json(*samples, path(tile))) result.samples.push_back(outcome_from_json(sample));
  return result;
}

void TileStore::save(std::int64_t tile, const CellResult& result) const {
  TensorFile file;
  for (const auto& [name, field] : tensor_fields()) file.arrays.emplace_back(name, to_raw(result.*field));
  Json samples = Json::array();
  for (const SampleOutcome& sample : result.samples) samples.push_back(outcome_to_json(sample));
  file.metadata.emplace_back(kOutcomes, samples.dump());
  write_safetensors(path(tile), file);
}

std::int64_t default_tile(const Layout& layout) {
  // Small samples are limited by dispatch and want large tiles; large ones by memory.
  const std::int64_t inputs = layout.inputs();
  if (inputs <= 512) return 256;
  if (inputs <= 8192) return 32;
  return 8;
}

void check_cell(const CellTask& task) {
  task.explainer.check(task.model);
  check_samples_apart(task.model, task.inputs);
  task.metric.check(task.schema);
  // Predicted classes are not known yet; which class is explained decides nothing here.
  const at::Tensor targets = task.targets.defined() ? task.targets : at::zeros({task.inputs.size(0)}, at::kLong);
  task.attack.check({.model = task.model,
                     .explainer = task.explainer,
                     .metric = task.metric,
                     .threat = task.threat,
                     .schema = task.schema,
                     .inputs = task.inputs,
                     .targets = targets,
                     .sample_ids = task.sample_ids,
                     .seed = task.seed,
                     .select = task.select,
                     .trace = task.trace});
}

CellResult run_cell(const CellTask& task, const TileOptions& tiles, Progress* progress, const TileStore* store) {
  check_cell(task);
  const std::int64_t samples = task.inputs.size(0);
  const std::int64_t size = tile_size(tiles, task.schema.layout);
  std::vector<CellResult> results(static_cast<std::size_t>(tile_count(samples, size)));
  for_each_tile(samples, size, threads_for(task.model, tiles.threads), [&](const Tile& tile) {
    CellResult& result = results[static_cast<std::size_t>(tile.index)];
    if (store != nullptr && store->has(tile.index)) {
      result = store->load(tile.index);
    } else {
      result = run_tile(task, tile);
      if (store != nullptr) store->save(tile.index, result);
    }
    verify_tile(task, tile, result);
    if (progress != nullptr) progress->advance(tile.size());
  });
  CellResult whole = join(std::move(results));
  check_maps(whole.original_maps, task.explainer.name(), task.model.name());
  return whole;
}

at::Tensor predict(const Model& model, const at::Tensor& inputs, const Layout& layout, const TileOptions& tiles) {
  const std::int64_t samples = inputs.size(0);
  const std::int64_t size = tile_size(tiles, layout);
  std::vector<at::Tensor> parts(static_cast<std::size_t>(tile_count(samples, size)));
  for_each_tile(samples, size, threads_for(model, tiles.threads), [&](const Tile& tile) {
    const at::NoGradGuard no_grad;
    parts[static_cast<std::size_t>(tile.index)] = to_cpu(model.logits(inputs_for(inputs, tile, model)));
  });
  return at::cat(parts);
}

ExplainedBatch explain_all(const Model& model, const Explainer& explainer, const Schema& schema, const at::Tensor& inputs,
                           const at::Tensor& targets, const at::Tensor& sample_ids, std::uint64_t seed, const TileOptions& tiles,
                           Progress* progress) {
  explainer.check(model);
  check_samples_apart(model, inputs);
  const std::int64_t samples = inputs.size(0);
  const std::int64_t size = tile_size(tiles, schema.layout);
  std::vector<ExplainedBatch> parts(static_cast<std::size_t>(tile_count(samples, size)));
  for_each_tile(samples, size, threads_for(model, tiles.threads), [&](const Tile& tile) {
    const at::Tensor x = inputs_for(inputs, tile, model);
    const at::Tensor classes = targets_for(targets, tile, model, x);
    const Explanation explanation = explainer.attribute(
        {.model = model, .inputs = x, .targets = classes, .sample_ids = rows(sample_ids, tile), .seed = seed, .schema = &schema});
    parts[static_cast<std::size_t>(tile.index)] = {to_cpu(explanation.maps), to_cpu(explanation.log_scale),
                                                   to_cpu(explanation.logits), to_cpu(classes)};
    if (progress != nullptr) progress->advance(tile.size());
  });
  const auto whole = [&](at::Tensor ExplainedBatch::*field) {
    std::vector<at::Tensor> tensors;
    for (const ExplainedBatch& part : parts) tensors.push_back(part.*field);
    return at::cat(tensors);
  };
  check_maps(whole(&ExplainedBatch::maps), explainer.name(), model.name());
  return {whole(&ExplainedBatch::maps), whole(&ExplainedBatch::log_scale), whole(&ExplainedBatch::logits),
          whole(&ExplainedBatch::targets)};
}

MapBatch fold_maps(const at::Tensor& maps, const Schema& schema) {
  const at::Tensor values = maps.detach().to(at::TensorOptions().device(at::kCPU).dtype(at::kDouble)).contiguous();
  const std::int64_t samples = values.size(0);
  const std::size_t width = samples == 0 ? 0 : static_cast<std::size_t>(values.numel() / samples);
  MapBatch batch{.count = samples, .schema = &schema};
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::span<const double> row(values.const_data_ptr<double>() + static_cast<std::size_t>(sample) * width, width);
    const std::vector<double> folded = fold(schema.layout, row);
    batch.values.insert(batch.values.end(), folded.begin(), folded.end());
  }
  return batch;
}

}  // namespace holdfast

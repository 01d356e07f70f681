#include "holdfast/experiment/cell.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "holdfast/core/files.h"
#include "holdfast/core/safetensors.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/batch_rows.h"
#include "model_tiles.h"

namespace holdfast {
namespace {

constexpr const char* kOutcomes = "samples";  // key of the per-sample outcomes in a tile's metadata

// Rows of the run that attacks may scale themselves by.
constexpr std::int64_t kReferenceRows = 32;

CellResult run_part(const CellTask& task, const Reference& reference, const Tile& tile) {
  const at::Tensor inputs = inputs_for(task.inputs, tile, task.model);
  const at::Tensor targets = targets_for(task.targets, tile, task.model, inputs);
  const at::Tensor ids = rows(task.sample_ids, tile);
  const AttackTask attack_task{
      .model = task.model,
      .explainer = task.explainer,
      .metric = task.metric,
      .threat = task.threat,
      .schema = task.schema,
      .inputs = inputs,
      .targets = targets,
      .sample_ids = ids,
      .seed = task.seed,
      .baseline = reference.baseline,
      .background = reference.background,
      .reference = inputs_for(task.inputs, {.begin = 0, .end = std::min(kReferenceRows, task.inputs.size(0))}, task.model),
      .start = task.start.defined() ? inputs_for(task.start, tile, task.model) : at::Tensor(),
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
          .samples = std::move(result.samples),
          .components = std::move(result.components)};
}

// Stored tiles too: a file may have been changed.
Verification verify_tile(const CellTask& task, const Tile& tile, const CellResult& result) {
  const at::Tensor inputs = inputs_for(task.inputs, tile, task.model);
  return verify(task.model, task.threat, inputs, result.perturbed.to(inputs.options()), rows(task.sample_ids, tile),
                task.attack.name());
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
          {"projections", sample.projections},
          {"non_finite", sample.non_finite},
          {"followed", sample.followed},
          {"no_gradient", sample.no_gradient},
          {"clean_margin", sample.clean_margin},
          {"margin", sample.margin},
          {"component", sample.component},
          {"late_gain", sample.late_gain},
          {"trace", sample.trace},
          {"trace_evaluations", sample.trace_evaluations}};
}

// Undefined values are null in JSON.
double number_or_nan(const Json& json) {
  return json.is_null() ? std::nan("") : json.get<double>();
}

// The margin of the only class is infinite, which JSON writes as null.
double number_or_infinity(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

SampleOutcome outcome_from_json(const Json& json) {
  SampleOutcome sample{.value = number_or_nan(json.at("value")),
                       .first_swap = json.at("first_swap"),
                       .label_flips = json.at("label_flips"),
                       .evaluations = json.at("evaluations"),
                       .iteration = json.at("iteration"),
                       .projections = json.at("projections"),
                       .non_finite = json.at("non_finite"),
                       .followed = json.at("followed"),
                       .no_gradient = json.at("no_gradient"),
                       .clean_margin = number_or_infinity(json.at("clean_margin")),
                       .margin = number_or_infinity(json.at("margin")),
                       .late_gain = number_or_nan(json.at("late_gain")),
                       .component = json.at("component"),
                       .trace_evaluations = json.at("trace_evaluations")};
  for (const Json& value : json.at("trace")) sample.trace.push_back(number_or_nan(value));
  return sample;
}

// Components of one name are one; tiles may have left some out, because all their samples were broken by then.
void add_to(std::vector<ComponentCost>& all, const ComponentCost& more) {
  const auto same = std::find_if(all.begin(), all.end(), [&](const ComponentCost& known) { return known.name == more.name; });
  if (same == all.end()) {
    all.push_back(more);
  } else {
    same->evaluations += more.evaluations;
    same->seconds += more.seconds;
  }
}

// Of two tiles.
Verification worse_of(const Verification& a, const Verification& b) {
  return {.moved = a.moved + b.moved,
          .largest_distance = std::max(a.largest_distance, b.largest_distance),
          .smallest_margin = std::min(a.smallest_margin, b.smallest_margin),
          .largest_change = std::max(a.largest_change, b.largest_change),
          .in_double = a.in_double && b.in_double};
}

CellResult join(std::vector<CellResult> tiles) {
  CellResult whole;
  whole.verified = {.smallest_margin = std::numeric_limits<double>::infinity(), .in_double = true};
  for (const auto& [name, field] : tensor_fields()) {
    std::vector<at::Tensor> parts;
    for (const CellResult& tile : tiles) parts.push_back(tile.*field);
    whole.*field = at::cat(parts);
  }
  for (CellResult& tile : tiles) {
    whole.samples.insert(whole.samples.end(), std::make_move_iterator(tile.samples.begin()),
                         std::make_move_iterator(tile.samples.end()));
    for (const ComponentCost& component : tile.components) add_to(whole.components, component);
    whole.verified = worse_of(whole.verified, tile.verified);
  }
  return whole;
}

// Samples of a tile that are attacked together. An attack by gradient wants the graph of an explanation of many passes until it
// has pulled back through it: where the graphs of a whole tile do not fit the memory all of them are made twice, so there are no
// more samples than fit. (The path of a scale-invariant model is one point.)
std::int64_t attacked_at_once(const CellTask& task, const Tile& tile) {
  const std::int64_t passes = task.explainer.evaluations(task.schema);
  if (passes == 1 || !task.explainer.is_differentiable() || task.model.capabilities().scale_invariant) return tile.size();
  const BatchRows rows({.model = task.model,
                        .inputs = inputs_for(task.inputs, {.begin = tile.begin, .end = tile.begin + 1}, task.model),
                        .targets = {},
                        .sample_ids = {}});
  std::int64_t some = tile.size();
  while (some > 1 && !rows.all_fit(some * passes, Pass::kPullback)) --some;
  return even_part(tile.size(), some);
}

CellResult run_tile(const CellTask& task, const Reference& reference, const Tile& tile) {
  const std::int64_t some = attacked_at_once(task, tile);
  if (some == tile.size()) return run_part(task, reference, tile);
  std::vector<CellResult> parts;
  for (std::int64_t begin = tile.begin; begin < tile.end; begin += some) {
    parts.push_back(run_part(task, reference, {.index = tile.index, .begin = begin, .end = std::min(begin + some, tile.end)}));
  }
  return join(std::move(parts));
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
  const Json outcomes = parse_json(*samples, path(tile));
  for (const Json& sample : outcomes.at("samples")) result.samples.push_back(outcome_from_json(sample));
  for (const Json& component : outcomes.at("components")) {
    result.components.push_back(
        {.name = component.at("name"), .evaluations = component.at("evaluations"), .seconds = component.at("seconds")});
  }
  return result;
}

void TileStore::save(std::int64_t tile, const CellResult& result) const {
  TensorFile file;
  for (const auto& [name, field] : tensor_fields()) file.arrays.emplace_back(name, to_raw(result.*field));
  Json samples = Json::array(), components = Json::array();
  for (const SampleOutcome& sample : result.samples) samples.push_back(outcome_to_json(sample));
  for (const ComponentCost& component : result.components) {
    components.push_back({{"name", component.name}, {"evaluations", component.evaluations}, {"seconds", component.seconds}});
  }
  file.metadata.emplace_back(kOutcomes, Json{{"samples", samples}, {"components", components}}.dump());
  write_safetensors(path(tile), file);
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
                     .baseline = task.baseline,
                     .background = task.background,
                     .select = task.select,
                     .trace = task.trace});
}

CellResult run_cell(const CellTask& task, const TileOptions& tiles, Progress* progress, const TileStore* store) {
  check_cell(task);
  const Reference reference = reference_for(task.baseline, task.background, task.model);
  const std::int64_t samples = task.inputs.size(0);
  const std::int64_t size = tile_size(tiles, task.schema.layout);
  std::vector<CellResult> results(static_cast<std::size_t>(tile_count(samples, size)));
  for_each_tile(samples, size, threads_for(task.model, tiles.threads), [&](const Tile& tile) {
    CellResult& result = results[static_cast<std::size_t>(tile.index)];
    if (store != nullptr && store->has(tile.index)) {
      result = store->load(tile.index);
    } else {
      result = run_tile(task, reference, tile);
      if (store != nullptr) store->save(tile.index, result);
    }
    result.verified = verify_tile(task, tile, result);
    if (progress != nullptr) progress->advance(tile.size());
  });
  CellResult whole = join(std::move(results));
  check_maps(whole.original_maps, task.explainer.name(), task.model.name());
  return whole;
}

MapBatch fold_maps(const at::Tensor& maps, const Schema& schema) {
  const at::Tensor plain = maps.detach().to(at::kCPU).contiguous();
  MapBatch batch{.values = std::vector<double>(static_cast<std::size_t>(plain.size(0) * schema.layout.features())),
                 .count = plain.size(0),
                 .schema = &schema};
  const at::Tensor values = plain.scalar_type() == at::kFloat ? plain : plain.to(at::kDouble);
  AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "fold_maps", [&] {
    const auto count = static_cast<std::size_t>(values.numel());
    fold_into(schema.layout, std::span<const scalar_t>(values.const_data_ptr<scalar_t>(), count), batch.values);
  });
  return batch;
}

}  // namespace holdfast

#include "holdfast/experiment/cell.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "holdfast/core/file_stream.h"
#include "holdfast/core/files.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/large_tensor.h"
#include "holdfast/core/log.h"
#include "holdfast/core/memory.h"
#include "holdfast/core/safetensors.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/tile_work.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/explain/batch_rows.h"
#include "model_tiles.h"

namespace holdfast::experiment {
namespace {

constexpr const char* kOutcomes = "samples";  // key of the per-sample outcomes in a tile's metadata

// Rows of the run that attacks may scale themselves by.
constexpr std::int64_t kReferenceRows = 32;

// What the attack does not know of a sample: predictions, confidences and the size of the perturbation.
void complete_outcomes(CellResult& result, const AttackTask& task, const at::Tensor& inputs) {
  const auto column = [](const at::Tensor& values) { return values.to(at::kDouble).contiguous(); };
  const at::Tensor before = column(predicted_class(result.logits)), after = column(predicted_class(result.perturbed_logits));
  const at::Tensor confident = column(confidence(result.logits, result.targets));
  const at::Tensor confident_after = column(confidence(result.perturbed_logits, result.targets));
  const at::Tensor norms = column(task.threat.distance(result.perturbed, inputs.cpu()));
  for (std::size_t i = 0; i < result.samples.size(); ++i) {
    SampleOutcome& sample = result.samples[i];
    sample.target = result.targets.const_data_ptr<std::int64_t>()[i];
    sample.prediction = static_cast<std::int64_t>(before.const_data_ptr<double>()[i]);
    sample.prediction_after = static_cast<std::int64_t>(after.const_data_ptr<double>()[i]);
    sample.confidence = confident.const_data_ptr<double>()[i];
    sample.confidence_after = confident_after.const_data_ptr<double>()[i];
    sample.norm = norms.const_data_ptr<double>()[i];
  }
}

CellResult run_part(const Attack& attack, const AttackTask& task, const Tile& tile) {
  AttackTask part = task;
  part.samples = samples_for(task.samples, tile, task.model);
  part.reference =
      inputs_for(task.samples.inputs, {.begin = 0, .end = std::min(kReferenceRows, task.samples.count())}, task.model);
  if (task.start.defined()) part.start = inputs_for(task.start, tile, task.model);
  AttackResult attacked = attack.run(part);
  CellResult result{.targets = to_cpu(part.samples.targets),
                    .perturbed = to_cpu(attacked.perturbed),
                    .original_maps = to_cpu(attacked.original.maps),
                    .perturbed_maps = to_cpu(attacked.moved.maps),
                    .original_scale = to_cpu(attacked.original.log_scale),
                    .perturbed_scale = to_cpu(attacked.moved.log_scale),
                    .logits = to_cpu(attacked.original.logits),
                    .perturbed_logits = to_cpu(attacked.moved.logits),
                    .samples = std::move(attacked.samples),
                    .components = std::move(attacked.components)};
  complete_outcomes(result, task, rows(task.samples.inputs, tile));
  return result;
}

Verification verify_tile(const Attack& attack, const AttackTask& task, const Tile& tile, const CellResult& result) {
  const at::Tensor inputs = inputs_for(task.samples.inputs, tile, task.model);
  return verify(task.model, task.threat, inputs, result.perturbed.to(inputs.options()), rows(task.samples.ids, tile),
                attack.name());
}

// The tensors of a result by name, for storing and joining.
std::vector<std::pair<const char*, at::Tensor CellResult::*>> tensor_fields() {
  return {{"targets", &CellResult::targets},
          {"perturbed", &CellResult::perturbed},
          {"original_maps", &CellResult::original_maps},
          {"perturbed_maps", &CellResult::perturbed_maps},
          {"original_scale", &CellResult::original_scale},
          {"perturbed_scale", &CellResult::perturbed_scale},
          {"logits", &CellResult::logits},
          {"perturbed_logits", &CellResult::perturbed_logits}};
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

// Joins what the verifier found in two tiles.
Verification worse_of(const Verification& a, const Verification& b) {
  return {.moved = a.moved + b.moved,
          .largest_distance = std::max(a.largest_distance, b.largest_distance),
          .smallest_margin = std::min(a.smallest_margin, b.smallest_margin),
          .largest_change = std::max(a.largest_change, b.largest_change),
          .in_double = a.in_double && b.in_double};
}

CellResult join(std::vector<CellResult> tiles, bool tensors) {
  CellResult whole;
  whole.verified = {.smallest_margin = std::numeric_limits<double>::infinity(), .in_double = true};
  for (const auto& [name, field] : tensor_fields()) {
    if (!tensors) break;
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

// Puts the tiles of a cell together, in whatever order they come.
class JoinedCell {
 public:
  JoinedCell(std::int64_t samples, std::int64_t size)
      : samples_(samples), tiles_(static_cast<std::size_t>(tile_count(samples, size))), rows_(tensor_fields().size()) {}

  void add(const Tile& tile, CellResult result) {
    std::size_t i = 0;
    for (const auto& [name, field] : tensor_fields()) rows_[i++].add(std::exchange(result.*field, {}), tile.begin, samples_);
    tiles_[static_cast<std::size_t>(tile.index)] = std::move(result);
  }
  // What is left of the tiles is small.
  CellResult finish() {
    CellResult whole = join(std::move(tiles_), /*tensors=*/false);
    std::size_t i = 0;
    for (const auto& [name, field] : tensor_fields()) whole.*field = rows_[i++].whole();
    return whole;
  }

 private:
  std::int64_t samples_;
  std::vector<CellResult> tiles_;
  std::deque<JoinedRows> rows_;
};

// Samples of a tile that are attacked together. An attack by gradient wants the graph of an explanation of many passes until it
// has pulled back through it: where the graphs of a whole tile do not fit the memory all of them are made twice, so there are no
// more samples than fit. (The path of a scale-invariant model is one point.)
std::int64_t attacked_at_once(const AttackTask& task, const Tile& tile) {
  const std::int64_t passes = task.explainer.evaluations(*task.samples.schema);
  if (passes == 1 || !task.explainer.is_differentiable() || task.model.capabilities().scale_invariant) return tile.size();
  const at::Tensor first = inputs_for(task.samples.inputs, {.begin = tile.begin, .end = tile.begin + 1}, task.model);
  const BatchRows rows({.model = task.model, .samples = {.inputs = first}});
  std::int64_t some = tile.size();
  while (some > 1 && !rows.all_fit(some * passes, Pass::kPullback)) --some;
  return even_part(tile.size(), some);
}

bool is_out_of_memory(const std::exception& error) {
  return dynamic_cast<const OutOfMemory*>(&error) != nullptr || dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr;
}

// A GPU that has no memory left for a part gets its halves, one after the other.
CellResult run_part_or_halves(const Attack& attack, const AttackTask& task, const Tile& part) {
  try {
    return run_part(attack, task, part);
  } catch (const std::exception& error) {
    if (task.model.device().is_cpu() || part.size() == 1 || !is_out_of_memory(error)) throw;
    log_warning("the device has no memory for {}; going on with halves", counted(part.size(), "sample"));
  }
  const std::int64_t middle = part.begin + part.size() / 2;
  std::vector<CellResult> halves;
  for (const auto& [begin, end] : {std::pair{part.begin, middle}, std::pair{middle, part.end}})
    halves.push_back(run_part_or_halves(attack, task, {.index = part.index, .begin = begin, .end = end}));
  return join(std::move(halves), /*tensors=*/true);
}

CellResult run_tile(const Attack& attack, const AttackTask& task, const Tile& tile) {
  const std::int64_t some = attacked_at_once(task, tile);
  if (some == tile.size()) return run_part_or_halves(attack, task, tile);
  std::vector<CellResult> parts;
  for (std::int64_t begin = tile.begin; begin < tile.end; begin += some) {
    parts.push_back(
        run_part_or_halves(attack, task, {.index = tile.index, .begin = begin, .end = std::min(begin + some, tile.end)}));
  }
  return join(std::move(parts), /*tensors=*/true);
}

// What a sample is expected to take: what the attack says, then what the last tile took.
class ExpectedWork {
 public:
  explicit ExpectedWork(double of_sample) : of_sample_(of_sample) {}

  CellResult watch(Progress* progress, const Tile& tile, const std::function<CellResult()>& run) {
    const auto samples = static_cast<double>(tile.size());
    const TileWork work(progress, tile.size(), of_sample_ * samples);
    CellResult result = run();
    of_sample_ = work.done() / samples;
    return result;
  }

 private:
  std::atomic<double> of_sample_;
};

// Ranks on other machines may see a new file a little late.
void wait_for_tiles(const TileStore& store, std::int64_t count) {
  constexpr std::chrono::seconds kPatience{60};
  constexpr std::chrono::milliseconds kPause{200};
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t tile = 0; tile < count; ++tile) {
    while (!store.has(tile)) {
      if (std::chrono::steady_clock::now() - start > kPatience)
        failure("{}: tile {} was computed by another rank and is not here; do all machines share the folder?", store.folder(),
                tile);
      // Listing a folder makes a network file system look again.
      for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(store.folder())) {
      }
      throw_if_interrupted();
      std::this_thread::sleep_for(kPause);
    }
  }
}

// Computes, with the other ranks, what the store has not yet.
void fill_store(Communicator& ranks, const Attack& attack, const AttackTask& task, const TileOptions& tiles, Progress* progress,
                const TileStore& store) {
  const std::int64_t samples = task.samples.count();
  AttackTask whole_task = task;
  whole_task.samples = prepared(task.samples, task.model);
  ExpectedWork expected(attack.expected_evaluations(task.explainer, *task.samples.schema));
  SharedTiles shared(ranks, store.folder(), samples, progress);
  run_tiles(
      task.model, samples, tile_size(tiles, task.samples.layout(), task.model), tiles.threads,
      [&](const Tile& tile) {
        if (tile.begin == 0) check_tile_apart(task.model, task.samples.inputs, tile.end);
        if (store.has(tile.index)) return std::optional<CellResult>();
        return std::optional(expected.watch(progress, tile, [&] { return run_tile(attack, whole_task, tile); }));
      },
      [&](const Tile& tile, const std::optional<CellResult>& result) {
        if (result) store.save(tile.index, *result);
      },
      &shared);
  shared.wait_for_all();
}

// What a rank that does not lead needs of a finished cell.
CellResult read_points(const TileStore& store, std::int64_t samples, std::int64_t size) {
  CellResult points;
  JoinedRows perturbed;
  for (std::int64_t index = 0; index < tile_count(samples, size); ++index) {
    const Tile tile = tile_at(samples, size, index);
    CellResult part = store.load(index);
    perturbed.add(part.perturbed, tile.begin, samples);
    points.samples.insert(points.samples.end(), std::make_move_iterator(part.samples.begin()),
                          std::make_move_iterator(part.samples.end()));
  }
  points.perturbed = perturbed.whole();
  return points;
}

TensorFile read_tile(const std::string& path) {
  TensorFile file;
  try {
    file = read_safetensors(path);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}; delete the file and run again", error.what()));
  }
  if (!is_sealed(file)) input_error("{} is not as the run wrote it; delete the file and run again", path);
  return file;
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
  const TensorFile file = read_tile(path(tile));
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
  for (const SampleOutcome& sample : result.samples) samples.push_back(to_exact_json(sample));
  for (const ComponentCost& component : result.components) {
    components.push_back({{"name", component.name}, {"evaluations", component.evaluations}, {"seconds", component.seconds}});
  }
  file.metadata.emplace_back(kOutcomes, Json{{"samples", samples}, {"components", components}}.dump());
  seal(file);
  check_mapped_files_unchanged();
  write_safetensors(path(tile), file);
}

void check_cell(const Attack& attack, const AttackTask& task) {
  task.explainer.check(task.model);
  check_samples_apart(task.model, task.samples);
  task.metric.check(task.map_schema());
  AttackTask checked = task;
  checked.samples = with_any_targets(task.samples);
  attack.check(checked);
}

CellResult run_cell(const Attack& attack, const AttackTask& task, const TileOptions& tiles, Progress* progress,
                    const TileStore* store) {
  AttackTask whole_task = task;
  whole_task.samples = prepared(task.samples, task.model);
  const std::int64_t samples = task.samples.count();
  const std::int64_t size = tile_size(tiles, task.samples.layout(), task.model);
  const auto is_stored = [&](const Tile& tile) { return store != nullptr && store->has(tile.index); };
  ExpectedWork expected(attack.expected_evaluations(task.explainer, *task.samples.schema));
  JoinedCell joined(samples, size);
  run_tiles(
      task.model, samples, size, tiles.threads,
      [&](const Tile& tile) {
        if (tile.begin == 0) check_tile_apart(task.model, task.samples.inputs, tile.end);
        CellResult result = is_stored(tile) ? store->load(tile.index)
                                            : expected.watch(progress, tile, [&] { return run_tile(attack, whole_task, tile); });
        result.verified = verify_tile(attack, task, tile, result);
        return result;
      },
      [&](const Tile& tile, CellResult result) {
        const bool was_stored = is_stored(tile);
        if (store != nullptr && !was_stored) store->save(tile.index, result);
        joined.add(tile, std::move(result));
        if (progress != nullptr) was_stored ? progress->advance_found(tile.size()) : progress->advance(tile.size());
      });
  CellResult whole = joined.finish();
  check_maps(whole.original_maps, task.explainer.name(), task.model.name());
  return whole;
}

CellResult run_cell_together(Communicator& ranks, const Attack& attack, const AttackTask& task, const TileOptions& tiles,
                             Progress* progress, const TileStore& store) {
  fill_store(ranks, attack, task, tiles, progress, store);
  const std::int64_t samples = task.samples.count(), size = tile_size(tiles, task.samples.layout(), task.model);
  wait_for_tiles(store, tile_count(samples, size));
  if (!ranks.leads()) return read_points(store, samples, size);
  return run_cell(attack, task, tiles, /*progress=*/nullptr, &store);
}

MapBatch fold_maps(const at::Tensor& maps, const Schema& of_inputs) {
  const at::Tensor plain = maps.detach().to(at::kCPU).contiguous();
  const Schema& schema = of_inputs.of_maps(plain.numel() / std::max<std::int64_t>(1, plain.size(0)));
  const auto features = static_cast<std::size_t>(schema.layout.features());
  MapBatch batch{.count = plain.size(0), .schema = &schema};
  batch.values.resize(static_cast<std::size_t>(plain.size(0)) * features);
  for_each_part(plain, [&](std::int64_t begin, const at::Tensor& part) {
    const at::Tensor values = part.scalar_type() == at::kFloat ? part : part.to(at::kDouble);
    const std::span<double> into =
        std::span(batch.values)
            .subspan(static_cast<std::size_t>(begin) * features, static_cast<std::size_t>(part.size(0)) * features);
    AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "fold_maps", [&] {
      const auto count = static_cast<std::size_t>(values.numel());
      fold_into(schema.layout, std::span<const scalar_t>(values.const_data_ptr<scalar_t>(), count), into);
    });
    count_looked_at(into.size_bytes());
  });
  return batch;
}

}  // namespace holdfast::experiment

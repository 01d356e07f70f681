#include "holdfast/train/train_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "holdfast/core/clock.h"
#include "holdfast/core/files.h"
#include "holdfast/core/folder_lock.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/model.h"

namespace holdfast::train {
namespace {

Json dataset_facts(const Dataset& dataset, const TrainConfig& config) {
  return {{"name", dataset.name},
          {"seed", config.dataset_seed},
          {"fold", config.fold},
          {"layout", dataset.schema.layout.describe()},
          {"classes", dataset.schema.classes},
          {"train", dataset.train.size()},
          {"validation", dataset.validation.size()},
          {"test", dataset.test.size()},
          {"notes", dataset.notes}};
}

Json results_of(const TrainResult& result, const Dataset& dataset) {
  Json json = {{"kind", "train"},
               {"dataset", dataset.name},
               {"architecture", result.architecture},
               {"recipe", result.options.recipe},
               {"parameters", result.network.parameter_count()},
               {"epochs", result.history.size()},
               {"kept_epoch", result.kept_epoch},
               {"training_loss", result.history.back().loss}};
  json["test"] = result.test ? to_json(*result.test) : Json();
  json["validation"] = result.validation ? to_json(*result.validation) : Json();
  return json;
}

// What `explain`, `attack` and `audit` need to try the model: a sample of the test samples as plain arrays.
void write_test_samples(const Dataset& dataset, const std::string& folder) {
  constexpr std::size_t kMost = 1000;
  std::vector<std::int64_t> rows = dataset.test;
  rows.resize(std::min(rows.size(), kMost));
  if (rows.empty()) return;
  make_folders(folder);
  write_tensor(folder + "/inputs.npy", dataset.inputs_of(rows));
  write_tensor(folder + "/labels.npy", dataset.labels_of(rows));
  write_json(folder + "/schema.json", to_json(dataset.schema));
}

// The checkpoint last: it says that the other files are a training's.
void remove_training(const std::string& folder) {
  for (const char* file : {"manifest.json", "results.json", "model.safetensors", "history.jsonl", "test/inputs.npy",
                           "test/labels.npy", "test/schema.json", "checkpoint.safetensors"})
    std::filesystem::remove(folder + "/" + file);
}

// What decides the weights must be the same on all ranks, and so must the way in which they round.
void check_same_training(Communicator& ranks, const TrainConfig& config, const Dataset& dataset) {
  ranks.agree_on("settings of the training", to_json(resolved(dataset, config.options)).dump(),
                 "give all of them the same configuration");
  ranks.agree_on("dataset", dataset.name + " " + dataset.digest, "give all of them the same files");
  ranks.agree_on("instruction set", at::get_cpu_capability(), "set ATEN_CPU_CAPABILITY to the lowest of them for all ranks");
}

}  // namespace

Json run_training(const TrainConfig& config, const std::string& folder, const Json& machine, bool restart, Communicator* ranks) {
  if (leads(ranks)) check_writable_folder(folder);
  return run_training(config, load_dataset(config.dataset, {.seed = config.dataset_seed, .fold = config.fold}), folder, machine,
                      restart, ranks);
}

Json run_training(const TrainConfig& config, const Dataset& dataset, const std::string& folder, const Json& machine, bool restart,
                  Communicator* ranks) {
  const auto start = std::chrono::steady_clock::now();
  const bool is_leader = leads(ranks);
  if (ranks != nullptr) check_same_training(*ranks, config, dataset);
  std::optional<FolderLock> lock;
  if (is_leader) {
    make_folders(folder);
    lock.emplace(folder);
    if (restart && file_exists(folder + "/checkpoint.safetensors")) remove_training(folder);
  }
  TrainOptions options = config.options;
  options.folder = folder;
  std::unique_ptr<RankSum> sums;
  if (ranks != nullptr) {
    if (is_leader) ranks->publish("training folder", "claimed");
    (void)ranks->read("training folder");
    sums = ranks->sums(options.device);
    options.ranks = sums.get();
    options.show_progress &= is_leader;
  }
  const TrainResult result = train_network(dataset, options);
  const Json results = results_of(result, dataset);
  if (!is_leader) return results;
  double training = 0;  // over all calls that the training took
  for (const EpochRecord& record : result.history) training += record.seconds;

  save_network(folder + "/model.safetensors", result.network, result.architecture);
  write_test_samples(dataset, folder + "/test");
  write_json(folder + "/results.json", results);
  Json manifest = {
      {"kind", "train"}, {"dataset", dataset_facts(dataset, config)}, {"train", to_json(result.options)}, {"machine", machine}};
  manifest["device"] = options.device.str();
  manifest["seconds"] = {{"training", training}, {"this call", seconds_since(start)}};
  write_json(folder + "/manifest.json", manifest);
  return results;
}

}  // namespace holdfast::train

// Trainings of experiments, kept in the models folder.
//
// What trains as one stack (train_many.h) is trained, kept and named together: weights depend on the stack by their rounding, and
// a run that was interrupted must end with the same bytes. Networks that are not stacked have a checkpoint of their own.
//
// Runs that share a models folder share the work: a network's folder is locked while it is trained, others go on with the next
// one and take it when it is there.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "commit.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/folder_lock.h"
#include "holdfast/core/log.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/reproduce.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/train/train_many.h"
#include "reproduce_shared.h"
#include "work_plan.h"

namespace holdfast::experiment {
namespace {

using Stack = std::vector<std::size_t>;  // positions of trainings that are made together

// The same wherever the models folder lies.
std::string without_folder(std::string text, const std::string& folder) {
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) text.erase(at, folder.size());
  return text;
}

bool is_stacked(const TrainOptions& options) {
  const std::string name = parse_method_call(options.architecture).name;
  return name == "mlp" || name == "linear";
}

// Trainings of one recipe on one architecture: seeds, or a grid of its weights.
std::vector<Stack> grouped(const std::vector<TrainOptions>& options, const std::vector<std::size_t>& stacks) {
  std::vector<Stack> groups;
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < options.size(); ++i) {
    std::string name = fmt::format("{} {} {} {} {}", parse_method_call(options[i].recipe).name, options[i].architecture,
                                   options[i].epochs, options[i].batch_size, options[i].optimizer);
    if (!stacks.empty()) name += fmt::format(" {}", stacks[i]);
    if (!is_stacked(options[i])) name += fmt::format(" alone {}", i);
    const auto [place, is_new] = known.emplace(name, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(i);
  }
  return groups;
}

Json quality_json(const std::optional<PredictionQuality>& quality) {
  return quality ? to_json(*quality) : Json();
}

std::optional<PredictionQuality> read_quality(const Json& json) {
  if (json.is_null()) return std::nullopt;
  const auto interval = [&](const Json& part) {
    return Interval{.mean = number_or_nan(part.at("mean")),
                    .low = number_or_nan(part.at("low")),
                    .high = number_or_nan(part.at("high")),
                    .count = part.at("count")};
  };
  return PredictionQuality{
      .accuracy = interval(json.at("accuracy")), .auc = interval(json.at("auc")), .loss = number_or_nan(json.at("loss"))};
}

std::string snapshot_file(std::int64_t step) {
  return fmt::format("step-{}.safetensors", step);
}

void keep(const TrainOptions& options, const TrainResult& result) {
  make_folders(options.folder);
  Json history = Json::array();
  double seconds = 0;
  for (const EpochRecord& record : result.history) {
    history.push_back(to_json(record));
    seconds += record.seconds;
  }
  save_network(options.folder + "/model.safetensors", result.network, result.architecture);
  Json kept{{"key", options.recipe},
            {"on", machine_in_words(options.device.str())},
            {"commit", kCommit},
            {"seconds", seconds},
            {"kept_epoch", result.kept_epoch},
            {"validation", quality_json(result.validation)},
            {"test", quality_json(result.test)},
            {"history", history}};
  for (const StepSnapshot& one : result.snapshots) {
    save_network(options.folder + "/" + snapshot_file(one.step), one.network, result.architecture);
    kept["snapshots"].push_back(
        {{"step", one.step}, {"validation", quality_json(one.validation)}, {"test", quality_json(one.test)}});
  }
  write_json(options.folder + "/result.json", kept);
}

std::shared_ptr<const Model> read_model(const std::string& file, const std::string& name, const Layout& layout,
                                        at::Device device) {
  if (!file_exists(file)) input_error("{} is gone, and cells need it: delete its folder, and the network is trained again", file);
  auto model = make_model(Network(*load_model(file)->network()).to(device), layout);
  model->set_name(name);
  return model;
}

// Reads a network as it was kept: one that was just trained is read back too, so that both are the same.
void read_kept(const TrainOptions& options, const Json& kept, const Layout& layout, TrainedModel& trained) {
  trained.model = LateModel([=, file = trained.file] { return read_model(file, options.recipe, layout, options.device); });
  trained.seed = options.seed;
  trained.kept_epoch = kept.at("kept_epoch");
  trained.validation = read_quality(kept.at("validation"));
  trained.test = read_quality(kept.at("test"));
  for (const Json& record : kept.at("history")) trained.history.push_back(epoch_record_from_json(record));
  for (const Json& entry : kept.value("snapshots", Json::array())) {
    TrainedModel one{.seed = options.seed,
                     .validation = read_quality(entry.at("validation")),
                     .test = read_quality(entry.at("test")),
                     .structure = trained.structure,
                     .step = entry.at("step")};
    one.key = fmt::format("{}; after step {}", trained.key, one.step);
    one.file = options.folder + "/" + snapshot_file(one.step);
    one.model = LateModel([=, file = one.file] { return read_model(file, options.recipe, layout, options.device); });
    trained.snapshots.push_back(std::move(one));
  }
}

// result.json is written last.
bool is_kept(const TrainOptions& options) {
  return file_exists(options.folder + "/result.json");
}

}  // namespace

std::vector<TrainedModel> ExperimentContext::train(const ExperimentData& data, std::vector<TrainOptions> options,
                                                   const std::string& label, const std::vector<std::size_t>& stacks) {
  HOLDFAST_CHECK(stacks.empty() || stacks.size() == options.size());
  std::vector<TrainedModel> trained(options.size());
  for (std::size_t i = 0; i < options.size(); ++i) {
    options[i].device = device;
    options[i].threads = 1;
    options[i].show_progress = false;
    options[i] = resolved(data.data, options[i]);
    trained[i].key = data.key + "; " + without_folder(to_json(options[i]).dump(), folders_.models + "/");
  }
  std::vector<Stack> missing;
  for (const Stack& group : grouped(options, stacks)) {
    std::string together;
    for (const std::size_t i : group) together += trained[i].key + "\n";
    bool kept = true, planned = plan_ != nullptr;
    for (const std::size_t i : group) {
      if (group.size() > 1) trained[i].key += "; stack " + sha256_hex(as_bytes(together)).substr(0, 12);
      options[i].folder = folders_.models + "/" + sha256_hex(as_bytes(trained[i].key)).substr(0, 24);
      trained[i].file = options[i].folder + "/model.safetensors";
      kept = kept && is_kept(options[i]);
      planned = planned && plan_->has_network(options[i].folder);
    }
    for (const std::size_t i : group) {
      if (plan_ != nullptr && kept) plan_->keep_network(options[i].folder);
    }
    kept = kept || planned;
    (kept ? models_kept_ : trained_) += static_cast<std::int64_t>(group.size());
    if (!kept) missing.push_back(group);
  }
  train_missing(data.data, options, missing, label);
  for (std::size_t i = 0; i < options.size(); ++i) {
    trained[i].structure = options[i].architecture + " " + options[i].activation;
    if (plan_ != nullptr && plan_->has_network(options[i].folder)) {
      trained[i] = planned_network(trained[i], options[i], data.data.schema.layout);
      continue;
    }
    const Json made = read_json(options[i].folder + "/result.json");
    read_kept(options[i], made, data.data.schema.layout, trained[i]);
    Work& work = work_of(made);
    if (work.networks.insert(trained[i].file).second) work.seconds += made.value("seconds", 0.0);
  }
  return trained;
}

TrainedModel ExperimentContext::planned_network(const TrainedModel& known, const TrainOptions& options,
                                                const Layout& layout) const {
  // Works well enough to count, as all others do.
  constexpr double kQuality = 0.9, kWidth = 0.01;
  const Interval share{.mean = kQuality, .low = kQuality - kWidth, .high = kQuality + kWidth, .count = 100};
  TrainedModel network{.key = known.key, .file = known.file, .seed = options.seed, .kept_epoch = options.epochs};
  network.structure = known.structure;
  network.is_planned = true;
  network.validation = network.test = PredictionQuality{.accuracy = share, .auc = share, .loss = 1 - kQuality};
  network.model = LateModel([options, layout] {
    auto fresh = make_model(architectures().make(options.architecture)->build(options.seed).to(options.device), layout);
    fresh->set_name(options.recipe);
    return std::shared_ptr<const Model>(std::move(fresh));
  });
  for (const std::int64_t step : options.snapshots) {
    TrainedModel one = network;
    one.snapshots.clear();
    one.step = step;
    one.key = fmt::format("{}; after step {}", network.key, step);
    network.snapshots.push_back(std::move(one));
  }
  return network;
}

void ExperimentContext::train_missing(const Dataset& dataset, const std::vector<TrainOptions>& options,
                                      const std::vector<std::vector<std::size_t>>& groups, const std::string& label) {
  if (plan_ != nullptr) {
    plan_->begin_phase();
    for (const Stack& group : groups) {
      std::vector<TrainOptions> own;
      for (const std::size_t i : group) own.push_back(options[i]);
      plan_->add_trainings(dataset, own);
    }
    return;
  }
  if (groups.empty()) return;
  // Stacks show their own progress.
  const bool alone = std::ranges::all_of(groups, [](const Stack& group) { return group.size() == 1; });
  std::optional<Progress> progress;
  if (alone) progress.emplace(label, static_cast<std::int64_t>(groups.size()), "networks");
  // False where another run trains it now.
  const auto trained = [&](const Stack& group) {
    std::vector<TrainOptions> own;
    for (const std::size_t i : group) own.push_back(options[i]);
    if (!std::ranges::all_of(own, is_kept) && !takes(own.front().folder)) return false;
    make_folders(own.front().folder);
    const std::optional<FolderLock> lock = FolderLock::if_free(own.front().folder);
    if (!lock) return false;
    if (!std::ranges::all_of(own, is_kept)) {
      const std::vector<TrainResult> results = group.size() > 1 ? train_many(dataset, own, 1, label + ", " + own.front().recipe)
                                                                : std::vector<TrainResult>{train_network(dataset, own.front())};
      for (std::size_t i = 0; i < own.size(); ++i) keep(own[i], results[i]);
    }
    if (progress) progress->advance();
    return true;
  };
  for_each_shared(static_cast<std::int64_t>(groups.size()), threads,
                  [&](std::int64_t i) { return trained(groups[static_cast<std::size_t>(i)]); });
}

}  // namespace holdfast::experiment

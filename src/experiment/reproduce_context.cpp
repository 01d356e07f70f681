// What an experiment's work goes through: datasets and cells, kept by their keys; trainings are in reproduce_train.cpp.
#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include <fmt/ranges.h>

#include "commit.h"
#include "holdfast/core/clock.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/folder_lock.h"
#include "holdfast/core/log.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/reproduce.h"
#include "holdfast/experiment/run_folder.h"
#include "reproduce_shared.h"
#include "work_plan.h"

namespace holdfast::experiment {
namespace {

std::string hashed(const std::string& key) {
  return sha256_hex(as_bytes(key)).substr(0, 24);
}

// One for each core; a device runs one piece of work at a time.
int threads_on(at::Device device, int asked) {
  if (asked > 0) return asked;
  return device.is_cpu() ? std::max(1, static_cast<int>(std::thread::hardware_concurrency())) : 1;
}

// Cells of earlier versions have none.
std::string digest_of(const Json& value) {
  return sha256_hex(as_bytes(dump_json(value)));
}

Json read_kept(const std::string& path, const std::string& key) {
  Json kept = read_json(path);
  if (kept.value("key", "") != key) input_error("{} is not what its name says; remove it and run again", path);
  if (kept.contains("digest") && kept.at("digest") != digest_of(kept.at("value")))
    input_error("{} is not as it was computed; remove it and run again", path);
  return kept;
}

// The folder's lock, or nothing where another run holds it.
std::optional<FolderLock> lock_made(const std::string& folder) {
  make_folders(folder);
  return FolderLock::if_free(folder);
}

// False where another run computes it now: it holds the folder beside the file, and removes it when the file is written.
bool computed(const Job<Json>& job, const std::string& path, const std::string& machine) {
  const std::string working = path + ".working";
  try {
    const std::optional<FolderLock> lock = lock_made(working);
    if (!lock) return false;
    if (!file_exists(path)) {
      const auto start = std::chrono::steady_clock::now();
      const Json value = job.compute();
      write_json(path, {{"key", job.key},
                        {"value", value},
                        {"digest", digest_of(value)},
                        {"on", machine},
                        {"commit", kCommit},
                        {"seconds", seconds_since(start)}});
    }
    std::error_code ignored;
    std::filesystem::remove(working, ignored);
  } catch (const Error&) {
    // The folder went while it was reached for: then the file is there.
    if (!file_exists(path)) throw;
  }
  return true;
}

}  // namespace

ExperimentContext::ExperimentContext(Scale asked, std::uint64_t with_seed, int with_threads, at::Device on, Folders folders,
                                     std::vector<std::string> wanted, Communicator* ranks, WorkPlan* plan)
    : scale(asked),
      seed(with_seed),
      threads(threads_on(on, with_threads)),
      device(on),
      only(std::move(wanted)),
      folders_(std::move(folders)),
      ranks_(ranks),
      plan_(plan) {
  if (!only.empty()) data_note(fmt::format("only datasets that begin with {}; the rest is left out", fmt::join(only, " or ")));
}

bool ExperimentContext::wants(const std::string& name) const {
  // "CIFAR-10", "cifar10" and "cifar_10" are one name.
  const auto plain = [](const std::string& text) {
    std::string letters;
    for (const char letter : text) {
      if (std::string_view("-_ ").find(letter) == std::string_view::npos)
        letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    return letters;
  };
  const std::string whole = plain(name);
  return only.empty() || std::ranges::any_of(only, [&](const std::string& text) { return whole.starts_with(plain(text)); });
}

namespace {

// What `data fetch` takes for a dataset's call.
std::string fetched_name(const std::string& call) {
  const std::string name = parse_method_call(call).name;
  return name == "pairs" ? fetched_name(datasets().options(call).word("of")) : name;
}

}  // namespace

std::shared_ptr<const ExperimentData> ExperimentContext::dataset(const std::string& call, std::uint64_t split_seed,
                                                                 std::int64_t fold) {
  const std::string key = fmt::format("{}, split {}, fold {}", datasets().options(call).canonical(), split_seed, fold);
  for (const auto& [known, data] : datasets_) {
    if (known == key) return data;
  }
  const LoadContext load{.seed = split_seed, .fold = fold};
  const auto loader = datasets().make(call);
  std::shared_ptr<const ExperimentData> data;
  if (!loader->source().files.empty() && loader->found_at(load).empty()) {
    data_note(fmt::format("{} is left out: its files are not in the data folder", datasets().options(call).canonical()));
    log_warning("{}", notes_.back());
    if (const std::string name = fetched_name(call); std::ranges::find(missing_, name) == missing_.end())
      missing_.push_back(name);
  } else {
    Dataset loaded = load_dataset(call, load);
    // Kept networks and cells are of this very data.
    const std::string content = fmt::format("{}, content {}", key, loaded.digest.substr(0, 16));
    data = std::make_shared<const ExperimentData>(ExperimentData{std::move(loaded), content, split_seed, fold});
    for (const std::string& text : data->data.notes) data_note(fmt::format("{}: {}", data->data.name, text));
  }
  datasets_.emplace_back(key, data);
  return data;
}

bool ExperimentContext::takes(const std::string& piece) {
  if (ranks_ == nullptr) return true;
  ranks_->throw_if_another_failed();
  const std::lock_guard guard(taken_mutex_);
  // A piece stays with its rank while an independent run computes it.
  if (taken_.contains(piece)) return true;
  if (ranks_->take(piece) != 0) return false;
  taken_.insert(piece);
  return true;
}

std::vector<Json> ExperimentContext::compute_kept(const std::string& label, const std::vector<Job<Json>>& jobs) {
  std::map<std::string, std::size_t> first;  // jobs of one key are one job
  std::vector<std::size_t> missing;
  const auto path = [&](const Job<Json>& job) { return folders_.cells + "/" + hashed(job.key) + ".json"; };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!first.emplace(jobs[i].key, i).second) continue;
    const bool is_kept = file_exists(path(jobs[i]));
    if (plan_ != nullptr && is_kept) plan_->keep_cell(path(jobs[i]));
    is_kept || (plan_ != nullptr && plan_->has_cell(path(jobs[i]))) ? void(++cells_kept_) : missing.push_back(i);
  }
  if (plan_ != nullptr) {
    plan_->begin_phase();
    for (const std::size_t i : missing) plan_->add_cell(path(jobs[i]), jobs[i]);
  } else if (!missing.empty()) {
    make_folders(folders_.cells);
    const std::string machine = machine_in_words(device.str());
    // One of each kind first: then it is known what the others take.
    std::set<std::string> kinds;
    std::ranges::stable_partition(missing, [&](std::size_t i) { return kinds.insert(jobs[i].work.kind).second; });
    std::vector<WorkPiece> pieces;
    for (const std::size_t i : missing) pieces.push_back(jobs[i].work);
    Progress progress(label, pieces);
    std::atomic<std::size_t> finished{0};
    for_each_shared(static_cast<std::int64_t>(missing.size()), threads, [&](std::int64_t i) {
      const auto piece = static_cast<std::size_t>(i);
      const Job<Json>& job = jobs[missing[piece]];
      if (!file_exists(path(job))) {
        if (!takes(path(job))) return false;
        progress.begin(piece);
        if (!computed(job, path(job), machine)) return false;
      }
      progress.finish(piece);
      progress.note(fmt::format("{} of {} cells", ++finished, missing.size()));
      return true;
    });
    computed_ += static_cast<std::int64_t>(missing.size());
  }
  std::vector<Json> results;
  for (const Job<Json>& job : jobs) {
    if (plan_ != nullptr && plan_->has_cell(path(job))) {
      results.push_back(plan_->stand_in(job));
      continue;
    }
    Json kept = read_kept(path(job), job.key);
    Work& work = work_of(kept);
    if (work.cells.insert(path(job)).second) work.seconds += kept.value("seconds", 0.0);
    results.push_back(std::move(kept.at("value")));
  }
  return results;
}

Panel ExperimentContext::panel(const std::string& title, const Schema& schema, const PanelSamples& samples) {
  const Panel panel{title, fmt::format("arrays/{:04}", panels_++)};
  if (plans()) return panel;
  const std::string folder = folders_.run + "/" + panel.arrays;
  make_folders(folder);
  write_tensor(folder + "/inputs.npy", samples.inputs);
  write_tensor(folder + "/perturbed.npy", samples.perturbed);
  write_tensor(folder + "/original_maps.npy", samples.original_maps);
  write_tensor(folder + "/perturbed_maps.npy", samples.perturbed_maps);
  write_json(folder + "/schema.json", to_json(schema));
  Json list = Json::array();
  for (std::size_t i = 0; i < samples.ids.size(); ++i) {
    list.push_back({{"sample", samples.ids[i]},
                    {"label", samples.labels.empty() ? Json() : Json(samples.labels[i])},
                    {"prediction", samples.predictions[i]},
                    {"value", samples.values[i]},
                    {"top_original", samples.top_original[i]},
                    {"top_perturbed", samples.top_perturbed[i]}});
  }
  write_json(folder + "/samples.json", list);
  return panel;
}

void ExperimentContext::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

void ExperimentContext::data_note(const std::string& text) {
  note(text);
  data_notes_.insert(text);
}

void ExperimentContext::begin_look() {
  std::erase_if(notes_, [&](const std::string& text) { return !data_notes_.contains(text); });
  panels_ = 0;
}

ExperimentContext::Work& ExperimentContext::work_of(const Json& made) {
  Work& work = work_[made.value("on", kUnknownMachine)];
  if (const std::string commit = made.value("commit", ""); !commit.empty()) work.commits.insert(commit);
  return work;
}

Json ExperimentContext::facts() const {
  Json used = Json::array();
  for (const auto& [key, data] : datasets_) {
    used.push_back({{"name", key}, {"samples", data ? Json(data->data.inputs.size(0)) : Json()}});
    if (data)
      used.back().update({{"call", data->data.name}, {"seed", data->seed}, {"fold", data->fold}, {"digest", data->data.digest}});
  }
  Json work = Json::array();
  for (const auto& [machine, done] : work_) {
    work.push_back({{"on", machine},
                    {"commits", done.commits},
                    {"networks", done.networks.size()},
                    {"cells", done.cells.size()},
                    {"seconds", done.seconds}});
  }
  return {{"datasets", used},
          {"work", work},
          {"models", {{"trained", trained_}, {"kept", models_kept_}}},
          {"cells", {{"computed", computed_}, {"kept", cells_kept_}}}};
}

}  // namespace holdfast::experiment

#include "holdfast/experiment/run_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/chrono.h>
#include <torch/version.h>

#include "commit.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/sandbox.h"
#include "holdfast/core/torch.h"
#include "holdfast/version.h"

namespace holdfast::experiment {
namespace {

std::string plan_path(const std::string& folder) {
  return folder + "/tiles/plan.json";
}
std::string manifest_path(const std::string& folder) {
  return folder + "/manifest.json";
}

std::string processor_name() {
  if (!file_exists("/proc/cpuinfo")) return "unknown";
  const std::string text = read_text("/proc/cpuinfo");
  const std::size_t key = text.find("model name");
  if (key == std::string::npos) return "unknown";
  const std::size_t start = text.find(": ", key) + 2;
  return text.substr(start, text.find('\n', start) - start);
}

// Where two identities part, in words.
std::string first_difference(const Json& mine, const Json& theirs) {
  const Json patch = Json::diff(theirs, mine);
  const Json::json_pointer place(patch.empty() ? "" : patch[0].value("path", ""));
  const bool is_content = !place.empty() && place.parent_pointer().to_string() == "/files";
  if (is_content && mine.contains(place) && theirs.contains(place)) return place.back() + " has changed";
  if (!place.empty() && place.parent_pointer().to_string() == "/data") return "the data of " + place.back() + " have changed";
  return "it differs at " + place.to_string();
}

Json read_or_advise(const std::string& path, const std::string& folder) {
  try {
    return read_json(path);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}; remove the folder {} and run again", error.what(), folder));
  }
}

void check_same(const Json& mine, const Json& theirs, const std::string& folder) {
  if (theirs == mine) return;
  usage_error("{} holds another run ({}); choose another --out, or give --restart to replace it", folder,
              first_difference(mine, theirs));
}

// The identity that a folder's plan or manifest holds; null when it holds no run.
Json held_identity(const std::string& folder) {
  if (file_exists(plan_path(folder))) return read_or_advise(plan_path(folder), folder);
  if (file_exists(manifest_path(folder))) return read_or_advise(manifest_path(folder), folder).value("identity", Json());
  return {};
}

std::string digest_of(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (name != "results.json") return sha256_of_file(path);
  Json results = read_or_advise(path, folder);
  results.erase("gates");
  return sha256_hex(as_bytes(results.dump()));
}

// A run that was refused or stopped before anything was done has left its plan and no more.
// Used by a destructor: a folder that goes meanwhile holds nothing.
bool holds_a_plan_alone(const std::string& folder) {
  if (!file_exists(plan_path(folder))) return false;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->is_directory(error) && entry->path() != std::filesystem::path(plan_path(folder))) return false;
  }
  return !error;
}

// Folders without a file are what a run leaves that was killed before its first write.
void check_empty(const std::string& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_symlink() || !entry.is_directory())
      usage_error("{} is not empty and holds no run; choose another --out", folder);
  }
}

// A link in their place would lead the run's files to where the command does not say.
void refuse_links(const std::string& folder) {
  for (const char* part : {"tiles", "arrays"}) {
    std::error_code ignored;
    if (std::filesystem::is_symlink(folder + "/" + part, ignored))
      usage_error("{}/{} is a link to another place; a run writes into its own folder only", folder, part);
  }
}

// Removes what a run wrote into the folder, and nothing else.
void remove_run(const std::string& folder, bool with_networks) {
  // The manifest first: a folder without it counts as unfinished.
  for (const char* file : {"manifest.json", "results.json", "samples.csv", "measures.csv", "junit.xml", "report.html"})
    std::filesystem::remove(folder + "/" + file);
  for (const char* part : {"tiles", "arrays"}) remove_folder(folder + "/" + part);
  if (with_networks) remove_folder(folder + "/models");
}

}  // namespace

FolderClaim::FolderClaim(const std::string& folder)
    : folder_((check_writable_folder(folder), folder)), made_(std::in_place, folder), lock_(std::in_place, folder) {
  remove_temporaries(folder, {"models", "cells"});  // other runs may share these
}

FolderClaim::FolderClaim(FolderClaim&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), made_(std::move(other.made_)), lock_(std::move(other.lock_)) {}

FolderClaim::~FolderClaim() {
  // Before the lock is let go: from then on another may count on the folder.
  std::error_code ignored;
  if (!folder_.empty() && holds_a_plan_alone(folder_)) {
    std::filesystem::remove(plan_path(folder_), ignored);
    std::filesystem::remove(std::filesystem::path(plan_path(folder_)).parent_path(), ignored);
  }
  if (made_) made_->remove_empty();
}

namespace {

// An identity as it is read back: names that are no UTF-8 are written otherwise.
Json as_written(const Json& identity, const std::string& folder) {
  return parse_json(dump_json(identity), folder);
}

FolderClaim claim_run(const std::string& folder, const Json& given, bool restart, bool goes_on) {
  FolderClaim claim(folder);
  refuse_links(folder);
  const Json identity = as_written(given, folder);
  const Json held = holds_a_plan_alone(folder) ? Json() : held_identity(folder);
  if (!held.is_null() && restart && !(goes_on && held == identity)) {
    // Networks and cells of an experiment have keys that say all they depend on: those that fit are used again.
    remove_run(folder, /*with_networks=*/!identity.contains("experiment"));
  } else if (!held.is_null()) {
    check_same(identity, held, folder);
    if (file_exists(manifest_path(folder))) remove_tiles(folder);  // killed between the two
    return claim;
  } else if (!holds_a_plan_alone(folder)) {
    check_empty(folder);
  }
  make_folders(folder + "/tiles");
  write_json(plan_path(folder), identity);
  return claim;
}

// An attack by several ranks leaves its plan beside its tiles.
Json attack_plan(const Json& identity, const std::string& folder) {
  return as_written({{"attack", identity}}, folder);
}

FolderClaim claim_attack(const std::string& folder, const Json& identity, bool by_ranks) {
  FolderClaim claim(folder);
  const Json held = file_exists(plan_path(folder)) ? read_or_advise(plan_path(folder), folder) : Json();
  if (held.contains("attack")) {
    if (!by_ranks || held != attack_plan(identity, folder)) remove_tiles(folder);
  } else if (!file_exists(folder + "/result.json") && !file_exists(folder + "/perturbed.npy")) {
    // result.json is written last and taken away first, so a folder with other files has no attack, or half of one.
    check_empty(folder);
  }
  std::filesystem::remove(folder + "/result.json");
  if (!by_ranks) return claim;
  make_folders(folder + "/tiles");
  write_json(plan_path(folder), attack_plan(identity, folder));
  return claim;
}

std::string without_instructions(Json identity) {
  identity.erase("instructions");
  if (identity.contains("conditions")) identity["conditions"].erase("instructions");
  return dump_json(identity);
}

// Every rank must be about to do the same, in the same way, in the same folder.
void check_ranks_agree(Communicator& ranks, const Json& identity, const std::string& folder) {
  const std::string name = "claim/" + folder + "/";
  ranks.agree_on("instruction set", at::get_cpu_capability(),
                 "set ATEN_CPU_CAPABILITY to the lowest of them (avx2, default) for all ranks");
  if (ranks.leads()) ranks.publish(name + "identity", without_instructions(identity));
  const Json first = parse_json(ranks.read(name + "identity"), folder);
  const Json own = parse_json(without_instructions(identity), folder);
  if (own != first)
    usage_error(
        "rank {} is about to do something else than rank 0 ({}): start all ranks with the same command and the "
        "same files",
        ranks.rank(), first_difference(own, first));
}

// A folder of the same name on each machine would be several folders.
void check_shared(Communicator& ranks, const std::string& folder) {
  constexpr std::chrono::seconds kPatience{30};
  const std::string marker = ranks.read("claimed/" + folder);
  const auto start = std::chrono::steady_clock::now();
  while (!marker.empty() && !file_exists(folder + "/" + marker)) {
    if (std::chrono::steady_clock::now() - start > kPatience)
      usage_error("{}: rank {} does not see the files of rank 0; --out must be a folder that all machines share", folder,
                  ranks.rank());
    throw_if_interrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Rank 0 claims, the others wait for it.
template <class Claim>
FolderClaim claim_for_all(Communicator* ranks, const std::string& folder, const Json& identity, const Claim& claim) {
  if (ranks == nullptr) return claim();
  check_ranks_agree(*ranks, identity, folder);
  if (!ranks->leads()) {
    check_shared(*ranks, folder);
    return {};
  }
  FolderClaim own = claim();
  ranks->publish("claimed/" + folder, file_exists(plan_path(folder)) ? "tiles/plan.json" : "manifest.json");
  return own;
}

}  // namespace

FolderClaim claim_run_folder(const std::string& folder, const Json& identity, bool restart, Communicator* ranks) {
  const bool goes_on = ranks != nullptr && ranks->place().attempt > 0;
  return claim_for_all(ranks, folder, identity, [&] { return claim_run(folder, identity, restart, goes_on); });
}

FolderClaim claim_attack_folder(const std::string& folder, const Json& identity, Communicator* ranks) {
  return claim_for_all(ranks, folder, identity, [&] { return claim_attack(folder, identity, ranks != nullptr); });
}

void wait_for_readers(Communicator* ranks, const std::string& folder) {
  if (ranks == nullptr) return;
  const std::string name = "read/" + folder;
  if (!ranks->leads()) ranks->add(name, 1);
  if (ranks->leads()) ranks->wait_for(name, ranks->size() - 1);
}

namespace {

// When the files of an identity were hashed: what tells cheaply that nobody touched one since.
class Stamps {
 public:
  void remember(const std::string& path) {
    const std::lock_guard lock(mutex_);
    stamps_[path] = stamp_of(path);
  }
  bool is_untouched(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto found = stamps_.find(path);
    return found != stamps_.end() && found->second == stamp_of(path);
  }

 private:
  using Stamp = std::array<std::int64_t, 5>;
  static Stamp stamp_of(const std::string& path) {
    struct stat now {};
    if (::stat(path.c_str(), &now) != 0) return {};
    return {static_cast<std::int64_t>(now.st_dev), static_cast<std::int64_t>(now.st_ino), now.st_size, now.st_mtim.tv_sec,
            now.st_mtim.tv_nsec};
  }
  std::mutex mutex_;
  std::map<std::string, Stamp> stamps_;
};
Stamps& stamps() {
  static Stamps all;
  return all;
}

// One that was replaced cannot be read inside the sandbox: that lets in the files that were there when it began.
bool has_digest(const std::string& path, const Json& digest) {
  try {
    return digest == sha256_of_file(path);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void check_files_are_as_claimed(const Json& identity, const std::string& folder) {
  const Json files = identity.value("files", Json::object());
  for (const auto& [path, digest] : files.items()) {
    if (stamps().is_untouched(path) || !file_exists(path) || has_digest(path, digest)) continue;
    // The plan stays, so that the folder is still this run's.
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/tiles")) {
      if (entry.is_directory()) remove_folder(entry.path().string());
    }
    input_error("{} was changed while the run read it; make the run again with --restart", path);
  }
}

Json run_conditions(std::int64_t tile, at::Device device, const std::vector<std::string>& files) {
  Json sums = Json::object();
  for (const std::string& path : files) {
    if (path.empty() || !file_exists(path)) continue;
    stamps().remember(path);
    sums[path] = sha256_of_file(path);
  }
  return {{"holdfast", kVersion},
          {"torch", TORCH_VERSION},
          {"device", at::Device(device.type()).str()},
          {"instructions", at::get_cpu_capability()},
          {"tile", tile},
          {"files", sums}};
}

bool run_is_complete(const std::string& folder) {
  if (!file_exists(manifest_path(folder))) return false;
  const Json manifest = read_or_advise(manifest_path(folder), folder);
  const Json digests = manifest.value("digests", Json::object());
  for (const auto& [name, digest] : digests.items()) {
    const std::string path = folder + "/" + name;
    if (!file_exists(path)) input_error("{} is missing since the run ended; make the run again with --restart", path);
    if (digest_of(folder, name) != digest.get<std::string>())
      input_error("{} was changed after the run ended; make the run again with --restart", path);
  }
  return true;
}

namespace {

std::string digest_of_gates(const Json& results) {
  return sha256_hex(as_bytes(results.value("gates", Json::array()).dump()));
}

}  // namespace

bool run_is_unchanged(const std::string& folder) {
  if (!run_is_complete(folder)) return false;
  const Json manifest = read_or_advise(manifest_path(folder), folder);
  if (!manifest.contains("gates_digest")) return true;  // none were evaluated yet
  if (manifest.at("gates_digest") != digest_of_gates(read_or_advise(folder + "/results.json", folder)))
    input_error("{}/results.json: its gates were changed after they were evaluated; run the same audit again", folder);
  return true;
}

void check_digests_are_there(const std::string& folder) {
  const Json manifest = read_or_advise(manifest_path(folder), folder);
  if (!manifest.value("digests", Json::object()).contains("results.json"))
    input_error("{} was changed after the run ended: its digests are missing; make the run again with --restart",
                manifest_path(folder));
}

void write_results_with_gates(const std::string& folder, const Json& results) {
  Json manifest = read_or_advise(manifest_path(folder), folder);
  write_json(folder + "/results.json", results);
  if (manifest.value("gates_digest", "") == digest_of_gates(results)) return;
  manifest["gates_digest"] = digest_of_gates(results);
  write_json(manifest_path(folder), manifest);
}

std::vector<std::string> array_files(const std::string& folder) {
  std::vector<std::string> names;
  if (!folder_exists(folder + "/arrays")) return names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder + "/arrays")) {
    if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json file_digests(const std::string& folder, const std::vector<std::string>& names) {
  Json digests = Json::object();
  for (const std::string& name : names) {
    if (file_exists(folder + "/" + name)) digests[name] = digest_of(folder, name);
  }
  return digests;
}

std::string tile_folder(const std::string& folder, std::size_t cell) {
  return fmt::format("{}/tiles/{:04}", folder, cell);
}

void remove_tiles(const std::string& folder) {
  remove_folder(folder + "/tiles");
}

Json machine_facts(int threads, const std::string& device, int ranks) {
  const Sandbox sandbox = current_sandbox();
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return {{"holdfast", kVersion},
          {"versions", {{"torch", TORCH_VERSION}, {"compiler", kCompiler}, {"commit", kCommit}}},
          {"hardware",
           {{"cpu", processor_name()},
            {"cores", cores},
            {"threads", threads > 0 ? threads : cores},
            {"ranks", ranks},
            {"device", device}}},
          {"sandbox", {{"files", sandbox.files}, {"sockets", sandbox.sockets}}}};
}

std::string machine_in_words(const std::string& device) {
  return fmt::format("{}, torch {}, {}", processor_name(), TORCH_VERSION, device);
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

}  // namespace holdfast::experiment

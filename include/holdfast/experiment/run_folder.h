// The run folder: who may write to it, and what every manifest holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/communicator.h"
#include "holdfast/core/folder_lock.h"
#include "holdfast/core/json.h"
#include "holdfast/core/new_folders.h"
#include "holdfast/core/stages.h"

namespace holdfast::experiment {

// A folder that is this process's own for as long as the claim lives. A claim under which nothing was done leaves nothing.
class FolderClaim {
 public:
  FolderClaim() = default;  // of no folder: that of a rank whose rank 0 holds it
  explicit FolderClaim(const std::string& folder);
  ~FolderClaim();
  FolderClaim(FolderClaim&& other) noexcept;
  FolderClaim& operator=(FolderClaim&&) = delete;

 private:
  std::string folder_;
  std::optional<NewFolders> made_;
  std::optional<FolderLock> lock_;
};

// Before any work: takes a new or empty folder, or one with the same identity, whose finished tiles are then used. The folder
// is this process's while the claim lives. `identity` is what makes a run this run: resolved configuration, seed, tile,
// digests of all data and files it reads. Throws kUsage when the folder holds another run, which `restart` removes instead, or
// other files, or when another process has it.
//
// Of several ranks, rank 0 claims the folder for all. The others wait for it; every rank throws kUsage when its identity is not
// rank 0's or when it does not see rank 0's folder. A group that torchrun starts again goes on in spite of `restart`.
[[nodiscard]] FolderClaim claim_run_folder(const std::string& folder, const Json& identity, bool restart = false,
                                           Communicator* ranks = nullptr);

// For a single attack: a new or empty folder, or one with the result of another attack, which goes. Throws kUsage when the folder
// holds other things. Several ranks keep their tiles in it until the result is written; those of the same attack are used again.
[[nodiscard]] FolderClaim claim_attack_folder(const std::string& folder, const Json& identity = {},
                                              Communicator* ranks = nullptr);

// Before tiles are removed: waits, on rank 0, until no other rank reads them.
void wait_for_readers(Communicator* ranks, const std::string& folder);

// The part of an identity that every run has: version, torch build, device and tile, on which bytes depend, and the checksums
// of the files it reads (names that are no files are passed over).
Json run_conditions(std::int64_t tile, at::Device device, const std::vector<std::string>& files);

// At a run's end: throws kInput when a file of its identity is another one by now. The tiles go: nobody knows which of the two
// they were made of.
void check_files_are_as_claimed(const Json& identity, const std::string& folder);

// Whether the claimed run is complete: its manifest was written. Throws kInput when a file was changed since: what the manifest's
// "digests" say of it is not true any more.
bool run_is_complete(const std::string& folder);
// The same, for those who only read the run: also throws when its gates are not those that were evaluated.
bool run_is_unchanged(const std::string& folder);
// Throws kInput when the manifest of a complete run has no digests: then nothing says that its files are the run's own.
void check_digests_are_there(const std::string& folder);
// results.json of a complete run with gates that were evaluated now; the manifest takes their digest.
void write_results_with_gates(const std::string& folder, const Json& results);
// SHA-256 of the run's files of these names, those that are there: for the manifest. Gates are no part of results.json's: they
// may be changed and held against a finished run.
Json file_digests(const std::string& folder, const std::vector<std::string>& names);
// "arrays/0000/inputs.npy" and so on, sorted.
std::vector<std::string> array_files(const std::string& folder);

// Where finished tiles of cell `cell` lie, and their removal at the end.
std::string tile_folder(const std::string& folder, std::size_t cell);
void remove_tiles(const std::string& folder);

// {"holdfast": "0.1.0", "versions": {...}, "hardware": {...}}: what a reader needs to judge timings and repeat a run. "ranks" is
// the number of processes that worked together.
Json machine_facts(int threads, const std::string& device, int ranks = 1);

// "AMD EPYC, torch 2.13.0, cpu": on what a piece of work was done.
std::string machine_in_words(const std::string& device);
inline const char* const kUnknownMachine = "an unknown machine";  // of work that says none

// "2026-01-31T12:00:00Z"
std::string utc_now();

}  // namespace holdfast::experiment

// Flags and loading that several subcommands share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <CLI/CLI.hpp>

#include "holdfast/attack/attack.h"
#include "holdfast/core/json.h"
#include "holdfast/core/new_folders.h"
#include "holdfast/data/schema.h"
#include "holdfast/experiment/grid.h"
#include "holdfast/model/model.h"

namespace holdfast::cli {

struct CommonFlags {
  std::int64_t seed = 0;
  std::string device = "cpu";
  int threads = 0;
  std::int64_t tile = 0;
  std::string memory;
  bool quiet = false;

  void add_to(CLI::App& command);
  // Sets the log level and the memory that may be taken; call first. Arrays too large for it lie in files in `scratch`, a folder
  // that is made if it is not there, and goes again if nothing else is written to it; "": nowhere.
  void apply(const std::string& scratch = "");
  at::Device torch_device() const;  // throws kUsage for a device that is not there
  TileOptions tiles() const { return {.size = tile, .threads = threads}; }

 private:
  std::optional<NewFolders> scratch_;
};

// --model, --inputs, --targets, --schema, --baseline, --background: the files that explain, attack, measure and audit look at.
struct SubjectFlags {
  std::string model, inputs, targets, labels, schema, baseline, background;
  std::string output_kind = "auto", output_name, embedding;
  std::vector<std::string> all_inputs;  // FILE or NAME=FILE each; `inputs` is the first file

  void add_to(CLI::App& command, bool required);
  // How the model file is to be read.
  ModelOptions reading() const {
    return {.output_kind = parse_output_kind(output_kind), .output_name = output_name, .embedding = embedding};
  }
  // Every file that was named, for a run's identity.
  std::vector<std::string> files() const;
};

// Loads and checks that the parts fit each other. `allow_non_finite`: audit counts such samples instead.
Subject load_subject(const SubjectFlags& flags, at::Device device, bool allow_non_finite = false);

// --explainer, --attack, --metric, --select, --precision and an option of the threat each.
struct AttackFlags {
  std::vector<std::string> explainers{"saliency"};
  std::vector<std::string> attacks = Trial{}.attacks;
  std::vector<std::string> metrics{"top_k"};
  std::string select = "worst", precision = "float32";

  // `repeated`: explainers, attacks and metrics may be given several times.
  void add_to(CLI::App& command, bool required, bool repeated);
  // Throws kUsage for what cannot be read. Of methods that may be given once, the last one counts.
  Trial trial() const;

 private:
  bool repeated_ = false;
  std::map<std::string, std::string> threat_;  // texts of the options
  std::map<std::string, const CLI::Option*> threat_options_;
  std::map<std::string, bool> threat_flags_;
};
// What makes a run from flags this run (experiment/run_folder.h): what was asked for, with `more` beside it, and checksums of the
// files.
Json identity_of(const SubjectFlags& subject, const Trial& trial, const CommonFlags& common, const Json& more);
// Names of all flags of the two structs above: "--model", "--negative-weights".
std::vector<std::string> study_flags();

// The folder of an output file, for CommonFlags::apply; none beside a device or a pipe, and for no file.
std::string scratch_beside(const std::string& path);
// Before any work: makes the folder of an output file, which goes again if nothing is written; throws when it cannot be
// written to, or when the name does not end as one of `endings` (none: any).
[[nodiscard]] NewFolders prepare_output_file(const std::string& path, const std::vector<std::string>& endings = {});

// Columns of the terminal that standard output goes to: COLUMNS where it is set; 0, which is no limit, for files and pipes.
std::size_t terminal_columns();

// A subcommand with its summary and an example that runs from the repository's root.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& summary, const std::string& example);

}  // namespace holdfast::cli

// Flags and loading that several subcommands share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <CLI/CLI.hpp>

#include "holdfast/attack/attack.h"
#include "holdfast/core/new_folders.h"
#include "holdfast/data/schema.h"
#include "holdfast/experiment/cell.h"
#include "holdfast/model/model.h"

namespace holdfast::cli {

struct CommonFlags {
  std::int64_t seed = 0;
  std::string device = "cpu";
  int threads = 0;
  std::int64_t tile = 0;
  bool quiet = false;

  void add_to(CLI::App& command);
  // Sets the log level; call first.
  void apply() const;
  at::Device torch_device() const;  // throws kUsage for a device that is not there
  TileOptions tiles() const { return {.size = tile, .threads = threads}; }
};

// --model, --inputs, --targets, --schema, --baseline, --background: what explain, attack and audit look at.
struct SubjectFlags {
  std::string model, inputs, targets, schema, baseline, background;

  void add_to(CLI::App& command, bool required);
};

struct Subject {
  std::shared_ptr<const Model> model;
  at::Tensor inputs;                // [B, sample...]
  at::Tensor targets;               // undefined when not given
  at::Tensor ids;                   // 0 .. B-1
  at::Tensor baseline, background;  // [sample...] and [N, sample...]; undefined when not given
  Schema schema;
  std::int64_t classes = 0;
};

// Loads and checks that the parts fit each other. `allow_non_finite`: audit counts such samples instead.
Subject load_subject(const SubjectFlags& flags, at::Device device, bool allow_non_finite = false);

// --explainer, --attack, --norm, --epsilon, --box, --valid, --sides, --negative-weights, --tolerance, --metric, --select.
struct AttackFlags {
  std::vector<std::string> explainers{"saliency"};
  std::vector<std::string> attacks{"er"};
  std::vector<std::string> metrics{"top_k(k=8)"};
  std::string norm = "l2";
  std::string epsilon;
  std::string box;
  bool valid = false, negative_weights = false;
  std::string sides = "both";
  std::string tolerance;
  std::string select = "worst";

  // `repeated`: explainers, attacks and metrics may be given several times.
  void add_to(CLI::App& command, bool required, bool repeated);
  std::vector<double> parsed_epsilons() const;  // one or more, each larger than the one before
  std::optional<std::pair<double, double>> parsed_box() const;
  ThreatOptions parsed_threat() const;
  Select parsed_select() const { return select == "last" ? Select::kLast : Select::kWorst; }
};

// Before any work: makes the folder of an output file, which goes again if nothing is written; throws when it cannot be
// written to, or when the name does not end as one of `endings` (none: any).
[[nodiscard]] NewFolders prepare_output_file(const std::string& path, const std::vector<std::string>& endings = {});

// A subcommand with its summary and an example that runs from the repository's root.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& summary, const std::string& example);

}  // namespace holdfast::cli

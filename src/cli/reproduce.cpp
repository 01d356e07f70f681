// holdfast reproduce: tables and figures of papers.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/ranges.h>

#include "command.h"
#include "common.h"
#include "holdfast/core/error.h"
#include "holdfast/core/log.h"
#include "holdfast/experiment/reproduce.h"
#include "holdfast/report/experiment.h"
#include "holdfast/report/html.h"

namespace holdfast::cli {
namespace {

struct ReproduceCommand {
  CommonFlags common;
  std::string experiment, scale = "quick", out, models, cells, results;
  std::vector<std::string> only;
  bool json = false, restart = false, check = false;
};

// A group's experiments have a folder each, and share networks and cells.
ReproduceOptions options_of(const ReproduceCommand& flags, const std::string& name, bool of_group) {
  ReproduceOptions options{.experiment = name,
                           .scale = parse_scale(flags.scale),
                           .seed = static_cast<std::uint64_t>(flags.common.seed),
                           .threads = flags.common.threads,
                           .device = flags.common.torch_device(),
                           .folder = flags.out,
                           .models = flags.models,
                           .cells = flags.cells,
                           .only = flags.only};
  if (of_group) {
    options.folder += "/" + name.substr(name.find('/') + 1);
    options.may_be_empty = true;
    if (options.cells.empty()) options.cells = flags.out + "/cells";
    if (options.models.empty()) options.models = flags.out + "/models";
  }
  options.restart = flags.restart;
  return options;
}

// A result without a single number would look like one.
void check_not_empty(const Json& results) {
  const Json& tables = results.at("tables");
  if (std::any_of(tables.begin(), tables.end(), [](const Json& table) { return !table.at("rows").empty(); })) return;
  if (!results.at("figures").empty()) return;
  std::vector<std::string> notes = results.at("notes");
  input_error("{}: nothing was measured, because no dataset that it needs is here. {} Get one with: holdfast data fetch NAME",
              results.at("experiment").get<std::string>(), fmt::join(notes, " "));
}

// Runs a dataset of kept results again; whether they say the same.
bool check(ReproduceCommand& flags, Communicator* ranks) {
  if (!flags.results.empty()) usage_error("--results: a check keeps nothing; leave it away");
  flags.scale = "quick";  // the kept results' own is taken
  ReproduceOptions options = options_of(flags, flags.experiment, false);
  options.ranks = ranks;
  const KeptCheck found = check_kept(flags.experiment, std::move(options), static_cast<std::uint64_t>(flags.common.seed));
  if (!leads(ranks)) return true;
  for (const std::string& row : found.missing) std::printf("not in the new run: %s\n", row.c_str());
  for (const KeptCheck::Difference& one : found.differing) {
    std::printf("%s: kept %.6g, now %.6g, allowed difference %.2g\n", one.where.c_str(), one.kept, one.again, one.allowed);
  }
  const char* rule = found.same_machine ? "to 1e-6, on the same kind of machine"
                                        : "within its interval's width or .05, on another kind of machine";
  std::printf("%s, %s: %lld of %lld numbers agree (%s)%s\n", found.experiment.c_str(), found.dataset.c_str(),
              static_cast<long long>(found.numbers - static_cast<std::int64_t>(found.differing.size())),
              static_cast<long long>(found.numbers), rule, found.missing.empty() ? "" : "; rows are missing");
  return found.agrees();
}

void run(ReproduceCommand& flags, Communicator* ranks) {
  if (!flags.only.empty() && !flags.results.empty()) usage_error("--results keeps whole experiments: leave --only away");
  const std::vector<std::string> names = experiments_of(flags.experiment);
  const bool of_group = names.front() != flags.experiment;
  bool any = false;
  for (const std::string& name : names) {
    ReproduceOptions options = options_of(flags, name, of_group);
    options.ranks = ranks;
    if (of_group) log_info("{}", name);
    const Json results = run_experiment(options);
    if (!leads(ranks)) continue;
    if (results.is_null()) {
      log_info("{} has no dataset that --only names: left out", name);
      continue;
    }
    any = true;
    check_not_empty(results);
    write_figure_pictures(options.folder);
    write_report({options.folder}, options.folder + "/report.html");
    if (!flags.results.empty()) keep_results(options.folder, flags.results);
    std::printf("%s\n", flags.json ? dump_json(results).c_str() : experiment_text(results).c_str());
    log_info("report: {}/report.html", options.folder);
  }
  if (!any && leads(ranks)) usage_error("--only {}: no dataset of {} begins so", fmt::join(flags.only, ", "), flags.experiment);
}

}  // namespace

void add_reproduce(CLI::App& app, Outcome& outcome) {
  auto flags = std::make_shared<ReproduceCommand>();
  CLI::App* command = add_command(
      app, "reproduce", "Makes a table or a figure of a paper, with the paper's numbers beside ours and a verdict on its claims",
      "holdfast reproduce r2et/bounds --scale quick --out runs/bounds");
  command
      ->add_option("EXPERIMENT", flags->experiment,
                   "One of `holdfast list experiments`, a group of them (r2et, lens), or a TOML file")
      ->required();
  command->add_option("--scale", flags->scale, "quick: minutes; cpu: hours; full: the paper's setting, for a GPU")
      ->check(CLI::IsMember({"quick", "cpu", "full"}))
      ->capture_default_str();
  command->add_option("--out", flags->out, "Run folder; an interrupted run in it goes on. A group has a folder in it for each")
      ->required();
  command->add_option("--models", flags->models, "Folder of trained networks, to share them between runs; default: inside --out");
  command->add_option("--cells", flags->cells, "Folder of attacked and measured cells, to share them between runs");
  command
      ->add_option(
          "--only", flags->only,
          "Datasets whose name in the tables begins like this (capitals, '-', '_' and blanks do not count); may be given again")
      ->allow_extra_args(false);
  command->add_option("--results", flags->results, "Also keep results, manifest and verdicts as small files below this folder");
  command->add_flag("--restart", flags->restart,
                    "Replace another run that --out holds; networks and cells that fit are used again");
  command->add_flag("--json", flags->json, "Print results.json instead of the tables");
  command->add_flag("--check", flags->check,
                    "EXPERIMENT is a file of kept results: make one of its datasets again and compare every number. Exit code 1 "
                    "where they differ. --only names the dataset, else --seed draws one");
  flags->common.add_to(*command);
  command->callback([flags, &outcome] {
    outcome.keeps("finished networks and cells are kept: run the same command again to go on");
    flags->common.apply();
    try {
      if (flags->check) {
        if (!check(*flags, outcome.ranks.get())) outcome.exit_code = kExitGateNotMet;
      } else {
        run(*flags, outcome.ranks.get());
      }
    } catch (const Error& error) {
      // Where a training stopped is of no use to one who started many: what is kept, and how to go on, is.
      if (error.kind() != ErrorKind::kInterrupted) throw;
      throw Error(ErrorKind::kInterrupted, "interrupted");
    }
  });
}

}  // namespace holdfast::cli

// holdfast reproduce: tables and figures of papers.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/ranges.h>

#include "command.h"
#include "common.h"
#include "holdfast/core/error.h"
#include "holdfast/core/log.h"
#include "holdfast/core/memory.h"
#include "holdfast/core/words.h"
#include "holdfast/experiment/reproduce.h"
#include "holdfast/report/experiment.h"
#include "holdfast/report/html.h"
#include "holdfast/report/text_table.h"

namespace holdfast::cli {
namespace {

struct ReproduceCommand {
  CommonFlags common;
  std::string experiment, scale = "quick", out, models, cells, results;
  std::vector<std::string> only;
  std::vector<std::int64_t> seeds;
  bool json = false, restart = false, check = false, plan = false;
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
                           .only = flags.only,
                           .looks = flags.seeds};
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
  if (flags.out.empty()) usage_error("reproduce: --out is required");
  if (!flags.results.empty()) usage_error("--results: a check keeps nothing; leave it away");
  if (!flags.seeds.empty()) usage_error("--seeds: a check takes those of the kept results; leave it away");
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

// "40 s", "12 min", "3.5 h": no estimate is worth more digits.
std::string rough_time(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::vector<std::string> plan_row(const std::string& name, const Json& part) {
  const auto count = [](const Json& number) { return fmt::format("{}", number.get<std::int64_t>()); };
  std::vector<std::string> row{name,
                               count(part.at("networks").at("train")),
                               count(part.at("networks").at("kept")),
                               count(part.at("cells").at("compute")),
                               count(part.at("cells").at("kept")),
                               fmt::format("{:.3g}", part.at("steps").get<double>()),
                               fmt::format("{:.3g}", part.at("evaluations").get<double>())};
  for (const char* machines : {"1", "2", "4", "8"}) row.push_back(rough_time(part.at("seconds").at(machines)));
  return row;
}

// Checks everything and says what a run would cost; nothing is written.
void print_plan(const ReproduceCommand& flags) {
  if (!flags.results.empty()) usage_error("--results: a plan keeps nothing; leave it away");
  const std::vector<std::string> names = experiments_of(flags.experiment);
  std::vector<ReproduceOptions> runs;
  for (const std::string& name : names) runs.push_back(options_of(flags, name, names.front() != flags.experiment));
  const Json plan = plan_experiments(runs);
  if (flags.json) {
    std::fputs(dump_json(plan).c_str(), stdout);
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& one : plan.at("experiments")) rows.push_back(plan_row(one.at("experiment"), one));
  const Json& total = plan.at("total");
  if (rows.size() != 1) rows.push_back(plan_row("all", total));
  std::fputs(
      text_table({"experiment", "networks", "kept", "cells", "kept", "steps", "evaluations", "here", "on 2", "on 4", "on 8"},
                 rows)
          .c_str(),
      stdout);
  for (const Json& note : plan.at("notes")) fmt::print("note: {}\n", note.get<std::string>());
  const int threads = plan.at("threads");
  fmt::print(
      "networks to train and cells to compute, beside those that are kept; steps of their optimisers, evaluations of attacks\n"
      "time from short trials, with {} at once{}; on 2, 4 and 8 machines like this one that share --models and --cells\n"
      "memory: about {} at least, program and data included; a whole piece may take more than its trial\n",
      counted(threads, "piece"), flags.common.torch_device().is_cpu() ? " (--threads)" : "", memory_in_words(plan.at("memory")));
  if (total.at("networks").at("train") > 0)
    fmt::print("weights and other choices that wait for a result are counted for one possible choice\n");
  if (flags.seeds.size() > 1) fmt::print("all of --seeds are counted: the run ends with the first that leaves no claim open\n");
  fmt::print("the plan is sound; nothing was written\n");
}

void run(ReproduceCommand& flags, Communicator* ranks) {
  if (flags.out.empty()) usage_error("reproduce: --out is required (or --plan, which writes nothing)");
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
  command->add_option("--out", flags->out,
                      "Run folder; an interrupted run in it goes on. Each experiment of a group has its own folder in it");
  command->add_option("--models", flags->models, "Folder of trained networks, to share them between runs; default: inside --out");
  command->add_option("--cells", flags->cells,
                      "Folder of finished cells, to share them between runs; a cell is one network under one attack or measure");
  command
      ->add_option(
          "--only", flags->only,
          "Only datasets whose name in the tables begins like this (capitals, '-', '_' and spaces do not count); may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--seeds", flags->seeds,
                   "Trainings of each method instead of the experiment's: 10, or 5,10,20,40 to go on to the next number while a "
                   "claim is not decided. Intervals are then wider: of 1 - .05 / 4 for four numbers")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--results", flags->results, "Also write results, manifest and verdicts as small files below this folder");
  command->add_flag("--restart", flags->restart,
                    "Replace another run that --out holds; networks and cells that fit are used again");
  command->add_flag("--json", flags->json, "Print results.json instead of the tables");
  command->add_flag("--check", flags->check,
                    "EXPERIMENT is a file of kept results: make one of its datasets again and compare every number. Exit code 1 "
                    "where they differ. --only names the dataset, else --seed draws one");
  command->add_flag(
      "--plan", flags->plan,
      "Check everything and say what the run would cost: networks, cells, time and memory, by short trials; nothing "
      "is written. What --out, or --models and --cells, hold already counts as kept");
  flags->common.add_to(*command);
  command->callback([flags, &outcome] {
    outcome.keeps("finished networks and cells are kept: run the same command again to go on");
    flags->common.apply();
    try {
      if (flags->plan) {
        if (flags->check) usage_error("--plan: a check is of one dataset; leave one of the two away");
        if (leads(outcome.ranks.get())) print_plan(*flags);
      } else if (flags->check) {
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

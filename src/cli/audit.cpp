// holdfast audit: models x explainers x attacks, with a report and gates.
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>

#include <fmt/ranges.h>

#include "command.h"
#include "common.h"
#include "given_inputs.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/experiment/audit_config.h"
#include "holdfast/experiment/explain_all.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/experiment/suggest.h"
#include "holdfast/measure/measure.h"
#include "holdfast/report/html.h"
#include "holdfast/report/text_table.h"

namespace holdfast::cli {
namespace {

struct AuditCommand {
  CommonFlags common;
  SubjectFlags subject;
  AttackFlags attack;
  std::string config, out, compare, title = "audit";
  std::vector<std::string> set, gates, measures;
  bool json = false, restart = false, wide = false, plan = false, suggest = false;
  double noise = 0;
  const CLI::App* command = nullptr;

  bool given(const std::string& flag) const { return command->count(flag) > 0; }
};

AuditConfig read_config(const AuditCommand& flags) {
  std::vector<std::string> overrides = flags.set;
  if (flags.given("--seed")) overrides.push_back(fmt::format("seed={}", flags.common.seed));
  AuditConfig config = read_audit_config(Config::load(flags.config, overrides));
  add_gates(config, flags.gates, !flags.compare.empty());
  return config;
}

Trial trial_of(const AuditCommand& flags) {
  Trial trial = flags.attack.trial();
  trial.measures = flags.measures;
  check_calls(trial);
  return trial;
}

AuditPlan plan_from_flags(const AuditCommand& flags) {
  const Subject subject = load_subject(flags.subject, flags.common.torch_device(), /*allow_non_finite=*/true);
  AuditData data{.name = subject.dataset, .samples = subject.samples, .trial = trial_of(flags)};
  exclude_non_finite(data);
  check_samples(data.name, data.samples, data.trial);
  Json facts = model_facts(flags.subject.model, *subject.model, flags.subject.reading());
  if (needs_packing(flags.subject) && subject.samples.layout().context > 0)
    facts["inputs"] = to_json(read_given_inputs(flags.subject, true).given);
  AuditPlan plan{.title = flags.title, .seed = static_cast<std::uint64_t>(flags.common.seed), .tiles = flags.common.tiles()};
  plan.data.push_back(std::move(data));
  plan.models.push_back({.name = flags.subject.model, .data = 0, .model = subject.model, .facts = facts});
  return plan;
}

void check_flags(const AuditCommand& flags) {
  if (flags.subject.model.empty() || flags.subject.inputs.empty())
    usage_error("audit: give a CONFIG.toml, or --model and --inputs");
  if (!flags.given("--epsilon")) usage_error("audit: --epsilon is required without a CONFIG.toml");
  if (flags.given("--set")) usage_error("audit: --set changes a CONFIG.toml, and none is given");
}

AuditRequest from_flags(const AuditCommand& flags) {
  check_flags(flags);
  const Trial trial = trial_of(flags);
  AuditRequest request{.gates = parse_gates(flags.gates), .prepare = [&flags] { return plan_from_flags(flags); }};
  check_gates_answered(request.gates, {trial}, !flags.compare.empty());
  request.identity = identity_of(flags.subject, trial, flags.common, {{"title", flags.title}});
  return request;
}

// What a configuration says itself cannot be said by a flag too.
void refuse_flags_beside_config(const AuditCommand& flags) {
  std::vector<std::string> own = study_flags();
  own.insert(own.end(), {"--title", "--measure"});
  for (const std::string& flag : own) {
    if (flags.given(flag))
      usage_error("audit: {} cannot be given with {}; change the configuration, or use --set key=value", flag, flags.config);
  }
}

void print_costs(const PlanCost& cost) {
  std::vector<std::vector<std::string>> rows;
  for (const RowCost& row : cost.rows) {
    const Cell& cell = row.cell;
    rows.push_back({cell.subject.dataset, cell.subject.model_name, cell.explainer->name(), cell.attack->name(),
                    cell.metric->name(), fmt::format("{:g}", cell.threat.epsilon), std::to_string(cell.subject.samples.count()),
                    std::to_string(row.evaluations), fmt::format("{:.1f}", row.seconds)});
  }
  std::fputs(text_table({"dataset", "model", "explainer", "attack", "metric", "epsilon", "samples", "evaluations a sample",
                         "seconds at most"},
                        rows)
                 .c_str(),
             stdout);
}

// Checks everything that can be checked and says what it would cost; nothing is written.
int print_plan(const AuditCommand& flags) {
  AuditPlan plan;
  std::int64_t trained_rows = 0;
  std::vector<std::string> trained;
  if (flags.config.empty()) {
    check_flags(flags);
    check_gates_answered(parse_gates(flags.gates), {trial_of(flags)}, !flags.compare.empty());
    plan = plan_from_flags(flags);
    check_gates_answered(parse_gates(flags.gates), plan);
  } else {
    AuditConfig config = read_config(flags);
    const std::vector<Dataset> datasets = load_datasets(config);
    for (const AuditConfig::ModelEntry& entry : config.models) {
      if (!entry.file.empty()) continue;
      const Trial& trial = config.datasets[entry.dataset].trial;
      trained_rows += std::ssize(trial.explainers) * std::ssize(trial.attacks) * std::ssize(trial.metrics) *
                      std::ssize(trial.threat.epsilons);
      trained.push_back(entry.name);
    }
    std::erase_if(config.models, [](const AuditConfig::ModelEntry& entry) { return entry.file.empty(); });
    plan = prepare_audit(config, datasets, flags.out, flags.common.tiles(), flags.common.torch_device());
    check_gates_answered(config.gates, plan);
  }
  const PlanCost cost = try_plan(plan);
  const bool on_gpu = !plan.models.empty() && plan.models.front().model->device().is_cuda();
  if (!cost.rows.empty()) print_costs(cost);
  if (!trained.empty())
    fmt::print("{} would be trained first ({}); {}: their cost is not known before\n", counted(std::ssize(trained), "model"),
               fmt::join(trained, ", "), counted(trained_rows, "row"));
  fmt::print("the plan is sound: {}{}; nothing was written\n", counted(std::ssize(cost.rows) + trained_rows, "row"),
             cost.rows.empty() ? "" : fmt::format(", {:.0f} s of one {} at most", cost.seconds(), on_gpu ? "GPU" : "thread"));
  if (cost.rows.empty()) return kExitDone;
  const std::int64_t cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const std::int64_t threads = flags.common.threads > 0 ? std::int64_t{flags.common.threads} : cores;
  const std::int64_t workers = on_gpu ? 1 : threads;
  fmt::print("estimated from a short trial: {:.0f} s here", cost.seconds_on(workers));
  for (const std::int64_t machines : std::array<std::int64_t, 3>{2, 4, 8})
    fmt::print(", {:.0f} s on {}", cost.seconds_on(workers * machines), machines);
  fmt::print(" such {}\n", on_gpu ? "GPUs" : "machines");
  return kExitDone;
}

// Prints epsilons, k and a gate for the samples, and why; nothing is written.
int suggest(const AuditCommand& flags) {
  if (!flags.config.empty()) usage_error("audit: --suggest reads --model and --inputs, not {}", flags.config);
  if (flags.subject.model.empty() || flags.subject.inputs.empty()) usage_error("audit: --suggest needs --model and --inputs");
  if (flags.attack.explainers.size() != 1) usage_error("audit: --suggest takes one --explainer");
  const Subject subject = load_subject(flags.subject, flags.common.torch_device());
  SuggestOptions options{.explainer = flags.attack.explainers.front(),
                         .seed = static_cast<std::uint64_t>(flags.common.seed),
                         .tiles = flags.common.tiles()};
  if (flags.given("--norm")) options.norm = flags.attack.trial().threat.norm;
  options.tolerance = flags.attack.trial().threat.tolerance;
  if (flags.given("--noise")) options.noise = flags.noise;
  const Suggestion found = suggest_threat(subject, options);
  std::fputs((flags.json ? dump_json(to_json(found)) : to_text(found)).c_str(), stdout);
  return kExitDone;
}

int run(AuditCommand& flags, const Outcome& outcome) {
  flags.common.apply(flags.plan ? "" : flags.out);
  if ((flags.suggest || flags.plan) && !leads(outcome.ranks.get())) return kExitDone;
  if (flags.suggest) return suggest(flags);
  if (flags.given("--noise")) usage_error("audit: --noise is for --suggest");
  if (!flags.config.empty()) refuse_flags_beside_config(flags);
  if (flags.out.empty() && !flags.plan) usage_error("audit: --out is required (or --plan, which writes nothing)");
  if (!flags.compare.empty() && !run_is_unchanged(flags.compare))
    input_error("--compare {}: this folder holds no finished run", flags.compare);
  if (flags.plan) return print_plan(flags);
  AuditRequest request = flags.config.empty() ? from_flags(flags)
                                              : request_of(read_config(flags), flags.out, flags.common.tiles(),
                                                           flags.common.torch_device(), outcome.ranks.get());
  request.command = outcome.arguments;
  request.compare = flags.compare;
  request.ranks = outcome.ranks.get();
  const FolderClaim claim = claim_run_folder(flags.out, request.identity, flags.restart, request.ranks);
  const Json results = complete_audit(request, flags.out);
  if (!leads(outcome.ranks.get())) return kExitDone;
  write_audit_pages(results, flags.out);
  std::fputs(flags.json ? dump_json(results).c_str() : results_table(results, flags.wide ? 0 : terminal_columns()).c_str(),
             stdout);
  log_info("report: {}/report.html", flags.out);
  return all_met(results.at("gates")) ? kExitDone : kExitGateNotMet;
}

}  // namespace

void add_audit(CLI::App& app, Outcome& outcome) {
  auto flags = std::make_shared<AuditCommand>();
  CLI::App* command = add_command(
      app, "audit", "Attacks the explanations of one model or several and writes a report; exit code 1 if a gate is not met",
      "holdfast audit --model mlp:examples/model.safetensors --inputs examples/inputs.npy --schema examples/schema.json "
      "--attack 'random(samples=50)' --attack er --epsilon 0.5 --metric 'top_k(k=4)' --gate 'top_k(k=4)>=0.1' --out runs/audit");
  command->add_option("CONFIG", flags->config, "TOML file (docs/audit.md), instead of --model and the flags of attack");
  flags->subject.add_to(*command, false);
  flags->attack.add_to(*command, false, true);
  command->add_option("--measure", flags->measures, "Measure of the model around each sample; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--labels", flags->subject.labels, "True classes, .npy [B], for accuracy and AUC");
  command
      ->add_option("--gate", flags->gates,
                   "Condition that must hold, such as 'top_k(k=8)>=0.6'; if not, the exit code is 1; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--compare", flags->compare, "Folder of another run, for gates on the difference: 'top_k(k=8).drop<=0.05'");
  command->add_option("--title", flags->title, "Title of the report")->capture_default_str();
  command->add_option("--out", flags->out, "Run folder, with report.html; an interrupted run in it goes on");
  command->add_flag("--suggest", flags->suggest,
                    "Propose epsilons, k and a gate for --model and --inputs, and say why; no audit is run, nothing is written");
  command->add_option("--noise", flags->noise,
                      "With --suggest: standard deviation of a feature that is measured again, in the units of the inputs");
  command->add_option("--set", flags->set, "Override a key of CONFIG: section.key=value; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--restart", flags->restart, "Replace another run that --out holds; its files are removed first");
  command->add_flag("--json", flags->json, "Print results.json instead of the table");
  command->add_flag("--plan", flags->plan,
                    "Check everything and estimate the time, by a trial on two samples of each row; nothing is written");
  command->add_flag("--wide", flags->wide, "Print every column, also where the terminal is narrower");
  flags->common.add_to(*command);
  flags->command = command;
  command->callback([flags, &outcome] {
    outcome.keeps("finished tiles are kept: run the same command again to go on");
    outcome.exit_code = run(*flags, outcome);
  });
}

}  // namespace holdfast::cli

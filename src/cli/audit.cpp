// holdfast audit: models x explainers x attacks, with a report and gates.
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>

#include <fmt/ranges.h>

#include "command.h"
#include "common.h"
#include "given_inputs.h"
#include "holdfast/core/clock.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/experiment/audit_config.h"
#include "holdfast/experiment/cell.h"
#include "holdfast/experiment/explain_all.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/experiment/suggest.h"
#include "holdfast/measure/measure.h"
#include "holdfast/report/html.h"
#include "holdfast/report/text_table.h"
#include "identity.h"

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

std::vector<Gate> parsed(const std::vector<std::string>& texts) {
  std::vector<Gate> gates;
  for (const std::string& text : texts) gates.push_back(parse_gate(text));
  return gates;
}

AuditConfig read_config(const AuditCommand& flags) {
  std::vector<std::string> overrides = flags.set;
  if (flags.given("--seed")) overrides.push_back(fmt::format("seed={}", flags.common.seed));
  AuditConfig config = read_audit_config(Config::load(flags.config, overrides));
  for (const Gate& gate : parsed(flags.gates)) config.gates.push_back(gate);
  std::vector<Trial> trials;
  for (const AuditConfig::DatasetEntry& entry : config.datasets) trials.push_back(entry.trial);
  check_gates_answered(config.gates, trials, !flags.compare.empty());
  return config;
}

AuditRequest from_config(const AuditCommand& flags, Communicator* ranks) {
  const AuditConfig config = read_config(flags);
  const at::Device device = flags.common.torch_device();
  check_writable_folder(flags.out);
  const auto datasets = std::make_shared<const std::vector<Dataset>>(load_datasets(config));
  return {identity_of(config, *datasets, flags.common.tiles(), device), config.gates, [&flags, config, datasets, device, ranks] {
            return prepare_audit(config, *datasets, flags.out, flags.common.tiles(), device, ranks);
          }};
}

Trial trial_of(const AuditCommand& flags) {
  Trial trial = flags.attack.trial();
  trial.measures = flags.measures;
  return trial;
}

AuditPlan plan_from_flags(const AuditCommand& flags) {
  const Subject subject = load_subject(flags.subject, flags.common.torch_device(), /*allow_non_finite=*/true);
  AuditData data{.name = subject.dataset, .samples = subject.samples, .trial = trial_of(flags)};
  exclude_non_finite(data);
  check_samples(data.name, data.samples, data.trial);
  Json facts{{"model", flags.subject.model}};
  facts.update(output_facts(*subject.model, flags.subject.reading()));
  if (needs_packing(flags.subject) && subject.samples.layout().context > 0)
    facts["inputs"] = to_json(read_given_inputs(flags.subject, true).given);
  if (const auto parameters = subject.model->parameter_count()) facts["parameters"] = *parameters;
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
  for (const std::string& call : flags.measures) (void)measures().make(call);
}

AuditRequest from_flags(const AuditCommand& flags) {
  check_flags(flags);
  const Trial trial = trial_of(flags);
  AuditRequest request{.gates = parsed(flags.gates), .prepare = [&flags] { return plan_from_flags(flags); }};
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

// What a plan's cells take. A tile is the least that a worker takes: a thread, or a GPU.
class PlannedTime {
 public:
  void add(double seconds, std::int64_t tiles) {
    parts_.push_back({seconds, tiles});
    all_ += seconds;
  }
  double one_after_the_other() const { return all_; }
  double side_by_side(std::int64_t workers) const {
    double seconds = 0;
    for (const Part& part : parts_)
      seconds += part.seconds * static_cast<double>((part.tiles + workers - 1) / workers) / static_cast<double>(part.tiles);
    return seconds;
  }

 private:
  struct Part {
    double seconds;
    std::int64_t tiles;
  };
  std::vector<Part> parts_;
  double all_ = 0;
};

// What a cell costs, tried on its first samples: they pay for the whole of a batch, so the time is what it takes at most. On a GPU
// few samples take as long as many, so a whole tile is tried.
std::vector<std::string> try_cell(const Cell& cell, const AuditCommand& flags, PlannedTime& time) {
  constexpr std::int64_t kTried = 2;
  const at::Device device = cell.subject.model->device();
  const std::int64_t count = cell.subject.samples.count();
  const std::int64_t tile = flags.common.tile > 0 ? flags.common.tile : default_tile(cell.subject.samples.layout(), device);
  const std::int64_t tried = std::min(device.is_cpu() ? kTried : tile, count);
  Cell few = cell;
  few.subject.samples = cell.subject.samples.select(at::arange(tried));
  const auto start = std::chrono::steady_clock::now();
  const CellResult result = run_cell(*few.attack, few.task({}), flags.common.tiles());
  const double taken = seconds_since(start) * static_cast<double>(count) / static_cast<double>(tried);
  std::int64_t evaluations = 0;
  for (const SampleOutcome& sample : result.samples) evaluations = std::max(evaluations, sample.evaluations);
  time.add(taken, (count + tile - 1) / tile);
  return {cell.subject.dataset,  cell.subject.model_name,     cell.explainer->name(),
          cell.attack->name(),   cell.metric->name(),         fmt::format("{:g}", cell.threat.epsilon),
          std::to_string(count), std::to_string(evaluations), fmt::format("{:.1f}", taken)};
}

// Checks everything that can be checked and says what it would cost; nothing is written.
int print_plan(const AuditCommand& flags) {
  AuditPlan plan;
  std::int64_t trained_rows = 0;
  std::vector<std::string> trained;
  if (flags.config.empty()) {
    check_flags(flags);
    check_gates_answered(parsed(flags.gates), {trial_of(flags)}, !flags.compare.empty());
    plan = plan_from_flags(flags);
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
  }
  PlannedTime time;
  std::vector<std::vector<std::string>> rows;
  for (const AuditModel& model : plan.models) {
    const AuditData& data = plan.data[model.data];
    for (const Cell& cell : make_cells({data.name, model.name, model.model, data.samples}, data.trial, plan.seed))
      rows.push_back(try_cell(cell, flags, time));
  }
  const bool on_gpu = !plan.models.empty() && plan.models.front().model->device().is_cuda();
  if (!rows.empty())
    std::fputs(text_table({"dataset", "model", "explainer", "attack", "metric", "epsilon", "samples", "evaluations a sample",
                           "seconds at most"},
                          rows)
                   .c_str(),
               stdout);
  if (!trained.empty())
    fmt::print("{} would be trained first ({}); {}: their cost is not known before\n", counted(std::ssize(trained), "model"),
               fmt::join(trained, ", "), counted(trained_rows, "row"));
  fmt::print("the plan is sound: {}{}; nothing was written\n", counted(std::ssize(rows) + trained_rows, "row"),
             rows.empty() ? "" : fmt::format(", {:.0f} s of one {} at most", time.one_after_the_other(), on_gpu ? "GPU" : "thread"));
  if (!rows.empty()) {
    const std::int64_t cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
    const std::int64_t threads = flags.common.threads > 0 ? std::int64_t{flags.common.threads} : cores;
    const std::int64_t workers = on_gpu ? 1 : threads;
    fmt::print("estimated from a short trial: {:.0f} s here", time.side_by_side(workers));
    for (const std::int64_t machines : std::array<std::int64_t, 3>{2, 4, 8})
      fmt::print(", {:.0f} s on {}", time.side_by_side(workers * machines), machines);
    fmt::print(" such {}\n", on_gpu ? "GPUs" : "machines");
  }
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
  if ((flags.suggest || flags.plan) && !leads(outcome.ranks)) return kExitDone;
  if (flags.suggest) return suggest(flags);
  if (flags.given("--noise")) usage_error("audit: --noise is for --suggest");
  if (!flags.config.empty()) refuse_flags_beside_config(flags);
  if (flags.out.empty() && !flags.plan) usage_error("audit: --out is required (or --plan, which writes nothing)");
  if (!flags.compare.empty() && !run_is_unchanged(flags.compare))
    input_error("--compare {}: this folder holds no finished run", flags.compare);
  if (flags.plan) return print_plan(flags);
  AuditRequest request = flags.config.empty() ? from_flags(flags) : from_config(flags, outcome.ranks.get());
  request.command = outcome.arguments;
  request.compare = flags.compare;
  request.ranks = outcome.ranks.get();
  const FolderClaim claim = claim_run_folder(flags.out, request.identity, flags.restart, request.ranks);
  const Json results = complete_audit(request, flags.out);
  if (!leads(outcome.ranks)) return kExitDone;
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

// holdfast audit: models x explainers x attacks, with a report and gates.
#include <cstdio>
#include <functional>
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/experiment/audit_config.h"
#include "holdfast/experiment/run_folder.h"
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
  std::string config, out, title = "audit";
  std::vector<std::string> set, gates, measures;
  bool json = false, restart = false;
  const CLI::App* command = nullptr;

  bool given(const std::string& flag) const { return command->count(flag) > 0; }
};

std::vector<Gate> parsed(const std::vector<std::string>& texts) {
  std::vector<Gate> gates;
  for (const std::string& text : texts) gates.push_back(parse_gate(text));
  return gates;
}

AuditRequest from_config(const AuditCommand& flags) {
  std::vector<std::string> overrides = flags.set;
  if (flags.given("--seed")) overrides.push_back(fmt::format("seed={}", flags.common.seed));
  AuditConfig config = read_audit_config(Config::load(flags.config, overrides));
  for (const Gate& gate : parsed(flags.gates)) config.gates.push_back(gate);
  std::vector<Trial> trials;
  for (const AuditConfig::DatasetEntry& entry : config.datasets) trials.push_back(entry.trial);
  check_gates_answered(config.gates, trials);
  const at::Device device = flags.common.torch_device();
  check_writable_folder(flags.out);
  const auto datasets = std::make_shared<const std::vector<Dataset>>(load_datasets(config));
  return {identity_of(config, *datasets, flags.common.tiles(), device), config.gates, [&flags, config, datasets, device] {
            return prepare_audit(config, *datasets, flags.out, flags.common.tiles(), device);
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
  if (const auto parameters = subject.model->parameter_count()) facts["parameters"] = *parameters;
  AuditPlan plan{.title = flags.title, .seed = static_cast<std::uint64_t>(flags.common.seed), .tiles = flags.common.tiles()};
  plan.data.push_back(std::move(data));
  plan.models.push_back({.name = flags.subject.model, .data = 0, .model = subject.model, .facts = facts});
  return plan;
}

AuditRequest from_flags(const AuditCommand& flags) {
  if (flags.subject.model.empty() || flags.subject.inputs.empty())
    usage_error("audit: give a CONFIG.toml, or --model and --inputs");
  if (!flags.given("--epsilon")) usage_error("audit: --epsilon is required without a CONFIG.toml");
  if (flags.given("--set")) usage_error("audit: --set changes a CONFIG.toml, and none is given");
  for (const std::string& call : flags.measures) (void)measures().make(call);
  const Trial trial = trial_of(flags);
  AuditRequest request{.gates = parsed(flags.gates), .prepare = [&flags] { return plan_from_flags(flags); }};
  check_gates_answered(request.gates, {trial});
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

int run(const AuditCommand& flags, const Outcome& outcome) {
  flags.common.apply();
  if (!flags.config.empty()) refuse_flags_beside_config(flags);
  AuditRequest request = flags.config.empty() ? from_flags(flags) : from_config(flags);
  request.command = outcome.arguments;
  const FolderClaim claim = claim_run_folder(flags.out, request.identity, flags.restart);
  const Json results = complete_audit(request, flags.out);
  write_audit_pages(results, flags.out);
  std::fputs(flags.json ? dump_json(results).c_str() : results_table(results).c_str(), stdout);
  log_info("report: {}/report.html", flags.out);
  return all_met(results.at("gates")) ? kExitDone : kExitGateNotMet;
}

}  // namespace

void add_audit(CLI::App& app, Outcome& outcome) {
  auto flags = std::make_shared<AuditCommand>();
  CLI::App* command = add_command(
      app, "audit", "Attacks the explanations of one model or several, and reports; exit code 1 when a gate is not met",
      "holdfast audit --model mlp:examples/model.safetensors --inputs examples/inputs.npy --schema examples/schema.json "
      "--attack 'random(samples=50)' --attack er --epsilon 0.5 --metric 'top_k(k=4)' --gate 'top_k(k=4)>=0.1' --out runs/audit");
  command->add_option("CONFIG", flags->config, "TOML file (docs/audit.md), instead of --model and the flags of attack");
  flags->subject.add_to(*command, false);
  flags->attack.add_to(*command, false, true);
  command->add_option("--measure", flags->measures, "Measure of the model around each sample; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--labels", flags->subject.labels, "True classes, .npy [B], for accuracy and AUC");
  command->add_option("--gate", flags->gates, "What must hold, for example 'top_k(k=8)>=0.6'; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--title", flags->title, "Title of the report")->capture_default_str();
  command->add_option("--out", flags->out, "Run folder; an interrupted run in it goes on")->required();
  command->add_option("--set", flags->set, "section.key=value over CONFIG; may be repeated")->allow_extra_args(false);
  command->add_flag("--restart", flags->restart, "Replace another run that --out holds; its files are removed first");
  command->add_flag("--json", flags->json, "Print results.json instead of the table");
  flags->common.add_to(*command);
  flags->command = command;
  command->callback([flags, &outcome] {
    outcome.keeps("finished tiles are kept: run the same command again to go on");
    outcome.exit_code = run(*flags, outcome);
  });
}

}  // namespace holdfast::cli

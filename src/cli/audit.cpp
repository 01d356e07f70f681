// holdfast audit: models x explainers x attacks, with a report and gates.
#include <cstdio>
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/experiment/audit_config.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/report/html.h"
#include "holdfast/report/junit.h"
#include "holdfast/report/text_table.h"
#include "holdfast/version.h"

namespace holdfast::cli {
namespace {

struct Flags {
  CommonFlags common;
  SubjectFlags subject;
  AttackFlags attack;
  std::string config, out, labels, title = "audit";
  std::vector<std::string> set, gates;
  bool json = false;
  bool seed_given = false;
  bool epsilon_given = false;
};

AuditPlan plan_from_config(const Flags& flags) {
  std::vector<std::string> overrides = flags.set;
  if (flags.seed_given) overrides.push_back(fmt::format("seed={}", flags.common.seed));
  AuditConfig config = read_audit_config(Config::load(flags.config, overrides));
  for (const std::string& gate : flags.gates) config.gates.push_back(parse_gate(gate));
  Json identity = identity_of(config, flags.common.tiles());
  identity["gates"] = flags.gates;
  claim_run_folder(flags.out, identity);
  AuditPlan plan = prepare_audit(config, flags.out, flags.common.tiles(), flags.common.torch_device());
  plan.identity = std::move(identity);
  return plan;
}

// Checksums of the files a run reads, so that a folder is never continued with others.
Json checksums(const Flags& flags) {
  Json files = Json::object();
  for (const std::string& path : {flags.subject.model.substr(flags.subject.model.find(':') + 1), flags.subject.inputs, flags.subject.targets, flags.subject.schema, flags.labels}) {
    if (!path.empty() && file_exists(path)) files[path] = sha256_of_file(path);
  }
  return files;
}

AuditPlan plan_from_flags(const Flags& flags) {
  if (flags.subject.model.empty() || flags.subject.inputs.empty()) usage_error("audit: give a CONFIG.toml, or --model and --inputs");
  if (!flags.epsilon_given) usage_error("audit: --epsilon is required without a CONFIG.toml");
  Subject subject = load_subject(flags.subject, flags.common.torch_device(), true);
  AuditPlan plan{.title = flags.title, .seed = flags.common.seed, .tiles = flags.common.tiles()};
  for (const std::string& gate : flags.gates) plan.gates.push_back(parse_gate(gate));
  AuditData data{.name = flags.subject.inputs, .inputs = subject.inputs, .targets = subject.targets, .ids = subject.ids, .schema = subject.schema};
  if (!flags.labels.empty()) data.labels = read_labels(flags.labels, subject.inputs.size(0));
  data.trial = {.explainers = flags.attack.explainers, .attacks = flags.attack.attacks, .metrics = flags.attack.metrics,
                .norm = parse_norm(flags.attack.norm), .epsilon = flags.attack.epsilon, .box = flags.attack.parsed_box(), .select = flags.attack.parsed_select()};
  exclude_non_finite(data);
  check_inside_box(data.inputs, data.trial.box, flags.subject.inputs);

  plan.identity = {{"holdfast", kVersion}, {"model", flags.subject.model}, {"inputs", flags.subject.inputs}, {"explainers", flags.attack.explainers},
                   {"attacks", flags.attack.attacks}, {"metrics", flags.attack.metrics}, {"norm", flags.attack.norm}, {"epsilon", flags.attack.epsilon},
                   {"box", flags.attack.box}, {"select", flags.attack.select}, {"gates", flags.gates}, {"seed", flags.common.seed},
                   {"tile", flags.common.tile}, {"files", checksums(flags)}};
  claim_run_folder(flags.out, plan.identity);
  Json facts{{"model", flags.subject.model}};
  if (const Network* network = subject.model->network()) facts["parameters"] = network->parameter_count();
  plan.data.push_back(std::move(data));
  plan.models.push_back({.name = flags.subject.model, .data = 0, .model = subject.model, .facts = facts});
  return plan;
}

Json finished_or_run(const Flags& flags, const Outcome& outcome) {
  AuditPlan plan = flags.config.empty() ? plan_from_flags(flags) : plan_from_config(flags);
  if (run_is_complete(flags.out)) {
    log_info("{} holds this run already, complete", flags.out);
    return read_json(flags.out + "/results.json");
  }
  plan.command = outcome.arguments;
  return run_audit(plan, flags.out);
}

int run(const Flags& flags, const Outcome& outcome) {
  flags.common.apply();
  if (!flags.config.empty() && !flags.subject.model.empty()) usage_error("audit: give a CONFIG.toml or --model, not both");
  const Json results = finished_or_run(flags, outcome);
  if (!results.at("gates").empty()) write_atomic(flags.out + "/junit.xml", junit_xml(results));
  write_report({flags.out}, flags.out + "/report.html");
  std::fputs(flags.json ? dump_json(results).c_str() : results_table(results).c_str(), stdout);
  log_info("report: {}/report.html", flags.out);
  for (const Json& gate : results.at("gates")) {
    if (!gate.at("met").get<bool>()) return kExitGateNotMet;
  }
  return kExitDone;
}

}  // namespace

void add_audit(CLI::App& app, Outcome& outcome) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = add_command(app, "audit", "Attacks the explanations of one model or several, and reports; exit code 1 when a gate is not met",
                                  "holdfast audit --model mlp:examples/model.safetensors --inputs examples/inputs.npy --schema examples/schema.json "
                                  "--attack 'random(samples=50)' --attack er --epsilon 0.5 --metric 'top_k(k=4)' --gate 'top_k(k=4)>=0.1' --out runs/audit");
  command->add_option("CONFIG", flags->config, "TOML file (docs/audit.md), instead of --model and the flags of attack");
  flags->subject.add_to(*command, false);
  flags->attack.add_to(*command, false, true);
  command->add_option("--labels", flags->labels, "True classes, .npy [B], for accuracy and AUC");
  command->add_option("--gate", flags->gates, "What must hold, for example 'top_k(k=8)>=0.6'; may be repeated")->allow_extra_args(false);
  command->add_option("--title", flags->title, "Title of the report")->capture_default_str();
  command->add_option("--out", flags->out, "Run folder; an interrupted run in it goes on")->required();
  command->add_option("--set", flags->set, "section.key=value over CONFIG; may be repeated")->allow_extra_args(false);
  command->add_flag("--json", flags->json, "Print results.json instead of the table");
  flags->common.add_to(*command);
  command->callback([flags, command, &outcome] {
    flags->seed_given = command->count("--seed") > 0;
    flags->epsilon_given = command->count("--epsilon") > 0;
    outcome.exit_code = run(*flags, outcome);
  });
}

}  // namespace holdfast::cli

// holdfast attack: one model, explainer, attack and metric.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/experiment/audit.h"
#include "holdfast/experiment/cell_facts.h"
#include "holdfast/experiment/random_baseline.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/report/text_table.h"
#include "identity.h"

namespace holdfast::cli {
namespace {

struct AttackCommand {
  CommonFlags common;
  SubjectFlags subject;
  AttackFlags attack;
  std::string out;
  bool trace = false, no_random = false;
  bool json = false;
};

Json sample_json(const CellResult& result, const at::Tensor& before, const at::Tensor& after, const at::Tensor& norms,
                 const std::string& metric, std::int64_t i, bool trace) {
  const SampleOutcome& sample = result.samples[static_cast<std::size_t>(i)];
  Json json{{"sample", i},
            {"target", result.targets[i].item<std::int64_t>()},
            {"prediction", before[i].item<std::int64_t>()},
            {"prediction_after", after[i].item<std::int64_t>()},
            {"norm", norms[i].item<double>()},
            {"metrics", {{metric, sample.value}}},
            {"first_swap", sample.first_swap < 0 ? Json() : Json(sample.first_swap)},
            {"label_flips", sample.label_flips},
            {"evaluations", sample.evaluations},
            {"iteration", sample.iteration},
            {"projections", sample.projections},
            {"non_finite", sample.non_finite},
            {"no_gradient", sample.no_gradient},
            {"clean_margin", sample.clean_margin},
            {"margin", sample.margin}};
  if (!result.components.empty()) {
    json["component"] = sample.component.empty() ? Json() : Json(sample.component);
    json["late_gain"] = sample.late_gain;
  }
  if (trace) {
    json["trace"] = sample.trace;
    json["trace_evaluations"] = sample.trace_evaluations;
  }
  return json;
}

Json result_json(const AttackCommand& flags, const CellTask& task, const CellResult& result, const Assessment& assessment,
                 const std::optional<RandomBaseline>& random) {
  const at::Tensor before = predicted_class(result.logits);
  const at::Tensor after = predicted_class(result.moved_logits);
  const at::Tensor norms = task.threat.distance(result.perturbed, task.inputs);
  Json json{{"model", flags.subject.model},
            {"explainer", task.explainer.name()},
            {"attack", task.attack.name()},
            {"threat", to_json(task.threat)},
            {"select", to_string(task.attack.selects(task.select))},
            {"seed", task.seed}};
  Json summary = to_json(assessment);
  summary.erase("values");
  json["metric"] = summary;
  json["flips"] = flips_json(result);
  json["no_gradient"] = no_gradient_json(result);
  json["random"] = random ? to_json(*random) : Json();
  json["beaten_by"] = random && beats(*random, assessment.value.mean, task.metric.direction()) ? Json(random->attack) : Json();
  json["verified"] = to_json(result.verified);
  if (!result.components.empty()) {
    json.update(ensemble_json(result, task.metric));
    for (std::size_t i = 0; i < result.components.size(); ++i) json["components"][i]["seconds"] = result.components[i].seconds;
  }
  json["samples"] = Json::array();
  for (std::int64_t i = 0; i < task.inputs.size(0); ++i) {
    json["samples"].push_back(sample_json(result, before, after, norms, task.metric.name(), i, flags.trace));
  }
  return json;
}

Assessment assess_result(const CellTask& task, const CellResult& result) {
  const MapBatch clean = fold_maps(result.original_maps, task.schema);
  const MapBatch moved = fold_maps(result.moved_maps, task.schema);
  const std::vector<std::int64_t> classes(result.targets.const_data_ptr<std::int64_t>(),
                                          result.targets.const_data_ptr<std::int64_t>() + result.targets.numel());
  Assessment assessment =
      assess(task.metric, clean, moved, compute_levels(task.metric, clean, classes, {.seed = task.seed}), task.seed);
  warn_of_ties(assessment);
  return assessment;
}

// Whether a sample's shape says what it is; `measure` would take a pair or a graph for something else.
bool shape_tells(const Layout& layout) {
  const std::vector<std::int64_t> shape = layout.sample_shape();
  return shape.size() <= 3 && Layout::guess(shape) == layout;
}

// result.json last: it says that the others are there.
void write_files(const std::string& folder, const Schema& schema, const CellResult& result, const Json& json) {
  std::filesystem::remove(folder + "/schema.json");
  if (!shape_tells(schema.layout)) write_json(folder + "/schema.json", to_json(schema));
  write_tensor(folder + "/perturbed.npy", result.perturbed);
  write_tensor(folder + "/original_attributions.npy", scaled_maps(result.original_maps, result.original_scale));
  write_tensor(folder + "/perturbed_attributions.npy", scaled_maps(result.moved_maps, result.moved_scale));
  write_json(folder + "/result.json", json);
}

void print_line(const CellTask& task, const Assessment& assessment) {
  const auto level = [](const std::optional<double>& value) { return value ? fixed(*value, 4) : "-"; };
  const Interval& value = assessment.value;
  const std::string interval = value.count < 2 ? "" : fmt::format(" [{}, {}]", fixed(value.low, 4), fixed(value.high, 4));
  fmt::print("{}: {}{} after {}, {} <= {:g}, {}; chance {}{}, between {}, specific {}\n", task.metric.name(),
             fixed(value.mean, 4), interval, task.attack.name(), to_string(task.threat.norm), task.threat.epsilon,
             counted(std::ssize(assessment.values), "sample"), assessment.chance && !assessment.chance_is_exact ? "~" : "",
             level(assessment.chance), level(assessment.between), level(assessment.specific));
}

// What random points find, and how often the class flipped on the way.
void print_beside(const CellResult& result, const std::optional<RandomBaseline>& random) {
  if (random) {
    const Interval& value = random->value;
    const std::string interval = value.count < 2 ? "" : fmt::format(" [{}, {}]", fixed(value.low, 4), fixed(value.high, 4));
    fmt::print("{}{} after {}\n", fixed(value.mean, 4), interval, random->attack);
  }
  fmt::print("points of another class met on the way, never kept: in {} of {}\n",
             flips_json(result).at("samples").get<std::int64_t>(), counted(std::ssize(result.samples), "sample"));
}

// What was found at one epsilon.
struct Found {
  ThreatModel threat;
  CellResult result;
  Assessment assessment;
  std::optional<RandomBaseline> random;
  Json json;
};

std::optional<RandomBaseline> random_beside(const CellTask& task, const CellResult& result, const TileOptions& tiles) {
  const std::optional<std::string> call = random_baseline_call(task, result);
  return call ? std::optional(run_random_baseline(task, *call, tiles)) : std::nullopt;
}

// What must not be read as robustness.
void warn(const CellTask& task, const Found& found) {
  warn_of_no_gradient(found.result, task.attack.name());
  if (!found.json.at("beaten_by").is_null())
    log_warning("{}: {} harms more; do not read its value as robustness", task.attack.name(), found.random->attack);
}

// Of the smaller of several epsilons: everything that a run of its own would have written, in a folder of its own.
std::string epsilon_folder(double epsilon) {
  return fmt::format("epsilon-{}", epsilon);
}

// Those of another attack that was here.
void remove_epsilon_folders(const std::string& folder) {
  std::vector<std::string> stale;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const bool ours = entry.is_directory() && entry.path().filename().string().rfind("epsilon-", 0) == 0;
    if (ours && file_exists(entry.path().string() + "/result.json")) stale.push_back(entry.path().string());
  }
  for (const std::string& path : stale) remove_folder(path);
}

// The largest epsilon's files lie in the folder itself, as those of a run with one epsilon do.
void write_all(const std::string& folder, const Schema& schema, std::vector<Found>& found) {
  remove_epsilon_folders(folder);
  Json curve = Json::array();
  for (const Found& one : found) {
    const bool largest = &one == &found.back();
    curve.push_back({{"epsilon", one.threat.epsilon},
                     {"folder", largest ? "." : epsilon_folder(one.threat.epsilon)},
                     {"metric", one.json.at("metric")}});
    if (largest) continue;
    const std::string part = folder + "/" + epsilon_folder(one.threat.epsilon);
    make_folders(part);
    write_files(part, schema, one.result, one.json);
  }
  if (found.size() > 1) found.back().json["epsilons"] = curve;
  write_files(folder, schema, found.back().result, found.back().json);
}

void run(const AttackCommand& flags) {
  flags.common.apply();
  const std::unique_ptr<Explainer> explainer = explainers().make(flags.attack.explainers.back());
  const std::unique_ptr<Attack> attack = attacks().make(flags.attack.attacks.back());
  const std::unique_ptr<Metric> metric = metrics().make(flags.attack.metrics.back());
  const std::vector<double> epsilons = flags.attack.parsed_epsilons();
  check_writable_folder(flags.out);
  const Subject subject = load_subject(flags.subject, flags.common.torch_device());
  check_data({.name = flags.subject.inputs,
              .inputs = subject.inputs,
              .schema = subject.schema,
              .trial = {.metrics = {flags.attack.metrics.back()}, .box = flags.attack.parsed_box()}});
  const auto task_for = [&](const ThreatModel& threat, const at::Tensor& start) {
    return CellTask{.model = *subject.model,
                    .explainer = *explainer,
                    .attack = *attack,
                    .metric = *metric,
                    .threat = threat,
                    .schema = subject.schema,
                    .inputs = subject.inputs,
                    .targets = subject.targets,
                    .sample_ids = subject.ids,
                    .seed = static_cast<std::uint64_t>(flags.common.seed),
                    .baseline = subject.baseline,
                    .background = subject.background,
                    .start = start,
                    .select = flags.attack.parsed_select(),
                    .trace = flags.trace};
  };
  std::vector<Found> found;
  for (const double epsilon : epsilons) {
    found.push_back({.threat = ThreatModel::make(parse_norm(flags.attack.norm), epsilon, flags.attack.parsed_box(),
                                                 subject.schema, flags.attack.parsed_threat())});
    check_cell(task_for(found.back().threat, {}));
  }

  const Json identity = identity_of(flags.subject, flags.attack, flags.common, {{"trace", flags.trace}});
  const FolderClaim claim = claim_attack_folder(flags.out);
  at::Tensor start;  // what was found at the epsilon before
  for (Found& one : found) {
    const CellTask task = task_for(one.threat, start);
    {
      Progress progress(attack->name(), subject.inputs.size(0), "samples");
      one.result = run_cell(task, flags.common.tiles(), &progress);
    }
    start = one.result.perturbed;
    one.assessment = assess_result(task, one.result);
    if (!flags.no_random) one.random = random_beside(task, one.result, flags.common.tiles());
    one.json = result_json(flags, task, one.result, one.assessment, one.random);
    one.json["identity"] = identity;
    warn(task, one);
    if (flags.json) continue;
    print_line(task, one.assessment);
    print_beside(one.result, one.random);
    std::fputs(components_table(Json::array({one.json})).c_str(), stdout);
  }
  write_all(flags.out, subject.schema, found);
  if (flags.json) {
    std::fputs(dump_json(found.back().json).c_str(), stdout);
    return;
  }
  log_info("perturbed inputs, both explanations and result.json are in {}", flags.out);
}

}  // namespace

void add_attack(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<AttackCommand>();
  CLI::App* command = add_command(
      app, "attack", "Moves the explanation while the prediction stays",
      "holdfast attack --model mlp:examples/model.safetensors --inputs examples/inputs.npy --attack er --norm l2 --epsilon 0.5 "
      "--metric 'top_k(k=4)' --out runs/attack");
  flags->subject.add_to(*command, true);
  flags->attack.add_to(*command, true, false);
  command->add_flag("--trace", flags->trace, "Record the metric after every iteration");
  command->add_flag("--no-random", flags->no_random, "Do not try random points beside the attack");
  command
      ->add_option("--out", flags->out,
                   "Folder for perturbed.npy, the attributions and result.json; schema.json too where a shape does not say what "
                   "a sample is")
      ->required();
  command->add_flag("--json", flags->json, "Print result.json");
  flags->common.add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace holdfast::cli

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
#include "holdfast/data/shown.h"
#include "holdfast/experiment/audit.h"
#include "holdfast/experiment/cell_facts.h"
#include "holdfast/experiment/grid.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/report/text_table.h"

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

// The names that this file gives to one sample: its metric by name, and what only ensembles and traced attacks have.
Json sample_json(const Row& row, std::size_t i) {
  const SampleOutcome& sample = row.result.samples[i];
  Json json{{"sample", i}};
  json.update(to_json(sample, row.cell.trace));
  json["metrics"] = {{row.cell.metric->name(), json.at("value")}};
  if (row.result.components.empty()) {
    json.erase("component");
    json.erase("late_gain");
    json.erase("restart_gap");
  }
  return json;
}

Json result_json(const Row& row, const Json& identity) {
  const Cell& cell = row.cell;
  Json json{{"model", cell.subject.model_name},
            {"explainer", cell.explainer->name()},
            {"attack", cell.attack->name()},
            {"threat", to_json(cell.threat)},
            {"select", to_string(cell.attack->selects(cell.select))},
            {"seed", cell.seed}};
  if (cell.precision != Precision::kFloat32) json["precision"] = to_string(cell.precision);
  json.update(output_facts(*cell.subject.model));
  Json summary = to_json(row.assessment);
  summary.erase("values");
  json["metric"] = summary;
  json["flips"] = flips_json(row.result);
  json["no_gradient"] = no_gradient_json(row.result);
  json["random"] = row.random ? to_json(*row.random) : Json();
  json["beaten_by"] = row.is_beaten() ? Json(row.random->attack) : Json();
  json["verified"] = to_json(row.result.verified);
  if (!row.result.components.empty()) {
    json.update(ensemble_json(row.result, *cell.metric));
    json["components"] = components_json(row.result, /*with_seconds=*/true);
  }
  json["samples"] = Json::array();
  for (std::size_t i = 0; i < row.result.samples.size(); ++i) json["samples"].push_back(sample_json(row, i));
  json["identity"] = identity;
  return json;
}

// Whether a sample's shape says what it is; `measure` would take a pair or a graph for something else.
bool shape_tells(const Layout& layout) {
  const std::vector<std::int64_t> shape = layout.sample_shape();
  return shape.size() <= 3 && Layout::guess(shape) == layout;
}

// result.json last: it says that the others are there.
void write_files(const std::string& folder, const Schema& schema, const CellResult& result, const Json& json) {
  std::filesystem::remove(folder + "/schema.json");
  const Layout& layout = schema.layout;
  const Schema& of_maps = schema.of_maps(result.original_maps.flatten(1).size(1));
  if (!shape_tells(shown_layout(layout)) || &of_maps != &schema)
    write_json(folder + "/schema.json", to_json(&of_maps == &schema ? shown_schema(schema) : of_maps));
  write_tensor(folder + "/perturbed.npy", without_context(result.perturbed, layout));
  write_tensor(folder + "/original_attributions.npy",
               shown_maps(scaled_maps(result.original_maps, result.original_scale), layout));
  write_tensor(folder + "/perturbed_attributions.npy",
               shown_maps(scaled_maps(result.perturbed_maps, result.perturbed_scale), layout));
  write_json(folder + "/result.json", json);
}

std::string interval_text(const Interval& value) {
  return value.count < 2 ? "" : fmt::format(" [{}, {}]", fixed(value.low, 4), fixed(value.high, 4));
}

// The value with its levels, what random points find, and how often the class flipped on the way.
void print_row(const Row& row) {
  const auto level = [](const std::optional<double>& value) { return value ? fixed(*value, 4) : "-"; };
  const Assessment& found = row.assessment;
  const auto mean = [&](const std::optional<Interval>& value) { return value ? fixed(value->mean, 4) : "-"; };
  fmt::print("{}: {}{} after {}, {} <= {:g}{}, {}; chance {}{}, between {}, specific {}\n", row.cell.metric->name(),
             fixed(found.value.mean, 4), interval_text(found.value), row.cell.attack->name(), to_string(row.cell.threat.norm),
             row.cell.threat.epsilon,
             row.cell.threat.switches ? fmt::format(", switches <= {}", row.cell.threat.switches->most) : "",
             counted(std::ssize(found.values), "sample"), found.chance && !found.chance_is_exact ? "~" : "", level(found.chance),
             level(found.between), level(found.specific));
  fmt::print("lift {}, effective sets {}, own advantage {}\n", mean(found.lift), mean(found.effective_sets),
             mean(found.own_advantage));
  if (row.random)
    fmt::print("{}{} after {}\n", fixed(row.random->value.mean, 4), interval_text(row.random->value), row.random->attack);
  fmt::print("points of another class met on the way, never kept: in {} of {}\n",
             flips_json(row.result).at("samples").get<std::int64_t>(), counted(std::ssize(row.result.samples), "sample"));
}

// A row and the file that is made of it.
struct Found {
  Row row;
  Json json;
};

// Each of the smaller epsilons has a folder with everything that a run of its own would have written.
std::string epsilon_folder(double epsilon) {
  return fmt::format("epsilon-{}", epsilon);
}

// Removes the folders that another attack left here.
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
    const double epsilon = one.row.cell.threat.epsilon;
    curve.push_back(
        {{"epsilon", epsilon}, {"folder", largest ? "." : epsilon_folder(epsilon)}, {"metric", one.json.at("metric")}});
    if (largest) continue;
    const std::string part = folder + "/" + epsilon_folder(epsilon);
    make_folders(part);
    write_files(part, schema, one.row.result, one.json);
  }
  if (found.size() > 1) found.back().json["epsilons"] = curve;
  write_files(folder, schema, found.back().row.result, found.back().json);
}

void run(AttackCommand& flags, Communicator* ranks) {
  log_reached("started");
  flags.common.apply(flags.out);
  const Trial trial = flags.attack.trial();
  check_writable_folder(flags.out);
  const Subject subject = load_subject(flags.subject, flags.common.torch_device());
  log_reached("model and inputs read");
  check_samples(subject.dataset, subject.samples, trial);
  const std::vector<Cell> cells = make_cells(subject, trial, static_cast<std::uint64_t>(flags.common.seed), flags.trace);

  log_reached("checked");
  const Json identity = identity_of(flags.subject, trial, flags.common, {{"trace", flags.trace}});
  const FolderClaim claim = claim_attack_folder(flags.out, identity, ranks);
  Grid grid({.tiles = flags.common.tiles(),
             .random_points = !flags.no_random,
             .folder = ranks == nullptr ? "" : flags.out,
             .ranks = ranks});
  std::vector<Found> found;
  for (const Cell& cell : cells) {
    found.push_back({.row = grid.run_alone(cell)});
    if (!leads(ranks)) continue;
    Found& one = found.back();
    one.json = result_json(one.row, identity);
    warn_if_beaten(one.row);
    if (flags.json) continue;
    print_row(one.row);
    std::fputs(components_table(Json::array({one.json})).c_str(), stdout);
  }
  wait_for_readers(ranks, flags.out);
  if (!leads(ranks)) return;
  write_all(flags.out, *subject.samples.schema, found);
  log_reached("written");
  if (ranks != nullptr) remove_tiles(flags.out);
  if (flags.json) {
    std::fputs(dump_json(found.back().json).c_str(), stdout);
    return;
  }
  log_info("perturbed inputs, both explanations and result.json are in {}", flags.out);
}

}  // namespace

void add_attack(CLI::App& app, Outcome& outcome) {
  auto flags = std::make_shared<AttackCommand>();
  CLI::App* command = add_command(
      app, "attack", "Searches for small changes of the inputs that change their explanations but not the predictions",
      "holdfast attack --model mlp:examples/model.safetensors --inputs examples/inputs.npy --attack er --norm l2 --epsilon 0.5 "
      "--metric 'top_k(k=4)' --out runs/attack");
  flags->subject.add_to(*command, true);
  flags->attack.add_to(*command, true, false);
  command->add_flag("--trace", flags->trace, "Record the metric after every iteration");
  command->add_flag("--no-random", flags->no_random, "Do not try random points beside the attack");
  command
      ->add_option("--out", flags->out,
                   "Folder for result.json, perturbed.npy, original_attributions.npy and perturbed_attributions.npy (the maps "
                   "before and after)")
      ->required();
  command->add_flag("--json", flags->json, "Print result.json");
  flags->common.add_to(*command);
  command->callback([flags, &outcome] {
    if (outcome.ranks) outcome.keeps("finished tiles are kept: run the same command again to go on");
    run(*flags, outcome.ranks.get());
  });
}

}  // namespace holdfast::cli

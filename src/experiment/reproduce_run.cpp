// A run of an experiment: claims its folder, and writes results.json and manifest.json.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/ranges.h>

#include "holdfast/core/clock.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/reproduce.h"
#include "holdfast/experiment/run_folder.h"
#include "reproduce_shared.h"

namespace holdfast::experiment {
namespace {

Json table_json(const ResultTable& table) {
  Json rows = Json::array();
  for (const ResultTable::Row& row : table.rows) {
    Json values = Json::array();
    for (const Value& value : row.values) values.push_back(to_json(value));
    rows.push_back({{"keys", row.keys}, {"values", values}});
  }
  Json names = Json::array(), kinds = Json::array();
  for (const ResultColumn& column : table.columns) {
    names.push_back(column.name);
    kinds.push_back(to_string(column.kind));
  }
  return {{"name", table.name}, {"caption", table.caption}, {"keys", table.keys},
          {"columns", names},   {"kinds", kinds},           {"rows", rows}};
}

Json figure_json(const Figure& figure) {
  Json panels = Json::array();
  for (const Panel& panel : figure.panels) panels.push_back({{"title", panel.title}, {"arrays", panel.arrays}});
  Json json{{"name", figure.name}, {"caption", figure.caption}, {"panels", panels}};
  if (!figure.spec.is_null()) json["spec"] = figure.spec;
  return json;
}

Json verdict_json(const Verdict& verdict, const std::string& experiment, Scale scale) {
  Json json{{"claim", verdict.claim},
            {"says", verdict.says},
            {"verdict", to_string(verdict.judgement)},
            {"number", optional_json(verdict.number)},
            {"low", optional_json(verdict.low)},
            {"high", optional_json(verdict.high)},
            {"seeds", verdict.seeds},
            {"experiment", experiment},
            {"scale", to_string(scale)},
            {"why", verdict.why}};
  if (!verdict.plain.empty()) json["plain"] = verdict.plain;
  if (verdict.times) json["times"] = *verdict.times;
  for (const ClaimPart& part : verdict.parts) {
    Json& entry = json["parts"].emplace_back(Json{{"name", part.name}, {"verdict", to_string(part.judgement)}});
    if (!part.needs.empty()) entry["needs"] = part.needs;
    if (part.times) entry["times"] = *part.times;
  }
  return json;
}

template <class Item, class Convert>
Json array_of(const std::vector<Item>& items, Convert convert) {
  Json array = Json::array();
  for (const Item& item : items) array.push_back(convert(item));
  return array;
}

Json results_json(const ReproduceOptions& options, const std::string& name, const ExperimentResult& result,
                  const std::vector<std::string>& notes) {
  const auto with_name = [&](const Verdict& verdict) { return verdict_json(verdict, name, options.scale); };
  return {{"kind", "experiment"},
          {"experiment", name},
          {"scale", to_string(options.scale)},
          {"seed", options.seed},
          {"title", result.title},
          {"paper", result.paper},
          {"settings", result.settings},
          {"tables", array_of(result.tables, table_json)},
          {"figures", array_of(result.figures, figure_json)},
          {"verdicts", array_of(result.verdicts, with_name)},
          {"notes", notes}};
}

// The paper's folder and the experiment's file in it: {"r2et", "table1"}.
std::pair<std::string, std::string> paper_and_part(const std::string& call) {
  const std::string name = parse_method_call(call).name;
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return {"own", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

// All verdicts of a folder's results, by claim: R2 before R10.
Json collected_verdicts(const std::string& folder) {
  std::vector<Json> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".json") || path.ends_with(".manifest.json") || entry.path().filename() == "verdicts.json") continue;
    const Json results = read_json(path);
    for (const Json& verdict : results.at("verdicts")) all.push_back(verdict);
  }
  const auto order = [](const Json& verdict) {
    const std::string claim = verdict.at("claim");
    return std::tuple(claim.substr(0, 1), claim.size(), claim, verdict.at("experiment").get<std::string>());
  };
  std::sort(all.begin(), all.end(), [&](const Json& a, const Json& b) { return order(a) < order(b); });
  return all;
}

// Claims are about all datasets: a run of some shows its numbers and decides none.
void leave_open(std::vector<Verdict>& verdicts, const std::vector<std::string>& only) {
  for (Verdict& verdict : verdicts) {
    if (only.empty()) continue;
    verdict.judgement = Judgement::kNotDecided;
    verdict.parts.clear();
    verdict.why =
        fmt::format("The claim is about all datasets, this run is of {} alone (--only). {}", fmt::join(only, ", "), verdict.why);
  }
}

std::vector<std::string> command_of(const ReproduceOptions& options, const std::string& name) {
  const bool is_file = options.experiment.ends_with(".toml");
  std::vector<std::string> words{"holdfast",
                                 "reproduce",
                                 is_file ? options.experiment : name,
                                 "--scale",
                                 to_string(options.scale),
                                 "--seed",
                                 std::to_string(options.seed)};
  for (const std::string& dataset : options.only) words.insert(words.end(), {"--only", dataset});
  if (!options.looks.empty()) words.insert(words.end(), {"--seeds", fmt::format("{}", fmt::join(options.looks, ","))});
  return words;
}

// A finished run is of the data that it read.
void check_data_unchanged(const std::string& folder) {
  const Json manifest = read_json(folder + "/manifest.json");
  for (const Json& used : manifest.at("datasets")) {
    if (!used.contains("digest")) continue;
    const std::string call = used.at("call");
    if (load_dataset(call, {.seed = used.at("seed"), .fold = used.at("fold")}).digest != used.at("digest").get<std::string>())
      usage_error("{}: {} has changed since the run; choose another --out, or give --restart to run again", folder, call);
  }
}

}  // namespace

ExperimentContext::Folders folders_of(const ReproduceOptions& options) {
  return {.run = leads(options.ranks) ? options.folder : fmt::format("{}/tiles/rank-{}", options.folder, options.ranks->rank()),
          .models = options.models.empty() ? options.folder + "/models" : options.models,
          .cells = options.cells.empty() ? options.folder + "/cells" : options.cells};
}

void check_looks(const std::vector<std::int64_t>& looks) {
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (looks[i] < 2) usage_error("--seeds {}: one seed has no interval; give 2 or more", looks[i]);
    if (i > 0 && looks[i] <= looks[i - 1])
      usage_error("--seeds {}: {} comes after {}; give ascending numbers", fmt::join(looks, ","), looks[i], looks[i - 1]);
  }
}

bool is_empty(const ReproduceOptions& options, const Experiment& experiment, const ExperimentContext& context,
              const ExperimentResult& result) {
  if (!std::ranges::all_of(result.tables, [](const ResultTable& table) { return table.rows.empty(); })) return false;
  if (options.may_be_empty) return true;
  if (const std::vector<std::string>& missing = context.missing_datasets(); !missing.empty())
    input_error(
        "{}: nothing was measured, because the files of {} are not in the data folder; get them with: holdfast data fetch {}",
        experiment.name(), fmt::join(missing, ", "), missing.front());
  if (!options.only.empty())
    usage_error("--only {}: no dataset of {} begins so", fmt::join(options.only, ", "), experiment.name());
  return false;
}

Json run_experiment(const ReproduceOptions& options) {
  const auto experiment = make_experiment(options.experiment);
  check_looks(options.looks);
  Json identity{{"experiment", experiment->name()},
                {"scale", to_string(options.scale)},
                {"seed", options.seed},
                {"only", options.only},
                {"conditions", run_conditions(0, options.device, {options.experiment})}};
  if (!options.looks.empty()) identity["seeds"] = options.looks;
  const bool is_leader = leads(options.ranks);
  const auto claim = claim_run_folder(options.folder, identity, options.restart, options.ranks);
  if (run_is_complete(options.folder)) {
    check_data_unchanged(options.folder);
    log_info("{} holds this run already, complete", options.folder);
    return read_json(options.folder + "/results.json");
  }
  const std::string started = utc_now();
  const auto start = std::chrono::steady_clock::now();
  ExperimentContext context(options.scale, options.seed, options.threads, options.device, folders_of(options), options.only,
                            options.ranks);
  context.looks = options.looks;
  ExperimentResult result = experiment->run(context);
  wait_for_readers(options.ranks, options.folder);
  if (!is_leader) return nullptr;
  if (is_empty(options, *experiment, context, result)) return nullptr;
  leave_open(result.verdicts, options.only);
  // Written and read again, so that a run that is read later says the same.
  write_json(options.folder + "/results.json", results_json(options, experiment->name(), result, context.notes()));

  Json manifest = machine_facts(options.threads, options.device.str(), options.ranks == nullptr ? 1 : options.ranks->size());
  manifest["kind"] = "experiment";
  manifest["title"] = result.title;
  manifest["command"] = command_of(options, experiment->name());
  manifest["identity"] = identity;
  manifest["seed"] = options.seed;
  manifest["started"] = started;
  manifest["seconds"] = seconds_since(start);
  manifest["settings"] = result.settings;
  manifest.update(context.facts());
  manifest["notes"] = context.notes();
  manifest["digests"] = file_digests(options.folder, {"results.json"});
  write_json(options.folder + "/manifest.json", manifest);
  remove_tiles(options.folder);
  return read_json(options.folder + "/results.json");
}

void keep_results(const std::string& run, const std::string& folder) {
  const Json results = read_json(run + "/results.json");
  const auto [paper, part] = paper_and_part(results.at("experiment"));
  const std::string place = folder + "/" + paper;
  make_folders(place);
  write_json(place + "/" + part + ".json", results);
  write_json(place + "/" + part + ".manifest.json", read_json(run + "/manifest.json"));
  write_json(place + "/verdicts.json", collected_verdicts(place));
}

}  // namespace holdfast::experiment

// Kept results held against a new run of one of their datasets.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/rng.h"
#include "holdfast/experiment/reproduce.h"

namespace holdfast::experiment {
namespace {

constexpr double kSameMachine = 1e-6;      // same torch, instruction set and device: only sums that threads share may differ
constexpr double kWithoutInterval = 0.05;  // of a number that has no interval, on another machine

std::string with_json(const std::string& path) {
  return path.ends_with(".json") ? path : path + ".json";
}

std::string manifest_of(const std::string& path) {
  return path.substr(0, path.size() - std::string(".json").size()) + ".manifest.json";
}

// What rounding depends on. Results of several machines are nobody's.
Json machine_of(const Json& manifest) {
  const Json conditions = manifest.at("identity").at("conditions");
  if (manifest.contains("work") && manifest.at("work").size() > 1) return nullptr;
  return {conditions.at("torch"), conditions.at("device"), conditions.value("instructions", "")};
}

bool is_by_dataset(const Json& table) {
  return !table.at("keys").empty() && table.at("keys")[0] == "dataset";
}

// The datasets of the rows, in their order. A name that joins several encodings ("COMPAS" beside "COMPAS, one-hot") is not one.
std::vector<std::string> datasets_in(const Json& results) {
  std::vector<std::string> names;
  for (const Json& table : results.at("tables")) {
    if (!is_by_dataset(table)) continue;
    for (const Json& row : table.at("rows")) {
      const std::string name = row.at("keys")[0];
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  const std::vector<std::string> all = names;
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::any_of(all, [&](const std::string& other) { return other.starts_with(name + ","); });
  });
  return names;
}

// The rows of one dataset ("": all rows) by table and words, "tables: COMPAS, one-hot, SP", each an object of its columns.
std::map<std::string, Json> rows_of(const Json& results, const std::string& dataset) {
  std::map<std::string, Json> rows;
  for (const Json& table : results.at("tables")) {
    if (!dataset.empty() && !is_by_dataset(table)) continue;
    for (const Json& row : table.at("rows")) {
      const std::vector<std::string> keys = row.at("keys");
      if (!dataset.empty() && keys[0] != dataset) continue;
      Json& kept = rows[fmt::format("{}: {}", table.at("name").get<std::string>(), fmt::join(keys, ", "))];
      for (std::size_t i = 0; i < row.at("values").size(); ++i)
        kept[table.at("columns")[i].get<std::string>()] = row.at("values")[i];
    }
  }
  return rows;
}

// How far a number of another run may be from a kept one.
double allowed_for(const Json& value, bool same_machine) {
  if (same_machine) return kSameMachine;
  if (value.at("low").is_null()) return kWithoutInterval;
  return std::max(kWithoutInterval, value.at("high").get<double>() - value.at("low").get<double>());
}

void compare_row(const std::string& where, const Json& kept, const Json& again, bool same_machine, KeptCheck& check) {
  for (const auto& [column, value] : kept.items()) {
    const double before = number_or_nan(value.at("value"));
    const double now = number_or_nan(again.contains(column) ? again.at(column).at("value") : Json());
    ++check.numbers;
    const double allowed = allowed_for(value, same_machine);
    const bool agrees = std::isnan(before) ? std::isnan(now) : std::abs(now - before) <= allowed;
    if (!agrees) check.differing.push_back({fmt::format("{}: {}", where, column), before, now, allowed});
  }
}

}  // namespace

KeptCheck check_kept(const std::string& path, ReproduceOptions options, std::uint64_t draw) {
  const std::string file = with_json(path);
  const Json kept = read_json(file);
  if (!kept.is_object() || kept.value("kind", "") != "experiment" || !kept.contains("tables"))
    input_error("{}: not the kept results of an experiment; give a file that --results wrote", file);
  const Json manifest = read_json(manifest_of(file));

  KeptCheck check{.experiment = kept.at("experiment")};
  const std::vector<std::string> datasets = datasets_in(kept);
  if (options.only.size() > 1) usage_error("--only: a check runs one dataset again, not {}", options.only.size());
  if (!options.only.empty()) {
    check.dataset = options.only[0];
    if (std::ranges::find(datasets, check.dataset) == datasets.end())
      usage_error("--only {}: {} has no such dataset; it has {}", check.dataset, file,
                  datasets.empty() ? "rows of one only" : fmt::format("{}", fmt::join(datasets, "; ")));
  } else if (!datasets.empty()) {
    check.dataset = datasets[RandomStream(draw, "check of kept results").below(datasets.size())];
  }

  options.experiment = check.experiment;
  options.scale = parse_scale(kept.at("scale"));
  options.seed = kept.at("seed");
  options.looks = manifest.at("identity").value("seeds", std::vector<std::int64_t>{});
  if (!check.dataset.empty()) options.only = {check.dataset};
  const Json again = run_experiment(options);
  if (again.is_null()) return check;  // another rank
  const Json before = kept.at("settings").value("choice", Json()), now = again.at("settings").value("choice", Json());
  if (before != now) {
    input_error("{}: made with another way of choosing weights ({}) than this program's ({}); make the results again", file,
                before.is_null() ? "none" : before.get<std::string>(), now.is_null() ? "none" : now.get<std::string>());
  }
  check.same_machine =
      machine_of(manifest) != nullptr && machine_of(manifest) == machine_of(read_json(options.folder + "/manifest.json"));
  const std::map<std::string, Json> rows = rows_of(again, check.dataset);
  for (const auto& [where, values] : rows_of(kept, check.dataset)) {
    const auto found = rows.find(where);
    if (found == rows.end()) {
      check.missing.push_back(where);
    } else {
      compare_row(where, values, found->second, check.same_machine, check);
    }
  }
  return check;
}

}  // namespace holdfast::experiment

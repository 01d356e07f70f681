#include "holdfast/experiment/compare_runs.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "holdfast/core/csv.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/number.h"
#include "holdfast/core/words.h"
#include "holdfast/measure/statistics.h"

namespace holdfast::experiment {
namespace {

using RowKey = std::vector<std::string>;

// One run's files, with the values of its samples by row.
class FinishedRun {
 public:
  explicit FinishedRun(const std::string& folder) : folder_(folder) {
    results_ = read("results.json");
    manifest_ = read("manifest.json");
    if (results_.value("kind", "") != "audit") input_error("{}: only runs of `holdfast audit` can be compared", folder);
    read_values("samples.csv", {"dataset", "model", "explainer", "attack", "metric", "epsilon"});
    if (file_exists(folder + "/measures.csv")) read_values("measures.csv", {"dataset", "model", "explainer", "measure"});
  }

  const Json& results() const { return results_; }
  const Json& manifest() const { return manifest_; }
  std::string name() const { return results_.value("title", folder_); }
  const std::string& folder() const { return folder_; }

  // The names of its datasets or models: "dataset", "name".
  std::set<std::string> names(const char* key) const {
    std::set<std::string> all;
    for (const Json& model : results_.at("models")) all.insert(model.at(key).get<std::string>());
    return all;
  }

  // The values of a row by sample; nothing where there is none.
  const std::map<std::string, double>* values(const RowKey& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  Json read(const std::string& name) const {
    const std::string path = folder_ + "/" + name;
    if (!file_exists(path)) input_error("{}: {} is missing; only a complete run can be compared", folder_, name);
    return read_json(path);
  }

  void read_values(const std::string& name, const std::vector<std::string>& names) {
    const std::string path = folder_ + "/" + name;
    const CsvTable table = read_csv(path, {.trim = false});
    std::vector<std::size_t> places;
    for (const std::string& column : names) places.push_back(table.column(column, path));
    const std::size_t sample = table.column("sample", path), value = table.column("value", path);
    const auto part = table.places.find("part");
    for (const std::vector<std::string>& line : table.rows) {
      if (part != table.places.end() && !line[part->second].empty()) continue;
      RowKey key;
      for (const std::size_t place : places) key.push_back(line[place]);
      const std::optional<double> number =
          line[value].empty() ? std::numeric_limits<double>::quiet_NaN() : parse_quotient(line[value]);
      if (!number) input_error("{}: value '{}' is not a number", path, line[value]);
      values_[key].emplace(line[sample], *number);
    }
  }

  std::string folder_;
  Json results_, manifest_;
  std::map<RowKey, std::map<std::string, double>> values_;
};

// The names of a row as samples.csv and measures.csv have them, and as the comparison says them.
RowKey key_of(const Json& row) {
  RowKey key{row.at("dataset"), row.at("model"), row.at("explainer")};
  if (row.contains("metric")) {
    key.insert(key.end(), {row.at("attack"), row.at("metric"), fmt::format("{}", row.at("threat").at("epsilon").get<double>())});
  } else {
    key.push_back(row.at("measure"));
  }
  return key;
}

Json names_of(const Json& row) {
  Json names{{"dataset", row.at("dataset")},
             {"model", row.at("model")},
             {"explainer", row.at("explainer")},
             {"direction", row.at("direction")}};
  if (row.contains("metric")) {
    names["attack"] = row.at("attack");
    names["metric"] = row.at("metric");
    names["epsilon"] = row.at("threat").at("epsilon");
  } else {
    names["measure"] = row.at("measure");
  }
  return names;
}

struct RowPairing {
  Json names;
  measure::PairedComparison comparison;  // this run's values first
};

// Rows of a list of results.json that the first run has too, on the samples that both have.
std::size_t pair_rows(const FinishedRun& first, const FinishedRun& run, std::size_t number, const char* list, std::uint64_t seed,
                      std::vector<RowPairing>& pairings) {
  // The only dataset and the only model may be called differently.
  const auto counterpart = [&](const char* key, const std::string& name) {
    const std::set<std::string> theirs = first.names(key);
    return theirs.size() == 1 && run.names(key).size() == 1 ? *theirs.begin() : name;
  };
  const Json rows = run.results().value(list, Json::array());
  std::size_t unmatched = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowKey key = key_of(rows[i]);
    RowKey other = key;
    other[0] = counterpart("dataset", key[0]);
    other[1] = counterpart("name", key[1]);
    const auto *mine = run.values(key), *theirs = first.values(other);
    std::vector<double> now, before;
    if (mine != nullptr && theirs != nullptr) {
      for (const auto& [sample, value] : *mine) {
        const auto found = theirs->find(sample);
        if (found == theirs->end()) continue;
        now.push_back(value);
        before.push_back(found->second);
      }
    }
    if (now.empty()) {
      ++unmatched;
      continue;
    }
    Json names = names_of(rows[i]);
    names["run"] = number;
    names[list == std::string("rows") ? "row" : "measured"] = i;
    pairings.push_back({std::move(names), measure::compare_paired(now, before, seed)});
  }
  return unmatched;
}

std::string change_of(const Json& names, const Interval& difference) {
  if (difference.mean == 0 && difference.low == 0 && difference.high == 0) return "same";
  if (!(difference.low > 0) && !(difference.high < 0)) return "open";
  return (difference.low > 0) == (names.at("direction") == "higher") ? "better" : "worse";
}

void flatten(const Json& value, const std::string& key, std::map<std::string, std::string>& settings) {
  if (value.is_object()) {
    for (const auto& [name, part] : value.items()) flatten(part, key.empty() ? name : key + "." + name, settings);
    return;
  }
  // Models and datasets are lists of objects, called by their names.
  if (value.is_array() && std::ranges::any_of(value, [](const Json& part) { return part.is_object(); })) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const bool named = value[i].is_object() && value[i].contains("name") && value[i].at("name").is_string();
      flatten(value[i], fmt::format("{}[{}]", key, named ? value[i].at("name").get<std::string>() : std::to_string(i)), settings);
    }
    return;
  }
  settings[key] = value.is_string() ? value.get<std::string>() : value.dump();
}

std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = 120;
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

// What the runs' identities and versions say differently.
Json differing_settings(const std::vector<FinishedRun>& runs) {
  std::vector<std::map<std::string, std::string>> settings(runs.size());
  std::set<std::string> keys;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Json& manifest = runs[i].manifest();
    flatten(manifest.value("identity", Json::object()), "", settings[i]);
    for (const char* name : {"holdfast", "seed", "versions", "hardware"})
      if (manifest.contains(name)) flatten(manifest.at(name), name, settings[i]);
    for (const auto& [key, value] : settings[i]) keys.insert(key);
  }
  Json result = Json::array();
  for (const std::string& key : keys) {
    Json values = Json::array();
    for (const auto& of_run : settings) values.push_back(of_run.contains(key) ? of_run.at(key) : "-");
    if (std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end()) continue;
    for (Json& value : values) value = shortened(value);
    result.push_back({{"key", key}, {"values", values}});
  }
  return result;
}

}  // namespace

Json compare_runs(const std::vector<std::string>& folders, std::optional<std::uint64_t> seed) {
  std::vector<FinishedRun> runs;
  for (const std::string& folder : folders) runs.emplace_back(folder);
  std::vector<RowPairing> pairings;
  Json names = Json::array(), unmatched = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    names.push_back(runs[i].name());
    std::size_t missing = 0;
    if (i > 0) {
      const std::uint64_t own = seed.value_or(runs[i].manifest().value("seed", std::uint64_t{0}));
      missing = pair_rows(runs[0], runs[i], i, "rows", own, pairings) + pair_rows(runs[0], runs[i], i, "measures", own, pairings);
    }
    unmatched.push_back(missing == 0 ? ""
                                     : fmt::format("{} of this run have no counterpart in the first.",
                                                   counted(static_cast<std::int64_t>(missing), "row")));
  }
  // Runs with the same title are told apart by their folders.
  if (std::set<std::string>(names.begin(), names.end()).size() < names.size()) names = folders;

  std::vector<measure::PairedComparison> comparisons;
  for (const RowPairing& pairing : pairings) comparisons.push_back(pairing.comparison);
  measure::correct(comparisons);
  Json rows = Json::array();
  for (std::size_t i = 0; i < pairings.size(); ++i) {
    Json row = pairings[i].names;
    Json statistics = to_json(comparisons[i]);
    row["change"] = change_of(row, comparisons[i].difference);
    std::swap(statistics["first"], statistics["second"]);  // the page counts runs, and the first run comes first
    row.update(statistics);
    rows.push_back(std::move(row));
  }
  return {{"runs", names}, {"unmatched", unmatched}, {"settings", differing_settings(runs)}, {"rows", rows}};
}

Json drops_against(const std::string& reference, const std::string& folder) {
  Json rows = compare_runs({reference, folder}).at("rows");
  for (Json& row : rows) {
    const Json& mean = row.at("difference").at("mean");
    const double sign = row.at("direction") == "higher" ? -1 : 1;
    row["drop"] = mean.is_number() ? Json(sign * mean.get<double>()) : Json();
  }
  return rows;
}

}  // namespace holdfast::experiment

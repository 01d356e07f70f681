// The leaderboard: one JSON file a result and a page of all of them.
#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json_error.h"
#include "holdfast/report/html.h"
#include "holdfast/report/text_table.h"
#include "kept_results.h"
#include "page.h"

namespace holdfast::report {
namespace {

Json field(const Json& row, const char* name) {
  const Json value = row.value(name, Json());
  return value.is_object() ? value.value("mean", Json()) : value;
}

Json accuracy_of(const Json& results, const Json& row) {
  for (const Json& model : results.at("models")) {
    if (model.at("name") == row.at("model") && model.at("dataset") == row.at("dataset")) return field(model, "accuracy");
  }
  return {};
}

// Each model under each threat, by the strongest attack of the run.
Json entries_of(const std::string& folder) {
  for (const char* name : {"results.json", "manifest.json"})
    if (!file_exists(folder + "/" + name)) input_error("{}: {} is missing; only a finished audit can be listed", folder, name);
  const Json results = read_json(folder + "/results.json"), manifest = read_json(folder + "/manifest.json");
  if (results.value("kind", "") != "audit") input_error("{}: only runs of `holdfast audit` can be listed", folder);
  std::map<std::string, std::size_t> places;
  std::vector<Json> strongest;
  for (const Json& row : results.at("rows")) {
    const std::string key =
        Json{row.at("dataset"), row.at("model"), row.at("explainer"), row.at("metric"), row.at("threat")}.dump();
    const auto [place, is_new] = places.emplace(key, strongest.size());
    if (is_new) {
      strongest.push_back(row);
    } else if (is_worse(row, strongest[place->second])) {
      strongest[place->second] = row;
    }
  }
  Json entries = Json::array();
  for (const Json& row : strongest) {
    Json entry{
        {"run", results.value("title", folder)}, {"holdfast", manifest.value("holdfast", "")}, {"samples", row.at("count")}};
    for (const char* name : {"dataset", "model", "explainer", "metric", "direction", "threat", "attack"})
      entry[name] = row.at(name);
    entry["value"] = row.at("mean");
    for (const char* name : {"low", "high", "chance", "between", "lift", "effective_sets", "own_advantage", "certified",
                             "robust_and_specific", "evaluations", "beaten_by"})
      entry[name] = field(row, name);
    entry["accuracy"] = accuracy_of(results, row);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

void write_leaderboard(const std::vector<std::string>& runs, const std::string& out) {
  make_folders(out + "/results");
  Json entries = Json::array();
  std::map<std::string, int> names;
  for (const std::string& run : runs) {
    try {
      for (Json& entry : entries_of(run)) {
        const std::string base = folder_name(run);
        entry["name"] = fmt::format("{}-{:03}", base, ++names[base]);
        write_json(fmt::format("{}/results/{}.json", out, entry["name"].get<std::string>()), entry);
        entries.push_back(std::move(entry));
      }
    } catch (const Json::exception& error) {
      input_error("{}: results.json is not of a run of this version: {}", run, json_reason(error));
    }
  }
  write_page(out + "/index.html",
             {{"page", "leaderboard"}, {"title", "Whose explanations hold?"}, {"pictures", Json::array()}, {"entries", entries}});
}

}  // namespace holdfast::report

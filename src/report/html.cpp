#include "holdfast/report/html.h"

#include <map>
#include <set>

#include "holdfast/core/csv.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json.h"
#include "holdfast/core/json_error.h"
#include "holdfast/report/junit.h"
#include "page.h"
#include "run_data.h"

namespace holdfast::report {
namespace {

Json read_run_json(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (!folder_exists(folder)) input_error("{}: there is no such folder", folder);
  if (!file_exists(path)) input_error("{}: {} is missing; only a complete run can be reported", folder, name);
  return read_json(path);
}

// The rows of results.json by what identifies them in samples.csv.
std::map<std::vector<std::string>, std::size_t> row_index(const Json& results) {
  std::map<std::vector<std::string>, std::size_t> index;
  const Json& rows = results.at("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    index[{row.at("dataset"), row.at("model"), row.at("explainer"), row.at("attack"), row.at("metric"),
           fmt::format("{}", row.at("threat").at("epsilon").get<double>())}] = i;
  }
  return index;
}

// Six digits are more than a chart shows.
Json short_number(const std::string& text, const std::string& where) {
  return text.empty() ? Json() : parse_json(fmt::format("{:.6g}", parse_json(text, where).get<double>()), where);
}

// For each row of results.json the values of its samples and the iterations of their first swaps.
Json read_samples(const std::string& folder, const Json& results) {
  const std::string path = folder + "/samples.csv";
  if (!file_exists(path))
    input_error("{}: samples.csv is missing; only a complete run of `holdfast audit` can be reported", folder);
  const CsvTable table = read_csv(path, {.trim = false});
  const auto index = row_index(results);
  const std::size_t value = table.column("value", path), swap = table.column("first_swap", path);
  std::vector<std::size_t> names;
  for (const char* name : {"dataset", "model", "explainer", "attack", "metric", "epsilon"})
    names.push_back(table.column(name, path));
  Json samples(results.at("rows").size(), {{"value", Json::array()}, {"first_swap", Json::array()}});
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& line = table.rows[i];
    std::vector<std::string> key;
    for (const std::size_t name : names) key.push_back(line[name]);
    const auto row = index.find(key);
    if (row == index.end()) input_error("{}:{}: no row of results.json has this model, attack and metric", path, table.lines[i]);
    Json& entry = samples[row->second];
    entry["value"].push_back(short_number(line[value], path));
    entry["first_swap"].push_back(line[swap].empty() ? Json(-1) : parse_json(line[swap], path));
  }
  return samples;
}

Schema schema_of(const Json& manifest, const std::string& dataset, const std::string& where) {
  for (const Json& entry : manifest.at("datasets")) {
    if (entry.at("name") == dataset) return schema_from_json(entry.at("schema"), where);
  }
  input_error("{}: dataset {} is not described", where, dataset);
}

// The samples of every panel, by the folder of its arrays.
Json experiment_data(const std::string& folder, const Json& manifest, const Json& results, PicturePool& pool) {
  Json panels = Json::object();
  for (const Json& figure : results.at("figures")) {
    for (const Json& panel : figure.at("panels")) {
      const std::string arrays = panel.at("arrays");
      panels[arrays] = worst_samples(folder + "/" + arrays, read_schema(folder + "/" + arrays + "/schema.json"), pool);
    }
  }
  return {{"folder", folder}, {"manifest", manifest}, {"results", results}, {"panels", panels}};
}

// A manifest's schema can be larger than all the rest, and the page reads nothing of it.
Json without_schemas(Json manifest) {
  for (Json& dataset : manifest.at("datasets")) dataset.erase("schema");
  return manifest;
}

}  // namespace

Json run_data(const std::string& folder, PicturePool& pool) {
  const Json manifest = read_run_json(folder, "manifest.json");
  const Json results = read_run_json(folder, "results.json");
  const std::string kind = results.value("kind", "audit");
  if (kind == "experiment") return experiment_data(folder, manifest, results, pool);
  if (kind != "audit") input_error("{} holds a run of `holdfast {}`; only audits and experiments can be reported", folder, kind);
  try {
    std::vector<RowArrays> arrays;
    for (const Json& row : results.at("rows"))
      arrays.push_back({folder + "/" + row.at("arrays").get<std::string>(),
                        schema_of(manifest, row.at("dataset"), folder + "/manifest.json")});
    const WorstRows worst = worst_of_rows(arrays, pool);
    return {{"folder", folder},     {"manifest", without_schemas(manifest)},
            {"results", results},   {"samples", read_samples(folder, results)},
            {"worst", worst.lists}, {"left_out", worst.left_out}};
  } catch (const Json::exception& error) {
    input_error("{}: results.json or manifest.json is not of a run of this version: {}", folder, json_reason(error));
  }
}

void write_report(const std::vector<std::string>& run_folders, const std::string& path, const Json& comparison) {
  PicturePool pool;
  Json runs = Json::array();
  for (const std::string& folder : run_folders) runs.push_back(run_data(folder, pool));
  const std::string title = runs.empty() ? "Holdfast" : runs[0].at("results").value("title", "Holdfast");
  write_page(path, {{"page", "runs"}, {"title", title}, {"pictures", pool.urls()}, {"runs", runs}, {"comparison", comparison}});
}

void write_audit_pages(const Json& results, const std::string& run_folder) {
  if (!results.at("gates").empty()) write_atomic(run_folder + "/junit.xml", junit_xml(results));
  write_report({run_folder}, run_folder + "/report.html");
}

}  // namespace holdfast::report

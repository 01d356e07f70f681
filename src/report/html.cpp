#include "holdfast/report/html.h"

#include <map>
#include <set>

#include "holdfast/core/csv.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json.h"
#include "holdfast/report/junit.h"
#include "page.h"
#include "worst.h"

namespace holdfast::report {
namespace {

Json read_run_json(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
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

Json read_samples(const std::string& folder, const Json& results) {
  const std::string path = folder + "/samples.csv";
  if (!file_exists(path))
    input_error("{}: samples.csv is missing; only a complete run of `holdfast audit` can be reported", folder);
  const CsvTable table = read_csv(path);
  const auto index = row_index(results);
  const std::size_t sample = table.column("sample", path), value = table.column("value", path),
                    epsilon = table.column("epsilon", path);
  Json rows = Json::array(), samples = Json::array(), values = Json::array();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& line = table.rows[i];
    std::vector<std::string> key(line.begin(), line.begin() + 5);
    key.push_back(line[epsilon]);
    const auto row = index.find(key);
    if (row == index.end()) input_error("{}:{}: no row of results.json has this model, attack and metric", path, table.lines[i]);
    rows.push_back(row->second);
    samples.push_back(parse_json(line[sample], path));
    values.push_back(line[value].empty() ? Json() : parse_json(line[value], path));
  }
  return {{"row", rows}, {"sample", samples}, {"value", values}};
}

Schema schema_of(const Json& manifest, const std::string& dataset, const std::string& where) {
  for (const Json& entry : manifest.at("datasets")) {
    if (entry.at("name") == dataset) return schema_from_json(entry.at("schema"), where);
  }
  input_error("{}: dataset {} is not described", where, dataset);
}

// The samples of every panel, by the folder of its arrays.
Json experiment_data(const std::string& folder, const Json& manifest, const Json& results) {
  Json panels = Json::object();
  for (const Json& figure : results.at("figures")) {
    for (const Json& panel : figure.at("panels")) {
      const std::string arrays = panel.at("arrays");
      panels[arrays] = worst_samples(folder + "/" + arrays, read_schema(folder + "/" + arrays + "/schema.json"));
    }
  }
  return {{"folder", folder}, {"manifest", manifest}, {"results", results}, {"panels", panels}};
}

Json run_data(const std::string& folder) {
  const Json manifest = read_run_json(folder, "manifest.json");
  const Json results = read_run_json(folder, "results.json");
  const std::string kind = results.value("kind", "audit");
  if (kind == "experiment") return experiment_data(folder, manifest, results);
  if (kind != "audit") input_error("{} holds a run of `holdfast {}`; only audits and experiments can be reported", folder, kind);
  try {
    Json worst = Json::array();
    for (const Json& row : results.at("rows")) {
      const Schema schema = schema_of(manifest, row.at("dataset"), folder + "/manifest.json");
      worst.push_back(worst_samples(folder + "/" + row.at("arrays").get<std::string>(), schema));
    }
    return {{"folder", folder},
            {"manifest", manifest},
            {"results", results},
            {"samples", read_samples(folder, results)},
            {"worst", worst}};
  } catch (const Json::exception& error) {
    input_error("{}: results.json or manifest.json is not of a run of this version: {}", folder, error.what());
  }
}

// Data inside a script element must not be able to end it.
std::string script_safe(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (const char letter : text) {
    if (letter == '<') {
      result += "\\u003c";
    } else {
      result += letter;
    }
  }
  return result;
}

std::string escape_html(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '&') {
      result += "&amp;";
    } else if (letter == '<') {
      result += "&lt;";
    } else {
      result += letter;
    }
  }
  return result;
}

}  // namespace

void write_report(const std::vector<std::string>& run_folders, const std::string& path) {
  Json runs = Json::array();
  for (const std::string& folder : run_folders) runs.push_back(run_data(folder));
  const std::string title = runs.empty() ? "Holdfast" : runs[0].at("results").value("title", "Holdfast");
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>" +
      escape_html(title) + "</title>\n</head>\n<body>\n<script type=\"application/json\" id=\"holdfast-data\">";
  html += script_safe(runs.dump());
  html += "</script>\n<script>";
  html += page_script();
  html += "</script>\n</body>\n</html>\n";
  write_atomic(path, html);
}

void write_audit_pages(const Json& results, const std::string& run_folder) {
  if (!results.at("gates").empty()) write_atomic(run_folder + "/junit.xml", junit_xml(results));
  write_report({run_folder}, run_folder + "/report.html");
}

}  // namespace holdfast::report

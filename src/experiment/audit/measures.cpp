#include <cmath>

#include "../model_tiles.h"
#include "files.h"
#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/measure_all.h"

namespace holdfast::experiment {
namespace {

Json stored(const Measurement& measured) {
  Json parts = Json::array();
  for (const auto& [name, values] : measured.parts) parts.push_back({{"name", name}, {"values", values}});
  return {{"values", measured.values}, {"parts", parts}};
}

Measurement measurement_from(const Json& json) {
  Measurement measured{.values = numbers_or_nan(json.at("values"))};
  for (const Json& part : json.at("parts")) measured.parts.emplace_back(part.at("name"), numbers_or_nan(part.at("values")));
  return measured;
}

// A digest of the numbers stands beside them.
Json sealed(Json json) {
  const std::string digest = sha256_hex(as_bytes(json.dump()));
  json["digest"] = digest;
  return json;
}

Json read_sealed(const std::string& path) {
  Json json = read_json(path);
  const std::string digest = json.is_object() ? json.value("digest", "") : "";
  json.erase("digest");
  if (sha256_hex(as_bytes(json.dump())) != digest)
    input_error("{} is not as the run wrote it; delete the file and run again", path);
  return json;
}

// Rank 0 decides for all: its file may come to be while another rank looks for it.
bool is_stored(const std::string& path, Communicator* ranks) {
  if (ranks == nullptr) return file_exists(path);
  if (ranks->leads()) ranks->publish("stored/" + path, file_exists(path) ? "yes" : "no");
  return ranks->read("stored/" + path) == "yes";
}

}  // namespace

MeasureRow run_measure(const MeasureCell& cell, const TileOptions& tiles, const std::string& folder, Progress* progress,
                       Communicator* ranks) {
  const std::string path = folder + "/measurement.json";
  if (is_stored(path, ranks)) {
    if (!leads(ranks)) return {cell, {}};
    if (progress != nullptr) progress->advance(cell.subject.samples.count());
    return {cell, measurement_from(read_sealed(path))};
  }
  const Measurement measured = ranks == nullptr ? measure_all(*cell.measure, cell.task(), tiles, progress)
                                                : measure_together(*ranks, folder, *cell.measure, cell.task(), tiles, progress);
  if (!leads(ranks)) return {cell, {}};
  make_folders(folder);
  write_json(path, sealed(stored(measured)));
  return {cell, measured};
}

Json measure_row_json(const MeasureRow& row) {
  const auto& [cell, measured] = row;
  const Interval interval = measured_interval(*cell.measure, measured, cell.seed);
  Json parts = Json::object();
  for (const auto& [name, values] : measured.parts) parts[name] = mean_interval(values, cell.seed).mean;
  return {{"dataset", cell.subject.dataset},
          {"model", cell.subject.model_name},
          {"explainer", cell.explainer_name()},
          {"measure", cell.measure->name()},
          {"direction", cell.measure->higher_is_better() ? "higher" : "lower"},
          {"mean", interval.mean},
          {"low", interval.low},
          {"high", interval.high},
          {"median", interval.median},
          {"count", interval.count},
          {"undefined", static_cast<std::int64_t>(measured.values.size()) - interval.count},
          {"parts", parts}};
}

std::string measures_header() {
  return format_csv_row({"dataset", "model", "explainer", "measure", "part", "sample", "value"});
}

std::string measure_lines(const MeasureRow& row) {
  const auto& [cell, measured] = row;
  const std::vector<std::int64_t> ids = to_vector(cell.subject.samples.ids);
  std::string text;
  const auto add_lines = [&](const std::string& part, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      text += format_csv_row({row.cell.subject.dataset, row.cell.subject.model_name, row.cell.explainer_name(),
                              row.cell.measure->name(), part, fmt::format("{}", ids[i]),
                              std::isnan(values[i]) ? "" : fmt::format("{}", values[i])});
    }
  };
  add_lines("", measured.values);
  for (const auto& [part, values] : measured.parts) add_lines(part, values);
  return text;
}

}  // namespace holdfast::experiment

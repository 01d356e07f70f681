#include "audit_measures.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/torch.h"
#include "samples.h"

namespace holdfast {
namespace {

Json to_json(const Measurement& measured) {
  Json parts = Json::array();
  for (const auto& [name, values] : measured.parts) parts.push_back({{"name", name}, {"values", values}});
  return {{"values", measured.values}, {"parts", parts}};
}

// Undefined values are null in JSON.
std::vector<double> numbers(const Json& values) {
  std::vector<double> result;
  for (const Json& value : values) result.push_back(value.is_null() ? std::nan("") : value.get<double>());
  return result;
}

Measurement measurement_from(const Json& json) {
  Measurement measured{.values = numbers(json.at("values"))};
  for (const Json& part : json.at("parts")) measured.parts.emplace_back(part.at("name"), numbers(part.at("values")));
  return measured;
}

}  // namespace

MeasureJob MeasureRow::job(std::uint64_t seed) const {
  return {.model = *subject.model,
          .explainer = *explainer,
          .schema = data.schema,
          .inputs = data.inputs,
          .targets = data.targets,
          .sample_ids = data.ids,
          .seed = seed,
          .epsilon = data.trial.epsilons.back(),
          .baseline = data.baseline,
          .background = data.background};
}

std::vector<MeasureRow> make_measure_rows(const AuditPlan& plan) {
  std::vector<MeasureRow> rows;
  for (const AuditModel& subject : plan.models) {
    const AuditData& data = plan.data.at(subject.data);
    std::set<std::string> seen;
    for (const std::string& explainer : data.trial.explainers) {
      for (const std::string& call : data.trial.measures) {
        MeasureRow row{subject, data, explainers().make(explainer), measures().make(call)};
        if (!seen.insert(row.explainer_name() + '\n' + row.measure->name()).second) continue;
        check_measure(*row.measure, row.job(plan.seed));
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

Measurement run_measure_row(const MeasureRow& row, const AuditPlan& plan, const std::string& folder, Progress* progress) {
  const std::string path = folder + "/measurement.json";
  if (file_exists(path)) {
    if (progress != nullptr) progress->advance(row.data.inputs.size(0));
    return measurement_from(read_json(path));
  }
  const Measurement measured = measure_all(*row.measure, row.job(plan.seed), plan.tiles, progress);
  make_folders(folder);
  write_json(path, to_json(measured));
  return measured;
}

Json measure_row_json(const MeasureRow& row, const Measurement& measured, std::uint64_t seed) {
  const Interval interval = mean_interval(*row.measure, measured, seed);
  Json parts = Json::object();
  for (const auto& [name, values] : measured.parts) parts[name] = mean_interval(values, seed).mean;
  return {{"dataset", row.data.name},
          {"model", row.subject.name},
          {"explainer", row.explainer_name()},
          {"measure", row.measure->name()},
          {"direction", row.measure->higher_is_better() ? "higher" : "lower"},
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

std::string measure_lines(const MeasureRow& row, const Measurement& measured) {
  const std::vector<std::int64_t> ids = to_vector(row.data.ids);
  std::string text;
  const auto lines = [&](const std::string& part, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      text += format_csv_row({row.data.name, row.subject.name, row.explainer_name(), row.measure->name(), part,
                              fmt::format("{}", ids[i]), std::isnan(values[i]) ? "" : fmt::format("{}", values[i])});
    }
  };
  lines("", measured.values);
  for (const auto& [part, values] : measured.parts) lines(part, values);
  return text;
}

}  // namespace holdfast

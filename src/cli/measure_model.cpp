// holdfast measure --model: numbers of a model and its explanations around each sample.
#include "measure_model.h"

#include <cstdio>
#include <memory>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/number.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/experiment/measure_all.h"
#include "holdfast/measure/statistics.h"
#include "holdfast/report/text_table.h"

namespace holdfast::cli {
namespace {

// A file of one row a sample: a column for every measure and for each of its parts, named "measure: part".
struct Column {
  std::string name;
  std::vector<double> values;
};

std::vector<Column> columns_of(const std::vector<std::unique_ptr<Measure>>& chosen, const std::vector<Measurement>& measured) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    columns.push_back({chosen[i]->name(), measured[i].values});
    for (const auto& [part, values] : measured[i].parts) columns.push_back({chosen[i]->name() + ": " + part, values});
  }
  return columns;
}

void write_columns(const std::string& path, const std::vector<Column>& columns) {
  std::vector<std::string> fields{"sample"};
  for (const Column& column : columns) fields.push_back(column.name);
  std::string text = format_csv_row(fields);
  for (std::size_t sample = 0; sample < columns.front().values.size(); ++sample) {
    fields = {fmt::format("{}", sample)};
    for (const Column& column : columns) {
      const double value = column.values[sample];
      fields.push_back(std::isnan(value) ? "" : fmt::format("{}", value));
    }
    text += format_csv_row(fields);
  }
  write_atomic(path, text);
}

double epsilon_of(const std::string& text) {
  if (text.empty()) return 0;
  const std::optional<double> epsilon = parse_quotient(text);
  if (!epsilon) usage_error("--epsilon: '{}' is not a number", text);
  if (*epsilon < 0) usage_error("--epsilon {}: must be at least 0", text);
  return *epsilon;
}

double parsed(const std::string& text, const std::string& where) {
  if (text.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::logic_error&) {
    end = 0;
  }
  if (end != text.size()) input_error("{}: '{}' is not a number", where, text);
  return value;
}

// The other file's values of the same measure, in the same order of samples.
std::vector<double> column_of(const CsvTable& table, const std::string& name, const std::string& path, std::size_t samples) {
  const std::size_t column = table.column(name, path);
  if (table.rows.size() != samples) {
    input_error("{}: has {} samples, but {} are measured here; compare models on the same samples", path, table.rows.size(),
                samples);
  }
  std::vector<double> values;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    values.push_back(parsed(table.rows[i][column], fmt::format("{}:{}", path, table.lines[i])));
  }
  return values;
}

std::vector<PairedComparison> compared(const std::string& path, const std::vector<std::unique_ptr<Measure>>& chosen,
                                       const std::vector<Measurement>& measured, std::uint64_t seed) {
  std::vector<PairedComparison> comparisons;
  const CsvTable table = read_csv(path);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::vector<double> other = column_of(table, chosen[i]->name(), path, measured[i].values.size());
    comparisons.push_back(compare_paired(measured[i].values, other, seed));
  }
  correct(comparisons);
  return comparisons;
}

std::string number(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.4g}", value);
}

std::string range(double low, double high) {
  return std::isnan(low) ? "-" : fmt::format("[{:.4g}, {:.4g}]", low, high);
}

void print_measures(const std::vector<std::unique_ptr<Measure>>& chosen, const std::vector<Measurement>& measured,
                    std::uint64_t seed) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Interval interval = measured_interval(*chosen[i], measured[i], seed);
    rows.push_back({chosen[i]->name(), number(interval.mean), range(interval.low, interval.high), number(interval.median),
                    fmt::format("{}", interval.count), chosen[i]->higher_is_better() ? "higher" : "lower"});
    for (const auto& [part, values] : measured[i].parts) {
      const Interval own = mean_interval(values, seed);
      rows.push_back({"  " + part, number(own.mean), "", number(own.median), fmt::format("{}", own.count), ""});
    }
  }
  std::printf("%s", text_table({"measure", "mean", "95 %", "median", "samples", "better"}, rows).c_str());
}

void print_comparisons(const std::string& path, const std::vector<std::unique_ptr<Measure>>& chosen,
                       const std::vector<PairedComparison>& comparisons) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const PairedComparison& own = comparisons[i];
    rows.push_back({chosen[i]->name(), number(own.first), number(own.second), number(own.difference.mean),
                    range(own.difference.low, own.difference.high), number(own.p_value), number(own.corrected)});
  }
  std::printf("\nagainst %s, the same samples\n%s", path.c_str(),
              text_table({"measure", "here", "there", "difference", "95 %", "p", "p, Holm"}, rows).c_str());
}

}  // namespace

void MeasureModelFlags::add_to(CLI::App& command) {
  command.add_option("--measure", measures, "With --model: what to measure; may be repeated; `holdfast list measures`")
      ->allow_extra_args(false);
  command.add_option("--explainer", explainer, "With --model: the explanation that is measured")->capture_default_str();
  command.add_option("--epsilon", epsilon,
                     "With --model: radius around each sample, as 0.5 or 8/255, for measures that name none");
  command.add_option("--endpoints", endpoints, "With --model: perturbed inputs, .npy, for measures with from=given");
  command.add_option("--out", out, "CSV with a row for each sample");
  command.add_option("--compare", compare, "With --model: the --out file of another model; compares the two on the same samples");
}

void measure_model(const MeasureModelFlags& flags, const SubjectFlags& subject_flags, const CommonFlags& common, bool json,
                   Communicator* ranks) {
  if (flags.measures.empty()) usage_error("--measure is required beside --model; `holdfast list measures` shows them");
  std::optional<NewFolders> folders;
  if (!flags.out.empty()) folders.emplace(prepare_output_file(flags.out));
  std::vector<std::unique_ptr<Measure>> chosen;
  for (const std::string& text : flags.measures) chosen.push_back(measures().make(text));
  const std::unique_ptr<Explainer> explainer = explainers().make(flags.explainer);
  const Subject subject = load_subject(subject_flags, common.torch_device());
  const MeasureTask task{.model = *subject.model,
                         .explainer = *explainer,
                         .samples = subject.samples,
                         .seed = static_cast<std::uint64_t>(common.seed),
                         .epsilon = epsilon_of(flags.epsilon),
                         .endpoints = flags.endpoints.empty() ? at::Tensor() : read_inputs(flags.endpoints)};
  for (const std::unique_ptr<Measure>& measure : chosen) check_measure(*measure, task);
  for (const std::unique_ptr<Measure>& measure : chosen) announce(*measure, task);

  if (ranks != nullptr)
    ranks->agree_on("instruction set", at::get_cpu_capability(), "set ATEN_CPU_CAPABILITY to the lowest of them for all ranks");
  std::vector<Measurement> measured;
  {
    const auto total = static_cast<std::int64_t>(chosen.size()) * subject.samples.count();
    Progress progress("measure", total, "samples");
    for (const std::unique_ptr<Measure>& measure : chosen) {
      progress.note(measure->name());
      measured.push_back(ranks == nullptr ? measure_all(*measure, task, common.tiles(), &progress)
                                          : measure_together(*ranks, fmt::format("measure {}", measured.size()), *measure, task,
                                                             common.tiles(), &progress));
    }
  }
  if (!leads(ranks)) return;
  if (!flags.out.empty()) write_columns(flags.out, columns_of(chosen, measured));
  std::vector<PairedComparison> comparisons;
  if (!flags.compare.empty()) comparisons = compared(flags.compare, chosen, measured, task.seed);

  if (!json) {
    std::printf("%s of %s, %s\n", counted(subject.samples.count(), "sample").c_str(), subject.model->name().c_str(),
                explainer->name().c_str());
    print_measures(chosen, measured, task.seed);
    if (!comparisons.empty()) print_comparisons(flags.compare, chosen, comparisons);
    return;
  }
  Json results{{"samples", subject.samples.count()},
               {"model", subject.model->name()},
               {"explainer", explainer->name()},
               {"measures", Json::array()}};
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    results["measures"].push_back(experiment::to_json(*chosen[i], measured[i], task.seed));
    if (!comparisons.empty()) results["measures"].back()["comparison"] = to_json(comparisons[i]);
  }
  std::fputs(dump_json(results).c_str(), stdout);
}

}  // namespace holdfast::cli

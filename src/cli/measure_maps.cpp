#include "measure_maps.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/metric/levels.h"
#include "holdfast/report/text_table.h"

namespace holdfast::cli {
namespace {

// Keeps the order given; a metric that was named twice, in whatever words, is one.
std::vector<std::unique_ptr<Metric>> make_metrics(const std::vector<std::string>& calls) {
  std::vector<std::unique_ptr<Metric>> chosen;
  for (const std::string& call : calls) {
    std::unique_ptr<Metric> metric = metrics().make(call);
    const bool known =
        std::any_of(chosen.begin(), chosen.end(), [&](const auto& other) { return other->name() == metric->name(); });
    if (!known) chosen.push_back(std::move(metric));
  }
  return chosen;
}

at::Tensor read_maps(const std::string& path) {
  const at::Tensor maps = read_inputs(path, {.keep_double = true, .what = "maps"});
  if (maps.dim() < 2) input_error("{}: has shape {}; maps [B, ...] are expected", path, to_string(maps.sizes().vec()));
  return maps;
}

// Where --schema is not given: that of the folder in which both files of maps lie, as `attack` leaves it.
std::string schema_beside(const MeasureMapsFlags& flags) {
  const std::filesystem::path folder = std::filesystem::path(flags.original).parent_path();
  const std::string path = (folder / "schema.json").string();
  if (std::filesystem::path(flags.perturbed).parent_path() != folder || !file_exists(path)) return "";
  log_info("the schema is {}", path);
  return path;
}

// Of the maps, which may have one value for each feature of a table.
std::shared_ptr<const Schema> schema_of_maps(const MeasureMapsFlags& flags, const std::string& path, const at::Tensor& maps) {
  const auto given = path.empty() ? nullptr : share_schema(read_schema(path).of_maps(maps.flatten(1).size(1)));
  return schema_of(given, "the schema " + path, /*model=*/nullptr, maps, flags.original);
}

MapBatch folded(const at::Tensor& maps, const Schema& schema, const std::string& path) {
  MapBatch batch = fold_maps(maps, schema);
  for (std::int64_t i = 0; i < batch.count; ++i) {
    if (!std::ranges::all_of(batch[i].values, [](double value) { return std::isfinite(value); }))
      input_error("{}: the channels of sample {} add up to more than a double holds", path, i);
  }
  return batch;
}

std::vector<std::int64_t> read_classes(const std::string& path, std::int64_t samples) {
  if (path.empty()) return {};
  const at::Tensor labels = read_labels(path, samples);
  return {labels.const_data_ptr<std::int64_t>(), labels.const_data_ptr<std::int64_t>() + samples};
}

std::string cell(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fixed(*value, 4) : "-";
}

std::string cell(const std::optional<Interval>& interval) {
  return interval ? cell(interval->mean) : "-";
}

// Columns that say nothing about these metrics are left out.
std::string table_of(const std::vector<Assessment>& results) {
  const auto any = [&](const auto& has) { return std::any_of(results.begin(), results.end(), has); };
  const bool classes = any([](const Assessment& result) { return result.between_same_class.has_value(); });
  const bool sets = any([](const Assessment& result) { return result.distinct_top_sets > 0; });
  const bool effective = any([](const Assessment& result) { return result.effective_sets.has_value(); });
  const bool found = any([](const Assessment& result) { return result.found.has_value(); });
  const auto undefined = [](const Assessment& result) {
    return static_cast<std::int64_t>(result.values.size()) - result.value.count;
  };
  const bool left_out = any([&](const Assessment& result) { return undefined(result) > 0; });

  std::vector<std::string> header{"metric", "mean", "95 %", "median", "chance", "adjusted", "between"};
  if (classes) header.emplace_back("same class");
  header.insert(header.end(), {"specific", "lift"});
  if (effective) header.emplace_back("effective sets");
  if (sets) header.insert(header.end(), {"top sets", "tied"});
  if (found) header.emplace_back("found");
  if (left_out) header.emplace_back("undefined");
  std::vector<std::vector<std::string>> rows;
  for (const Assessment& result : results) {
    const Interval& value = result.value;
    std::vector<std::string> row{result.metric, cell(value.mean),
                                 value.count < 2 ? "-" : fmt::format("[{}, {}]", fixed(value.low, 4), fixed(value.high, 4)),
                                 cell(value.median)};
    row.push_back((result.chance && !result.chance_is_exact ? "~" : "") + cell(result.chance));
    row.insert(row.end(), {cell(result.adjusted), cell(result.between)});
    if (classes) row.push_back(cell(result.between_same_class));
    row.insert(row.end(), {cell(result.specific), cell(result.lift)});
    if (effective) row.push_back(cell(result.effective_sets));
    const bool has_sets = result.distinct_top_sets > 0;
    if (sets) row.push_back(has_sets ? fmt::format("{}", result.distinct_top_sets) : "-");
    if (sets) row.push_back(has_sets ? tied_cell(result.tied_share, result.tied_perturbed) : "-");
    if (found) row.push_back(result.found ? fmt::format("{:.1f}, {:.1f}", *result.found, *result.found_perturbed) : "-");
    if (left_out) row.push_back(fmt::format("{}", undefined(result)));
    rows.push_back(std::move(row));
  }
  return text_table(header, rows);
}

// A row for each sample and metric, with its levels.
class Listing {
 public:
  Listing()
      : text_(format_csv_row({"sample", "metric", "value", "chance", "adjusted", "between", "between_same_class", "specific",
                              "lift", "effective_sets", "tied", "tied_perturbed"})) {}

  void add(const Metric& metric, const Assessment& result, const Levels& levels, const MapBatch& clean, const MapBatch& moved) {
    const auto against = [&](double value, double level) { return above_level(value, level, metric.perfect()); };
    const auto tied = [&](const MapView& map) { return !metric.top_count() ? "" : metric.ties_decide(map) ? "1" : "0"; };
    const std::string sets = result.effective_sets ? number(result.effective_sets->mean) : "";
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      const double value = result.values[i], chance = levels.chance.empty() ? std::nan("") : levels.chance[i];
      const auto sample = static_cast<std::int64_t>(i);
      text_ += format_csv_row({fmt::format("{}", i), metric.name(), number(value), number(chance), number(against(value, chance)),
                               number(levels.between), number(levels.between_same_class), number(against(value, levels.between)),
                               number(value - levels.between), sets, tied(clean[sample]), tied(moved[sample])});
    }
  }
  const std::string& text() const { return text_; }

 private:
  static std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
  std::string text_;
};

}  // namespace

void MeasureMapsFlags::add_to(CLI::App& command) {
  command.add_option("ORIGINAL", original, "Maps (explanations) before the change, .npy [B, ...]");
  command.add_option("PERTURBED", perturbed,
                     "Maps after the change, of the same shape. Without --schema, a schema.json that lies beside both is read");
  command.add_option("--metric", metrics, "Metric of two maps; may be repeated; `holdfast list metrics`")
      ->allow_extra_args(false);
  command.add_option("--labels", labels, "Class of each sample, .npy [B]: adds the between level of samples of one class");
}

void measure_maps(const MeasureMapsFlags& flags, const std::string& schema_path, const std::string& out,
                  const CommonFlags& common, bool json) {
  std::optional<NewFolders> folders;
  if (!out.empty()) folders.emplace(prepare_output_file(out));
  const std::vector<std::unique_ptr<Metric>> chosen = make_metrics(flags.metrics);
  const at::Tensor original = read_maps(flags.original), perturbed = read_maps(flags.perturbed);
  if (original.sizes() != perturbed.sizes()) {
    input_error("{} has shape {}, but {} has shape {}", flags.original, to_string(original.sizes().vec()), flags.perturbed,
                to_string(perturbed.sizes().vec()));
  }
  const std::shared_ptr<const Schema> shared =
      schema_of_maps(flags, schema_path.empty() ? schema_beside(flags) : schema_path, original);
  const Schema& schema = *shared;
  for (const std::unique_ptr<Metric>& metric : chosen) metric->check(schema);
  const std::vector<std::int64_t> classes = read_classes(flags.labels, original.size(0));
  const MapBatch clean = folded(original, schema, flags.original), moved = folded(perturbed, schema, flags.perturbed);

  const auto seed = static_cast<std::uint64_t>(common.seed);
  std::vector<Assessment> results;
  Json listing = Json::array();
  Listing rows;
  for (const std::unique_ptr<Metric>& metric : chosen) {
    const Levels levels = compute_levels(*metric, clean, classes, {.seed = seed});
    results.push_back(assess(*metric, clean, moved, levels, seed));
    rows.add(*metric, results.back(), levels, clean, moved);
    listing.push_back(to_json(results.back()));
    warn_of_ties(results.back());
  }
  if (!out.empty()) write_atomic(out, rows.text());
  if (json) {
    std::fputs(dump_json({{"samples", clean.count}, {"metrics", listing}}).c_str(), stdout);
  } else {
    std::printf("%s\n%s", counted(clean.count, "sample").c_str(), table_of(results).c_str());
  }
}

}  // namespace holdfast::cli

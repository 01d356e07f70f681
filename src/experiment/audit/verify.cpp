#include "holdfast/experiment/verify_run.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/ranges.h>

#include "../model_tiles.h"
#include "holdfast/core/csv.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/grid.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/model/packing.h"

namespace holdfast::experiment {
namespace {

// What float32 maps of another batch size may change of a metric.
constexpr double kValueTolerance = 1e-4;

template <class Number>
std::optional<Number> parse_number(const std::string& text) {
  Number number{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// What samples.csv says of the samples of a row: by the row's names and the sample's number.
class SampleTable {
 public:
  struct Entry {
    std::int64_t target = 0;
    std::optional<double> value;
  };

  explicit SampleTable(const std::string& path) : path_(path), table_(read_csv(path)) {
    for (const char* name : {"dataset", "model", "explainer", "attack", "metric"}) columns_.push_back(table_.column(name, path));
    epsilon_ = table_.column("epsilon", path);
    sample_ = table_.column("sample", path);
    target_ = table_.column("target", path);
    value_ = table_.column("value", path);
  }

  std::map<std::int64_t, Entry> entries_of(const Json& row) const {
    std::map<std::int64_t, Entry> found;
    for (std::size_t i = 0; i < table_.rows.size(); ++i) {
      const std::vector<std::string>& line = table_.rows[i];
      if (!belongs(line, row)) continue;
      Entry& entry = found[integer(i, sample_)];
      entry.target = integer(i, target_);
      if (line[value_].empty()) continue;
      entry.value = parse_number<double>(line[value_]);
      if (!entry.value) not_a_number(i, value_);
    }
    return found;
  }

 private:
  bool belongs(const std::vector<std::string>& line, const Json& row) const {
    const char* const names[] = {"dataset", "model", "explainer", "attack", "metric"};
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (line[columns_[i]] != row.at(names[i]).get<std::string>()) return false;
    }
    return line[epsilon_] == fmt::format("{}", row.at("threat").at("epsilon").get<double>());
  }
  std::int64_t integer(std::size_t row, std::size_t column) const {
    const std::optional<std::int64_t> number = parse_number<std::int64_t>(table_.rows[row][column]);
    if (!number) not_a_number(row, column);
    return *number;
  }
  [[noreturn]] void not_a_number(std::size_t row, std::size_t column) const {
    input_error("{}:{}: column {}: '{}' is not a number", path_, table_.lines[row], table_.names[column],
                table_.rows[row][column]);
  }

  const std::string path_;
  CsvTable table_;
  std::vector<std::size_t> columns_;
  std::size_t epsilon_ = 0, sample_ = 0, target_ = 0, value_ = 0;
};

const Json& entry_called(const Json& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Json& entry) { return entry.at("name") == name; });
  if (found == list.end()) input_error("the run's files do not describe '{}'", name);
  return *found;
}

// A model that the audit trained lies in the run folder; the others where they lay when it ran.
std::shared_ptr<const Model> model_of(const std::string& folder, const Json& model, const at::Tensor& inputs, at::Device device) {
  const std::string text = model.at("model"),
                    own = folder + "/models/" + model.at("name").get<std::string>() + "/model.safetensors";
  const ModelOptions reading{.output_kind = parse_output_kind(model.value("output_kind", "auto")),
                             .output_name = model.value("output_name", ""),
                             .embedding = model.value("embedding", "")};
  const GivenInputs given =
      model.contains("inputs") ? given_inputs_from_json(model.at("inputs"), folder + "/results.json") : GivenInputs{};
  PackedModel loaded =
      load_packed_model(file_exists(own) ? parse_method_call(text).name + ":" + own : text, device, reading, given);
  return with_logits(std::move(loaded.model), parse_output_kind(model.value("output", "logits")), inputs);
}

// How a value of a row's threat is written behind its flag.
std::string as_flag(const Json& value) {
  if (value.is_string()) return value;
  if (!value.is_array()) return value.dump();
  std::vector<std::string> parts;
  for (const Json& one : value) parts.push_back(one.dump());
  return fmt::format("{}", fmt::join(parts, ","));
}

class RunVerifier {
 public:
  RunVerifier(std::string folder, at::Device device)
      : folder_(std::move(folder)),
        device_(device),
        manifest_(read_json(folder_ + "/manifest.json")),
        results_(read_json(folder_ + "/results.json")),
        table_(folder_ + "/samples.csv") {
    found_.files = std::ssize(manifest_.at("digests"));
    for (const auto& [path, digest] : manifest_.at("identity").at("files").items()) check_file(path, digest);
  }

  RunVerification run() {
    for (const Json& row : results_.at("rows")) check_row(row);
    return found_;
  }

 private:
  void check_file(const std::string& path, const std::string& digest) {
    if (!file_exists(path)) return;  // another machine; what it was is on record
    if (sha256_of_file(path) != digest) input_error("{} is not the file that the run read", path);
    ++found_.files;
  }

  void check_row(const Json& row) {
    const std::string arrays = folder_ + "/" + row.at("arrays").get<std::string>();
    const Json described = read_json(arrays + "/samples.json");
    if (described.empty()) return;
    const std::string name =
        fmt::format("{}, {}, {}, {}", row.at("model").get<std::string>(), row.at("explainer").get<std::string>(),
                    row.at("attack").get<std::string>(), row.at("metric").get<std::string>());
    std::vector<std::int64_t> ids, targets;
    const auto entries = table_.entries_of(row);
    for (const Json& sample : described) {
      ids.push_back(sample.at("sample"));
      const auto entry = entries.find(ids.back());
      if (entry == entries.end()) input_error("{}/samples.csv: {}: sample {} is missing", folder_, name, ids.back());
      targets.push_back(entry->second.target);
    }
    check_table(row, described, name, entries);
    const Json& data = entry_called(manifest_.at("datasets"), row.at("dataset"));
    const Json& described_model = entry_called(results_.at("models"), row.at("model"));
    if (described_model.value("in_python", false)) {
      found_.skipped.push_back(fmt::format("{}: the model has no file; it was given in Python", name));
      return;
    }
    const auto explainer = explainers().make(row.at("explainer").get<std::string>());
    Samples samples{.inputs = read_inputs(arrays + "/inputs.npy"),
                    .targets = at::tensor(targets, at::kLong),
                    .ids = at::tensor(ids, at::kLong),
                    .schema = share_schema(schema_from_json(data.at("schema"), folder_ + "/manifest.json"))};
    const at::Tensor perturbed = read_inputs(arrays + "/perturbed.npy");
    const auto model = model_of(folder_, described_model, samples.inputs, device_);
    ExplainTask task{.model = *model, .samples = samples, .seed = manifest_.at("seed").get<std::uint64_t>()};
    try {
      explainer->check_task(task);
    } catch (const Error& error) {  // it needs rows of the data, which a run does not keep
      found_.skipped.push_back(fmt::format("{}: {}", name, error.what()));
      return;
    }
    check_threat(row, name, *model, samples, perturbed);
    const ExplainedBatch before = explain_all(*explainer, task, {.threads = 1});
    task.samples = samples.moved_to(perturbed);
    const ExplainedBatch after = explain_all(*explainer, task, {.threads = 1});
    check_values(row, described, name, before, after);
    ++found_.rows;
  }

  // The numbers of the row are those of its samples.
  void check_table(const Json& row, const Json& described, const std::string& name,
                   const std::map<std::int64_t, SampleTable::Entry>& entries) const {
    const auto differ = [](double first, double second) { return !(std::abs(first - second) <= 1e-9 * (1 + std::abs(first))); };
    double sum = 0;
    std::int64_t count = 0;
    for (const auto& [sample, entry] : entries) {
      sum += entry.value.value_or(0);
      count += entry.value ? 1 : 0;
    }
    const Json& mean = row.at("mean");
    if (mean.is_number() ? count == 0 || differ(sum / static_cast<double>(count), mean.get<double>()) : count > 0) {
      input_error("{}: {}: the mean is {}, its samples' in samples.csv is {}", folder_, name, mean.dump(),
                  count > 0 ? fmt::format("{}", sum / static_cast<double>(count)) : "none");
    }
    for (const Json& sample : described) {
      const std::int64_t id = sample.at("sample");
      const std::optional<double>& value = entries.at(id).value;
      if (sample.at("value").is_number() && (!value || differ(*value, sample.at("value").get<double>())))
        input_error("{}: {}: sample {} has another value in samples.csv", folder_, name, id);
    }
  }

  // Ball, box, frozen features, valid rows, signs, tolerance and class: all that the threat model asks for.
  void check_threat(const Json& row, const std::string& name, const Model& model, const Samples& samples,
                    const at::Tensor& perturbed) const {
    const Json& asked = row.at("threat");
    Threat threat;
    for_each_option([&](const char* option, auto, const char*) {
      if (asked.contains(option) && !asked.at(option).is_null()) set_option(threat, option, as_flag(asked.at(option)), option);
    });
    threat.negative_weights = samples.layout().kind == Layout::Kind::kGraph && !asked.value("non_negative", false);
    const Samples there = samples.to(at::TensorOptions().device(model.device()).dtype(model.dtype()));
    try {
      attack::verify(model, ThreatModel::make(threat, *samples.schema), there.inputs, perturbed.to(there.inputs.options()),
                     samples.ids, name);
    } catch (const Error& error) {  // for an attack it would be a bug; here it is the folder
      const std::string what = error.what();
      input_error("{}: {}", folder_, what.substr(0, what.find("; this is a bug")));
    }
  }

  void check_values(const Json& row, const Json& described, const std::string& name, const ExplainedBatch& before,
                    const ExplainedBatch& after) {
    const auto metric = metrics().make(row.at("metric").get<std::string>());
    const Schema schema = schema_from_json(entry_called(manifest_.at("datasets"), row.at("dataset")).at("schema"), folder_);
    const MapBatch clean = fold_maps(before.maps, schema), moved = fold_maps(after.maps, schema);
    const at::Tensor predicted = predicted_class(before.logits);
    for (std::int64_t i = 0; i < clean.count; ++i) {
      const Json& sample = described.at(static_cast<std::size_t>(i));
      const auto fail = [&](const std::string& what) {
        input_error("{}: {}: sample {} {}", folder_, name, sample.at("sample").get<std::int64_t>(), what);
      };
      if (predicted[i].item<std::int64_t>() != sample.at("prediction").get<std::int64_t>())
        fail("is predicted as another class than the run says");
      if (!sample.at("value").is_number()) continue;
      const double stored = sample.at("value"), value = metric->compare(clean[i], moved[i]);
      if (!(std::abs(stored - value) <= kValueTolerance)) fail(fmt::format("has the value {}, the run says {}", value, stored));
      found_.largest_difference = std::max(found_.largest_difference, std::abs(stored - value));
      ++found_.samples;
    }
  }

  const std::string folder_;
  const at::Device device_;
  const Json manifest_, results_;
  const SampleTable table_;
  RunVerification found_;
};

}  // namespace

RunVerification verify_run(const std::string& folder, at::Device device) {
  if (!run_is_unchanged(folder)) input_error("{}: there is no finished run in this folder", folder);
  if (read_json(folder + "/manifest.json").value("kind", "") != "audit")
    input_error("{}: only runs of `holdfast audit` can be verified", folder);
  return RunVerifier(folder, device).run();
}

}  // namespace holdfast::experiment

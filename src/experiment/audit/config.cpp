#include "holdfast/experiment/audit_config.h"

#include <chrono>
#include <filesystem>

#include "holdfast/core/clock.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/printable.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/byte_images.h"
#include "holdfast/data/dataset.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/measure/measure.h"
#include "holdfast/train/train_config.h"
#include "holdfast/version.h"

namespace holdfast::experiment {
namespace {

// Calls of one kind, each checked: "audit.toml:3: attacks: unknown attack 'err' (did you mean 'er'?)".
template <class Product>
std::vector<std::string> calls(const ConfigTable& table, const std::string& key, const std::vector<std::string>& fallback,
                               const Registry<Product>& registry, bool may_be_none = false) {
  std::vector<std::string> result = table.texts(key, fallback);
  if (result.empty() && !may_be_none) usage_error("{}: names no {}", table.where(key), registry.kind());
  for (const std::string& call : result) {
    try {
      (void)registry.make(call);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", table.where(key), error.what()));
    }
  }
  return result;
}

Trial read_trial(const ConfigTable& table, const Trial& fallback) {
  Trial trial = fallback;
  trial.explainers = calls(table, "explainers", fallback.explainers, explainers());
  trial.attacks = calls(table, "attacks", fallback.attacks, attacks());
  trial.metrics = calls(table, "metrics", fallback.metrics, metrics());
  trial.measures = calls(table, "measures", fallback.measures, measures(), /*may_be_none=*/true);
  trial.select = parse_select(table.text("select", to_string(fallback.select), one_of({"worst", "last"})));
  trial.precision = parse_precision(table.text("precision", to_string(fallback.precision), one_of(precision_names())));
  trial.threat = read_threat(table.table("threat"), fallback.threat);
  return trial;
}

AuditConfig::DatasetEntry read_dataset(const ConfigTable& table, const Trial& shared, std::int64_t samples) {
  AuditConfig::DatasetEntry entry;
  entry.call = table.text("name", std::nullopt);
  try {
    entry.call = datasets().options(entry.call).canonical();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", table.where("name"), error.what()));
  }
  entry.label = table.text("label", parse_method_call(entry.call).name);
  entry.part = table.text("part", entry.part, one_of({"test", "validation", "train", "all"}));
  entry.seed = static_cast<std::uint64_t>(table.integer("seed", 0, at_least(0)));
  entry.fold = table.integer("fold", 0, between(0, 4));
  entry.samples = table.integer("samples", samples, at_least(1));
  entry.trial = read_trial(table, shared);
  return entry;
}

std::size_t find_dataset(const ConfigTable& table, const std::vector<AuditConfig::DatasetEntry>& entries) {
  if (!table.has("dataset") && entries.size() == 1) return 0;
  const std::string label = table.text("dataset", std::nullopt);
  std::vector<std::string> known;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].label == label) return i;
    known.push_back(entries[i].label);
  }
  usage_error("{}: no [[dataset]] is called '{}'{}", table.where("dataset"), label, suggestion(label, known));
}

// Relative paths in a configuration refer to its own folder.
std::string resolve_model_path(const std::string& file, const std::string& folder) {
  const std::size_t colon = file.find(':');
  const std::string path = colon == std::string::npos ? file : file.substr(colon + 1);
  if (path == "pretrained" || std::filesystem::path(path).is_absolute()) return file;
  return file.substr(0, colon == std::string::npos ? 0 : colon + 1) +
         (std::filesystem::path(folder) / path).lexically_normal().string();
}

AuditConfig::ModelEntry read_model(const ConfigTable& table, const AuditConfig& config, const std::string& folder) {
  // Which key is missing depends on which are there: a misspelt one is said first.
  table.only(
      {"name", "dataset", "file", "architecture", "activation", "seed", "train", "early_stopping", "output_kind", "output_name"});
  AuditConfig::ModelEntry entry;
  entry.name = table.text("name", std::nullopt);
  for (const AuditConfig::ModelEntry& other : config.models) {
    if (other.name == entry.name) usage_error("{}: two models are called '{}'", table.where("name"), entry.name);
  }
  if (entry.name.empty() || entry.name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos || entry.name[0] == '.') {
    usage_error("{}: '{}' cannot name a folder", table.where("name"), printable(entry.name));
  }
  entry.dataset = find_dataset(table, config.datasets);
  entry.training.seed = config.seed;
  if (table.has("file")) {
    if (table.has("architecture"))
      usage_error("{}: a model has a file or an architecture to train, not both", table.where("architecture"));
    entry.file = resolve_model_path(table.text("file", std::nullopt), folder);
    entry.reading.output_kind = parse_output_kind(table.text("output_kind", "auto", one_of(output_kinds())));
    entry.reading.output_name = table.text("output_name", "");
  } else {
    read_model_and_training(table, table, entry.training);
    entry.training.seed = static_cast<std::uint64_t>(table.integer("seed", static_cast<std::int64_t>(config.seed), at_least(0)));
  }
  return entry;
}

AuditData make_data(const AuditConfig::DatasetEntry& entry, const Dataset& dataset) {
  std::vector<std::int64_t> rows = dataset.rows(entry.part);
  if (rows.empty()) input_error("dataset {} has no {} samples", entry.label, entry.part);
  const std::size_t available = rows.size();
  rows.resize(std::min<std::size_t>(rows.size(), static_cast<std::size_t>(entry.samples)));
  AuditData data{.name = entry.label, .samples = samples_of(dataset, rows), .trial = entry.trial, .notes = dataset.notes};
  data.notes.push_back(fmt::format("{}: the first {} of {} {} samples", dataset.name, rows.size(), available, entry.part));
  exclude_non_finite(data);
  warn_of_byte_images(data.samples.inputs, dataset.schema, entry.label);
  check_samples(data.name, data.samples, data.trial);
  return data;
}

// Refuses before the training what the trial cannot do with the trained network, whose operations are those of a fresh one.
void check_before_training(const AuditConfig::ModelEntry& entry, const Dataset& dataset, const AuditData& data,
                           std::uint64_t seed) {
  const TrainOptions options = resolved(dataset, entry.training);
  const auto architecture = architectures().make(options.architecture);
  const Subject subject{data.name, entry.name, make_model(architecture->build(options.seed), architecture->layout()),
                        data.samples};
  (void)make_cells(subject, data.trial, seed);
  (void)make_measure_cells(subject, data.trial, seed);
}

AuditModel train_model(const AuditConfig::ModelEntry& entry, const Dataset& dataset, const std::string& folder,
                       const TileOptions& tiles, at::Device device, Communicator* ranks) {
  TrainOptions options = entry.training;
  options.folder = folder + "/models/" + entry.name;
  options.device = device;
  options.threads = tiles.threads;
  log_info("training {}", entry.name);
  const TrainResult result = train_network(dataset, options);
  const std::string weights = options.folder + "/model.safetensors";
  save_network(weights, result.network, result.architecture);
  AuditModel model{.name = entry.name, .data = entry.dataset};
  model.facts = {{"model", result.architecture},
                 {"recipe", result.options.recipe},
                 {"epochs", result.history.size()},
                 {"parameters", result.network.parameter_count()}};
  const std::string file = parse_method_call(result.architecture).name + ":" + weights;
  model.model = load_model(file, device);
  if (ranks != nullptr) ranks->publish("trained/" + entry.name, file);
  return model;
}

// The model that rank 0 has trained; its facts are written by rank 0 alone.
AuditModel trained_elsewhere(const AuditConfig::ModelEntry& entry, Communicator& ranks, at::Device device) {
  return {.name = entry.name, .data = entry.dataset, .model = load_model(ranks.read("trained/" + entry.name), device)};
}

AuditModel load_audit_model(const AuditConfig::ModelEntry& entry, const at::Tensor& inputs, at::Device device) {
  AuditModel model{.name = entry.name,
                   .data = entry.dataset,
                   .model = with_logits(load_model(entry.file, device, entry.reading), entry.reading.output_kind, inputs)};
  model.facts = model_facts(entry.file, *model.model, entry.reading);
  return model;
}

// What makes a run of this configuration this run (run_folder.h): the resolved configuration, the content of its data and model
// files, and the conditions it runs under.
Json identity_of(const AuditConfig& config, const std::vector<Dataset>& datasets, const TileOptions& tiles, at::Device device) {
  std::vector<std::string> files;
  for (const AuditConfig::ModelEntry& model : config.models) files.push_back(model_file(model.file));
  Json json{{"config", config.resolved}};
  json["config"].erase("gates");  // they change no result: other gates may be held against a finished run
  json["data"] = Json::object();
  for (std::size_t i = 0; i < datasets.size(); ++i) json["data"][config.datasets[i].label] = datasets[i].digest;
  json.update(run_conditions(tiles.size, device, files));
  return json;
}

}  // namespace

AuditConfig read_audit_config(const Config& config) {
  AuditConfig result;
  const ConfigTable root = config.root();
  result.title = root.text("title", "audit");
  result.seed = static_cast<std::uint64_t>(root.integer("seed", 0, at_least(0)));
  result.worst = root.integer("worst", 4, at_least(0));
  const std::int64_t samples = root.integer("samples", 100, at_least(1));
  const Trial shared = read_trial(root, {});
  for (const ConfigTable& table : root.tables("dataset")) {
    AuditConfig::DatasetEntry entry = read_dataset(table, shared, samples);
    for (const AuditConfig::DatasetEntry& other : result.datasets) {
      if (other.label == entry.label)
        usage_error("{}: two datasets are called '{}'; give one a label", table.where("name"), entry.label);
    }
    result.datasets.push_back(std::move(entry));
  }
  if (result.datasets.empty()) usage_error("{}: there is no [[dataset]]", root.where("dataset"));
  for (const ConfigTable& table : root.tables("model")) result.models.push_back(read_model(table, result, config.folder()));
  if (result.models.empty()) usage_error("{}: there is no [[model]]", root.where("model"));
  add_gates(result, root.texts("gates", std::vector<std::string>{}), /*compared=*/true);  // the command line knows
  config.finish();
  result.resolved = config.resolved();
  return result;
}

void add_gates(AuditConfig& config, const std::vector<std::string>& gates, bool compared) {
  for (Gate& gate : parse_gates(gates)) config.gates.push_back(std::move(gate));
  std::vector<Trial> trials;
  for (const AuditConfig::DatasetEntry& entry : config.datasets) trials.push_back(entry.trial);
  check_gates_answered(config.gates, trials, compared);
}

std::vector<Dataset> load_datasets(const AuditConfig& config) {
  std::vector<Dataset> datasets;
  for (const AuditConfig::DatasetEntry& entry : config.datasets)
    datasets.push_back(load_dataset(entry.call, {.seed = entry.seed, .fold = entry.fold}));
  return datasets;
}

AuditRequest request_of(const AuditConfig& config, const std::string& folder, const TileOptions& tiles, at::Device device,
                        Communicator* ranks) {
  check_writable_folder(folder);
  const auto datasets = std::make_shared<const std::vector<Dataset>>(load_datasets(config));
  return {.identity = identity_of(config, *datasets, tiles, device),
          .gates = config.gates,
          .prepare = [=] { return prepare_audit(config, *datasets, folder, tiles, device, ranks); },
          .ranks = ranks};
}

AuditPlan prepare_audit(const AuditConfig& config, const std::vector<Dataset>& datasets, const std::string& folder,
                        const TileOptions& tiles, at::Device device, Communicator* ranks) {
  AuditPlan plan{.title = config.title, .seed = config.seed, .tiles = tiles, .worst = config.worst};
  for (std::size_t i = 0; i < datasets.size(); ++i) plan.data.push_back(make_data(config.datasets[i], datasets[i]));
  for (const AuditConfig::ModelEntry& entry : config.models) {
    if (entry.file.empty()) check_before_training(entry, datasets[entry.dataset], plan.data[entry.dataset], config.seed);
  }
  for (const AuditConfig::ModelEntry& entry : config.models) {
    const auto start = std::chrono::steady_clock::now();
    if (!entry.file.empty()) {
      plan.models.push_back(load_audit_model(entry, plan.data[entry.dataset].samples.inputs, device));
    } else if (!leads(ranks)) {
      plan.models.push_back(trained_elsewhere(entry, *ranks, device));
    } else {
      plan.models.push_back(train_model(entry, datasets[entry.dataset], folder, tiles, device, ranks));
    }
    plan.stages.emplace_back((entry.file.empty() ? "train " : "load ") + entry.name, seconds_since(start));
  }
  return plan;
}

}  // namespace holdfast::experiment

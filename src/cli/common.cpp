#include "common.h"

#include "given_inputs.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <type_traits>

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/ranges.h>
#include <torch/cuda.h>

#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/rank_place.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/tensor_memory.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/byte_images.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/model/outputs.h"

namespace holdfast::cli {
namespace {

// CLI11's own prints the largest double in full.
const CLI::Validator kCount(
    [](std::string& text) {
      std::int64_t value = 0;
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
      const bool whole = status == std::errc() && end == text.data() + text.size();
      return whole && value >= 0 ? std::string() : fmt::format("'{}' is not a whole number >= 0", text);
    },
    "");

// negative_weights -> --negative-weights
std::string flag_of(std::string option) {
  std::replace(option.begin(), option.end(), '_', '-');
  return "--" + option;
}

}  // namespace

void CommonFlags::add_to(CLI::App& command) {
  command.add_option("--seed", seed, "Seed of every random number")->check(kCount)->capture_default_str();
  command.add_option("--device", device, "cpu, cuda or cuda:N")->capture_default_str();
  command.add_option("--threads", threads, "Tiles (groups of samples) computed side by side; 0: one for each core")
      ->check(kCount)
      ->capture_default_str();
  command.add_option("--tile", tile, "Samples in a tile; 0: chosen by the size of a sample")
      ->check(kCount)
      ->capture_default_str();
  command.add_option("--memory", memory, "Limit of the memory for arrays, such as 4G; default: 80 % of what is free");
  command.add_flag("--quiet", quiet, "Only warnings and errors, no progress");
}

void CommonFlags::apply(const std::string& scratch) {
  if (quiet) set_log_level(std::max(log_level(), LogLevel::kWarning));
  // Ranks on one machine share its cores and its memory.
  const RankPlace place = rank_place();
  if (place.is_one_of_many() && threads == 0)
    threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / place.local_size);
  const double share = 0.8 / place.local_size;  // of what is free, when nothing is said
  limit_tensor_memory(memory.empty() ? static_cast<std::int64_t>(share * static_cast<double>(available_memory()))
                                     : parse_memory(memory, "--memory"));
  if (scratch.empty()) return;
  check_writable_folder(scratch);
  scratch_.emplace(scratch);
  set_scratch_folder(scratch);
}

at::Device CommonFlags::torch_device() const {
  if (device == "cpu") return at::kCPU;
  const int gpus = at::hasCUDA() ? static_cast<int>(torch::cuda::device_count()) : 0;
  const int gpu = gpu_of(device, rank_place(), gpus);
  // TF32 keeps 10 bits of each factor: too few for margins of 1e-4, and for rankings.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  const at::Device chosen(at::kCUDA, static_cast<at::DeviceIndex>(gpu));
  c10::impl::getDeviceGuardImpl(at::kCUDA)->setDevice(chosen);
  return chosen;
}

void SubjectFlags::add_to(CLI::App& command, bool required) {
  command
      .add_option("--model", model, "File (.pt2, TorchScript, ONNX), ARCHITECTURE:weights.safetensors or ARCHITECTURE:pretrained")
      ->required(required);
  command.add_option("--output-kind", output_kind, "What the model returns; auto: recognised from its outputs (docs/models.md)")
      ->check(CLI::IsMember(output_kinds()))
      ->capture_default_str();
  command.add_option("--output-name", output_name,
                     "The output that counts, if the model has several; default: logits, else the first");
  command.add_option("--embedding", embedding, "The embedding that reads the token ids; needed if several do");
  command
      .add_option("--inputs", all_inputs,
                  "Samples, .npy [B, ...]; token ids are whole numbers [B, tokens]. Several inputs: repeat with NAME=FILE.npy")
      ->allow_extra_args(false)
      ->expected(1, 1000)
      ->each([this](const std::string& text) {
        if (inputs.empty()) inputs = file_of_input(text);
      })
      ->required(required);
  command.add_option("--targets", targets, "Classes to explain, .npy [B]; default: the predicted ones");
  command.add_option("--schema", schema,
                     "JSON: layout, features (names, ranges, frozen), one-hot groups of the inputs; docs/data.md");
  command.add_option("--baseline", baseline, "Reference input of explainers with baseline=given, .npy of a sample's shape");
  command.add_option("--background", background,
                     "Rows of the data, .npy [N, ...]; needed by baseline=mean, gradient_shap, remove=mean and remove=resample");
}

std::vector<std::string> SubjectFlags::files() const {
  std::vector<std::string> files{model_file(model), targets, labels, schema, baseline, background};
  for (const std::string& text : all_inputs) files.push_back(file_of_input(text));
  return files;
}

Subject load_subject(const SubjectFlags& flags, at::Device device, bool allow_non_finite) {
  ReadInputs read;
  if (needs_packing(flags)) read = read_given_inputs(flags, allow_non_finite);
  PackedModel loaded = load_packed_model(flags.model, device, flags.reading(), read.given);
  Samples samples;
  if (loaded.packing) {
    if (!flags.baseline.empty() || !flags.background.empty())
      usage_error("--{} is not taken beside token ids or several inputs", flags.baseline.empty() ? "background" : "baseline");
    samples.inputs = loaded.packing->pack(loaded.packing->in_order(read.given, read.values));
    samples.schema = share_schema(packed_schema(flags, loaded.packing->layout()));
  } else {
    samples.inputs = read_inputs(flags.inputs, {.allow_non_finite = allow_non_finite});
    if (samples.inputs.dim() < 2)
      input_error("{}: has shape {}; samples [B, ...] are expected", flags.inputs, to_string(samples.inputs.sizes().vec()));
    check_sample_shape(*loaded.model, samples.inputs, flags.inputs);
  }
  const std::shared_ptr<const Model> model = with_logits(std::move(loaded.model), flags.reading().output_kind, samples.inputs);
  const std::int64_t classes = first_logits(*model, samples.inputs).size(0);
  if (!loaded.packing) {
    const auto given = flags.schema.empty() ? nullptr : share_schema(read_schema(flags.schema));
    samples.schema = schema_of(given, "the schema " + flags.schema, model.get(), samples.inputs, flags.inputs);
  }
  warn_of_byte_images(samples.inputs, *samples.schema, flags.inputs);
  if (!flags.targets.empty()) samples.targets = read_labels(flags.targets, samples.count(), classes);
  if (!flags.labels.empty() && model->output_kind() == OutputKind::kValue)
    usage_error("{}: labels are classes, and {} gives a value", flags.labels, flags.model);
  if (!flags.labels.empty()) samples.labels = read_labels(flags.labels, samples.count(), classes);
  samples.ids = at::arange(samples.count(), at::kLong);
  if (!flags.baseline.empty()) samples.baseline = baseline_sample(read_inputs(flags.baseline), samples.inputs, flags.baseline);
  if (!flags.background.empty()) {
    samples.background = read_inputs(flags.background);
    check_background(samples.background, samples.inputs, flags.background);
  }
  return {flags.inputs, flags.model, model, std::move(samples)};
}

void AttackFlags::add_to(CLI::App& command, bool required, bool repeated) {
  repeated_ = repeated;
  const auto calls = [&](const std::string& flag, std::vector<std::string>& values, const std::string& help) {
    // One value a flag: CLI11 would take everything that follows, positionals too.
    command.add_option(flag, values, repeated ? help + "; may be repeated" : help)
        ->allow_extra_args(false)
        ->expected(1, repeated ? 1000 : 1)
        ->capture_default_str();
  };
  calls("--explainer", explainers, "Explanation to attack (holdfast list explainers)");
  calls("--attack", attacks, "Attack; gauntlet is the strongest (holdfast list attacks)");
  calls("--metric", metrics, "Similarity of explanations that the attack lowers (holdfast list metrics)");
  for_each_option([&]<class Value>(const char* name, Value Threat::*member, const char* help) {
    const std::string flag = flag_of(name);
    if constexpr (std::is_same_v<Value, bool>) {
      command.add_flag(flag, threat_flags_[name], help);
    } else {
      CLI::Option* option = command.add_option(flag, threat_[name], help);
      threat_options_[name] = option;
      if (flag == "--epsilon") option->required(required);
      if constexpr (std::is_enum_v<Value>) option->default_str(to_string(Threat{}.*member));
    }
  });
  command
      .add_option("--select", select,
                  "Which point an attack returns: worst: where the metric is worst; last: the last one before the class changed")
      ->check(CLI::IsMember({"worst", "last"}))
      ->capture_default_str();
  command
      .add_option(
          "--precision", precision,
          "GPUs: how precisely an attack's directions are computed; points are judged and verified in float32 (docs/building.md)")
      ->check(CLI::IsMember(precision_names()))
      ->capture_default_str();
}

Trial AttackFlags::trial() const {
  Trial trial{.explainers = explainers,
              .attacks = attacks,
              .metrics = metrics,
              .select = parse_select(select),
              .precision = parse_precision(precision)};
  for (const auto& [name, text] : threat_) {
    if (threat_options_.at(name)->count() > 0) set_option(trial.threat, name, text, flag_of(name));
  }
  for (const auto& [name, given] : threat_flags_) set_option(trial.threat, name, given ? "true" : "false", flag_of(name));
  if (!repeated_) {
    for (std::vector<std::string>* calls : {&trial.explainers, &trial.attacks, &trial.metrics})
      calls->erase(calls->begin(), calls->end() - 1);
  }
  check_calls(trial);
  return trial;
}

Json identity_of(const SubjectFlags& subject, const Trial& trial, const CommonFlags& common, const Json& more) {
  Json config{{"model", subject.model},          {"inputs", subject.inputs}, {"targets", subject.targets},
              {"labels", subject.labels},        {"schema", subject.schema}, {"baseline", subject.baseline},
              {"background", subject.background}};
  config.update(to_json(trial));
  config["seed"] = common.seed;
  if (subject.output_kind != "auto") config["output_kind"] = subject.output_kind;
  if (!subject.embedding.empty()) config["embedding"] = subject.embedding;
  if (subject.all_inputs.size() > 1) config["inputs"] = subject.all_inputs;
  if (!subject.output_name.empty()) config["output_name"] = subject.output_name;
  config.update(more);
  Json identity{{"config", config}};
  identity.update(run_conditions(common.tile, common.torch_device(), subject.files()));
  return identity;
}

std::vector<std::string> study_flags() {
  std::vector<std::string> flags{"--model",      "--inputs",      "--targets",     "--schema",    "--baseline",
                                 "--background", "--output-kind", "--output-name", "--embedding", "--labels",
                                 "--explainer",  "--attack",      "--metric",      "--select",    "--precision"};
  for_each_option([&](const char* name, auto, const char*) { flags.push_back(flag_of(name)); });
  return flags;
}

namespace {

bool is_device_or_pipe(const std::string& path) {
  return std::filesystem::exists(path) && !std::filesystem::is_regular_file(path) && !std::filesystem::is_directory(path);
}

}  // namespace

std::string scratch_beside(const std::string& path) {
  if (path.empty() || is_device_or_pipe(path)) return "";
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

NewFolders prepare_output_file(const std::string& path, const std::vector<std::string>& endings) {
  if (path.empty()) usage_error("--out is empty; name the file to write");
  if (std::filesystem::is_directory(path)) usage_error("--out {}: is a folder; name the file to write", path);
  const auto ends = [&](const std::string& ending) { return path.ends_with(ending); };
  if (!endings.empty() && std::none_of(endings.begin(), endings.end(), ends))
    usage_error("--out {}: the name must end in {}", path, fmt::join(endings, " or "));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!is_device_or_pipe(path)) check_writable_folder(folder);
  return NewFolders(folder);
}

std::size_t terminal_columns() {
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) return std::strtoul(columns, nullptr, 10);
  winsize size{};
  return ::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& summary, const std::string& example) {
  // Shown first by the program's formatter (main.cpp).
  return app.add_subcommand(name, summary)->footer(example);
}

}  // namespace holdfast::cli

#include "common.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include <fmt/ranges.h>

#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/number.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/byte_images.h"
#include "holdfast/model/outputs.h"

namespace holdfast::cli {
namespace {

std::string sample_shape_text(const at::Tensor& inputs) {
  return to_string(inputs.sizes().slice(1).vec());
}

// From --schema, else what the model knows, else what the shape says.
Schema schema_for(const SubjectFlags& flags, const Model& model, const at::Tensor& inputs) {
  const std::vector<std::int64_t> shape = inputs.sizes().slice(1).vec();
  Schema schema;
  if (!flags.schema.empty()) {
    schema = read_schema(flags.schema);
  } else if (const std::optional<Layout> layout = model.layout(); layout && layout->sample_shape() == shape) {
    schema = Schema::of(*layout);
  } else {
    schema = Schema::of(Layout::guess(shape));
  }
  if (schema.layout.sample_shape() != shape) {
    input_error("{}: samples have shape {}, but the schema {} describes {}", flags.inputs, to_string(shape), flags.schema,
                to_string(schema.layout.sample_shape()));
  }
  return schema;
}

// The number of classes, from one sample; also finds out early when the model refuses the inputs.
std::int64_t count_classes(const Model& model, const at::Tensor& inputs, const std::string& where) {
  if (const std::optional<Layout> layout = model.layout()) {
    if (layout->sample_shape() != inputs.sizes().slice(1).vec()) {
      input_error("{}: samples have shape {}, but {} takes {}", where, sample_shape_text(inputs), model.name(),
                  to_string(layout->sample_shape()));
    }
  }
  const at::NoGradGuard no_grad;
  const at::Tensor logits =
      model.logits(inputs.slice(0, 0, 1).to(at::TensorOptions().device(model.device()).dtype(model.dtype())));
  if (const std::string wrong = wrong_outputs(logits.sizes(), 1); !wrong.empty()) input_error("{} {}", model.name(), wrong);
  return logits.size(1);
}

at::Tensor read_baseline(const std::string& path, const at::Tensor& inputs) {
  at::Tensor baseline = read_inputs(path);
  if (baseline.dim() == inputs.dim() && baseline.size(0) == 1) baseline = baseline[0];  // a batch of one
  if (baseline.sizes() != inputs.sizes().slice(1)) {
    input_error("{}: has shape {}; a baseline has the shape of a sample, {}", path, to_string(baseline.sizes().vec()),
                sample_shape_text(inputs));
  }
  return baseline;
}

at::Tensor read_background(const std::string& path, const at::Tensor& inputs) {
  at::Tensor background = read_inputs(path);
  if (background.dim() != inputs.dim() || background.sizes().slice(1) != inputs.sizes().slice(1)) {
    input_error("{}: has shape {}; rows of shape {} are expected", path, to_string(background.sizes().vec()),
                sample_shape_text(inputs));
  }
  return background;
}

// CLI11's own prints the largest double in full.
const CLI::Validator kCount(
    [](std::string& text) {
      std::int64_t value = 0;
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
      const bool whole = status == std::errc() && end == text.data() + text.size();
      return whole && value >= 0 ? std::string() : fmt::format("'{}' is not a whole number >= 0", text);
    },
    "");

double parse_real(const std::string& text, const std::string& what) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    usage_error("{}: '{}' is not a number", what, text);
  return value;
}

}  // namespace

void CommonFlags::add_to(CLI::App& command) {
  command.add_option("--seed", seed, "Seed of every random number")->check(kCount)->capture_default_str();
  command.add_option("--device", device, "cpu or cuda")->capture_default_str();
  command.add_option("--threads", threads, "Tiles computed side by side; 0: one for each core")
      ->check(kCount)
      ->capture_default_str();
  command.add_option("--tile", tile, "Samples in a tile; 0: chosen by the size of a sample")
      ->check(kCount)
      ->capture_default_str();
  command.add_flag("--quiet", quiet, "Only warnings and errors, no progress");
}

void CommonFlags::apply() const {
  if (quiet) set_log_level(LogLevel::kWarning);
}

at::Device CommonFlags::torch_device() const {
  if (device == "cpu") return at::kCPU;
  if (device != "cuda") usage_error("--device {}: must be cpu or cuda", device);
  if (!at::hasCUDA()) usage_error("--device cuda: no CUDA device is available to this build of torch");
  // TF32 keeps 10 bits of each factor: too few for margins of 1e-4, and for rankings.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  return at::Device(at::kCUDA, 0);
}

void SubjectFlags::add_to(CLI::App& command, bool required) {
  command.add_option("--model", model, "TorchScript file, ARCHITECTURE:weights.safetensors or ARCHITECTURE:pretrained")
      ->required(required);
  command.add_option("--inputs", inputs, "Samples, .npy [B, ...]")->required(required);
  command.add_option("--targets", targets, "Classes to explain, .npy [B]; default: the predicted ones");
  command.add_option("--schema", schema,
                     "JSON: layout, features (names, ranges, frozen), one-hot groups of the inputs; docs/data.md");
  command.add_option("--baseline", baseline, "What explainers with baseline=given compare with, .npy of a sample's shape");
  command.add_option("--background", background,
                     "Rows of the data, .npy [N, ...]: for baseline=mean, gradient_shap, removal by mean or resampling");
}

Subject load_subject(const SubjectFlags& flags, at::Device device, bool allow_non_finite) {
  Subject subject;
  subject.inputs = read_inputs(flags.inputs, {.allow_non_finite = allow_non_finite});
  if (subject.inputs.dim() < 2) {
    input_error("{}: has shape {}; samples [B, ...] are expected", flags.inputs, to_string(subject.inputs.sizes().vec()));
  }
  subject.model = load_model(flags.model, device);
  subject.classes = count_classes(*subject.model, subject.inputs, flags.inputs);
  subject.schema = schema_for(flags, *subject.model, subject.inputs);
  warn_of_byte_images(subject.inputs, subject.schema, flags.inputs);
  if (!flags.targets.empty()) subject.targets = read_labels(flags.targets, subject.inputs.size(0), subject.classes);
  subject.ids = at::arange(subject.inputs.size(0), at::kLong);
  if (!flags.baseline.empty()) subject.baseline = read_baseline(flags.baseline, subject.inputs);
  if (!flags.background.empty()) subject.background = read_background(flags.background, subject.inputs);
  return subject;
}

void AttackFlags::add_to(CLI::App& command, bool required, bool repeated) {
  const auto calls = [&](const std::string& flag, std::vector<std::string>& values, const std::string& help) {
    // One value a flag: CLI11 would take everything that follows, positionals too.
    command.add_option(flag, values, repeated ? help + "; may be repeated" : help)
        ->allow_extra_args(false)
        ->expected(1, repeated ? 1000 : 1)
        ->capture_default_str();
  };
  calls("--explainer", explainers, "Explanation to attack");
  calls("--attack", attacks, "Attack");
  calls("--metric", metrics, "Similarity to break");
  command.add_option("--norm", norm, "Norm of the ball")->check(CLI::IsMember({"l2", "linf", "l1"}))->capture_default_str();
  command
      .add_option("--epsilon", epsilon,
                  "Radius of the ball, in the units of the inputs, as 0.5 or 8/255; several, as 0.1,0.3,1: each starts where the "
                  "one before "
                  "ended")
      ->required(required);
  command.add_option("--box", box, "Range of valid values, LO,HI");
  command.add_flag("--valid", valid, "Tables: only valid rows; ranges, steps and one-hot groups of the schema hold");
  command.add_option("--sides", sides, "Pairs: which side may be perturbed")
      ->check(CLI::IsMember({"both", "first", "second"}))
      ->capture_default_str();
  command.add_flag("--negative-weights", negative_weights, "Graphs: edges may become negative in samples without negative ones");
  command.add_option("--tolerance", tolerance, "How far the predicted class's probability may move; default: as far as it likes");
  command.add_option("--select", select, "Which iterate to keep: the worst for the defender, or the last as the papers do")
      ->check(CLI::IsMember({"worst", "last"}))
      ->capture_default_str();
}

std::vector<double> AttackFlags::parsed_epsilons() const {
  std::vector<double> epsilons;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = epsilon.find(',', begin);
    const std::string text = epsilon.substr(begin, end == std::string::npos ? end : end - begin);
    const std::optional<double> value = parse_quotient(text);
    if (!value) usage_error("--epsilon: '{}' is not a number", text);
    epsilons.push_back(*value);
    if (epsilons.size() > 1 && epsilons.back() <= epsilons[epsilons.size() - 2])
      usage_error("--epsilon {}: {} does not exceed the number before it", epsilon, epsilons.back());
  }
  return epsilons;
}

ThreatOptions AttackFlags::parsed_threat() const {
  ThreatOptions options{.valid = valid, .sides = parse_sides(sides), .negative_weights = negative_weights};
  if (!tolerance.empty()) options.tolerance = parse_real(tolerance, "--tolerance");
  return options;
}

std::optional<std::pair<double, double>> AttackFlags::parsed_box() const {
  if (box.empty()) return std::nullopt;
  const std::size_t comma = box.find(',');
  if (comma == std::string::npos) usage_error("--box {}: write LO,HI, for example 0,1", box);
  const double low = parse_real(box.substr(0, comma), "--box");
  const double high = parse_real(box.substr(comma + 1), "--box");
  if (low >= high) usage_error("--box {}: the first number must be below the second", box);
  return std::pair(low, high);
}

NewFolders prepare_output_file(const std::string& path, const std::vector<std::string>& endings) {
  if (path.empty()) usage_error("--out is empty; name the file to write");
  if (std::filesystem::is_directory(path)) usage_error("--out {}: is a folder; name the file to write", path);
  const auto ends = [&](const std::string& ending) { return path.ends_with(ending); };
  if (!endings.empty() && std::none_of(endings.begin(), endings.end(), ends))
    usage_error("--out {}: the name must end in {}", path, fmt::join(endings, " or "));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  check_writable_folder(folder);
  return NewFolders(folder);
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& summary, const std::string& example) {
  // Shown first by the program's formatter (main.cpp).
  return app.add_subcommand(name, summary)->footer(example);
}

}  // namespace holdfast::cli

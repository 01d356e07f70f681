// Makes models from text and writes networks to files.
#include <fmt/ranges.h>

#include "exported/read.h"
#include "file_kind.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/safetensors.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/model.h"
#include "holdfast/model/torchscript.h"
#include "onnx/read.h"
#include "program/load.h"

namespace holdfast::model {
namespace {

constexpr const char* kArchitectureKey = "architecture";

std::string written(const MethodCall& call) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : call.options) parts.push_back(name + "=" + value);
  return parts.empty() ? call.name : fmt::format("{}({})", call.name, fmt::join(parts, ","));
}

// What the file records, with `asked`'s options over it.
MethodCall merged(const MethodCall& asked, const std::string* recorded, const std::string& path) {
  if (recorded == nullptr) return asked;
  MethodCall call = parse_method_call(*recorded);
  if (call.name != asked.name) input_error("{} holds the weights of {}, not of {}", path, call.name, asked.name);
  for (const auto& [name, value] : asked.options) {
    std::erase_if(call.options, [&, option = name](const auto& entry) { return entry.first == option; });
    call.options.emplace_back(name, value);
  }
  return call;
}

std::vector<Parameter> parameters_of(TensorFile file) {
  std::vector<Parameter> parameters;
  for (auto& [name, array] : file.arrays) parameters.push_back({name, to_tensor(std::move(array))});
  return parameters;
}

std::unique_ptr<Model> model_of(const Architecture& architecture, const Network& network, at::Device device) {
  return make_model(network.device() == device ? network : network.to(device), architecture.layout());
}

// `asked` empty: the architecture is the one that the file records.
std::unique_ptr<Model> load_weights(const std::optional<MethodCall>& asked, const std::string& path, at::Device device) {
  TensorFile file = read_safetensors(path);
  const std::string* recorded = file.find_metadata(kArchitectureKey);
  if (!asked && recorded == nullptr) {
    usage_error(
        "{} does not record its architecture; write 'ARCHITECTURE(options):{}', such as mlp(inputs=30,hidden=64) (known: {})",
        path, path, [] {
          std::vector<std::string> names;
          for (const MethodInfo* info : architectures().infos()) names.push_back(info->name);
          return fmt::format("{}", fmt::join(names, ", "));
        }());
  }
  const MethodCall call = asked ? merged(*asked, recorded, path) : parse_method_call(*recorded);
  const auto architecture = architectures().make(written(call));
  Network network = architecture->structure();
  const bool guessed = recorded == nullptr && asked;
  network.load(
      parameters_of(std::move(file)),
      guessed ? fmt::format("{} (it records no options; give them: {}(option=value,...):{})", path, call.name, path) : path);
  return model_of(*architecture, network, device);
}

std::unique_ptr<Model> load_architecture(const MethodCall& call, const std::string& weights, at::Device device) {
  if (weights != "pretrained") {
    architectures().info(call.name);  // an unknown name is the first thing to say
    return load_weights(call, weights, device);
  }
  const auto architecture = architectures().make(written(call));
  if (!architecture->has_pretrained()) {
    input_error("{} has no published weights; give a file, {}:weights.safetensors", call.name, call.name);
  }
  return model_of(*architecture, architecture->pretrained(), device);
}

// The colon between architecture and weights: the first one outside the call's parentheses.
std::size_t colon_of(const std::string& text) {
  const std::size_t open = text.find_first_of("(:");
  if (open == std::string::npos || text[open] == ':') return open;
  const std::size_t close = text.find(')', open);
  return close == std::string::npos ? close : text.find(':', close);
}

void require_logits(const std::string& text, const ModelOptions& options) {
  if (options.output_kind != OutputKind::kAuto && options.output_kind != OutputKind::kLogits)
    usage_error("{}: an architecture gives logits, not a {}", text, output_kind_name(options.output_kind));
}

std::unique_ptr<Model> load_file(const std::string& path, at::Device device, const ModelOptions& options) {
  const Bytes bytes = read_bytes(path);
  switch (find_file_kind(bytes, path)) {
    case FileKind::kSafetensors:
      require_logits(path, options);
      return load_weights(std::nullopt, path, device);
    case FileKind::kExported:
      return load_program(exported::read_program(bytes, path), device, options);
    case FileKind::kOnnx:
      return load_program(onnx::read_program(bytes, path), device, options);
    case FileKind::kTorchScript:
      break;
  }
  return load_torchscript(path, device, options);
}

std::unique_ptr<Model> load(const std::string& text, at::Device device, const ModelOptions& options) {
  if (folder_exists(text)) {
    input_error("cannot read {}: it is a folder{}", text,
                file_exists(text + "/saved_model.pb") ? " with a TensorFlow model; convert it to ONNX (tf2onnx)" : "");
  }
  if (file_exists(text)) return load_file(text, device, options);
  const std::size_t colon = colon_of(text);
  if (colon != std::string::npos) {
    const std::string weights = text.substr(colon + 1);
    require_logits(text, options);
    if (weights.empty()) usage_error("'{}': write a file of weights or 'pretrained' after the colon", text);
    return load_architecture(parse_method_call(text.substr(0, colon)), weights, device);
  }
  const std::string name = text.substr(0, text.find('('));
  if (architectures().contains(name)) {
    usage_error("'{}' is an architecture without weights; write {}:weights.safetensors or {}:pretrained", text, text, text);
  }
  input_error("cannot read {}: no such file, and no ARCHITECTURE:weights either", text);
}

}  // namespace

void save_network(const std::string& path, const Network& network, const std::string& architecture) {
  TensorFile file;
  file.metadata = {{kArchitectureKey, architecture}};
  for (const Parameter& parameter : network.parameters()) {
    file.arrays.emplace_back(parameter.name, to_raw(parameter.tensor.detach().cpu().contiguous()));
  }
  write_safetensors(path, file);
}

std::string model_file(const std::string& text) {
  if (file_exists(text)) return text;  // its name may have a colon too
  const std::size_t colon = colon_of(text);
  const std::string file = colon == std::string::npos ? text : text.substr(colon + 1);
  return colon != std::string::npos && file == "pretrained" ? "" : file;
}

std::unique_ptr<Model> load_model(const std::string& text, at::Device device, const ModelOptions& options) {
  auto model = load(text, device, options);
  model->set_name(text);
  return model;
}

}  // namespace holdfast::model

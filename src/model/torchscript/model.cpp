// The two models a file with a graph can become.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/ranges.h>

#include "../network/describe.h"
#include "../program/load.h"
#include "holdfast/core/error.h"
#include "holdfast/core/log.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/tensor_memory.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/words.h"
#include "holdfast/model/outputs.h"
#include "holdfast/model/torchscript.h"
#include "import.h"
#include "trial.h"

namespace holdfast::model {
namespace {

using torchscript::Imported;
using torchscript::Script;

// A sample's layout when the file tells its shape and the shape what it is; pairs and the like need a schema.
std::optional<Layout> layout_of(const Script& script) {
  if (script.packing) return script.packing->layout();
  if (!script.traced_shape || script.traced_shape->size() > 3) return std::nullopt;
  const Layout layout = Layout::guess(*script.traced_shape);
  return layout.sample_shape() == *script.traced_shape ? std::optional(layout) : std::nullopt;
}

void check_inputs(const Script& script, const at::Tensor& inputs) {
  if (inputs.dim() < 2) torchscript::refused_inputs(script.path, inputs, "they are no batch of samples");
  if (inputs.scalar_type() != script.dtype) {
    torchscript::refused_inputs(script.path, inputs, fmt::format("it computes in {}", type_word(script.dtype)));
  }
}

std::string described_notes(const Script& script) {
  std::string text;
  for (const std::string& note : script.notes) text += fmt::format(" Note: {}.", note);
  return text;
}

// What it takes and gives, where a sample's shape is known, or what its outputs lack.
std::string described_ends(const Model& model, const Script& script,
                           const std::optional<std::vector<std::int64_t>>& sample_shape) {
  const std::string input = fmt::format("{}", fmt::join(torchscript::described_inputs(script), ", "));
  if (script.lacks_inputs) return fmt::format(" Inputs: {}. Give each of them: --inputs NAME=FILE.npy.", input);
  if (!script.packing && torchscript::reads_tokens(script))
    return fmt::format(" Input: {}. Tokens are explained and attacked at their embeddings.", input);
  if (!sample_shape) return fmt::format(" Input: {}, samples of a shape that the file does not tell.", input);
  std::vector<std::int64_t> shape = *sample_shape;
  shape.insert(shape.begin(), 1);
  const at::NoGradGuard no_graph;
  try {
    const at::Tensor outputs = model.logits(at::zeros(shape, at::TensorOptions(model.device()).dtype(model.dtype())));
    if (const std::string wrong = wrong_outputs(outputs.sizes(), 1, OutputKind::kAuto); !wrong.empty())
      return fmt::format(" Nothing can explain or attack it: it {}.", wrong);
    const OutputKind kind = model.output_kind() != OutputKind::kAuto ? model.output_kind()
                            : outputs.size(1) == 1                   ? OutputKind::kLogit
                                                                     : guess_output_kind(outputs, script.path);
    return fmt::format(" Input: {}, samples of shape {}. Output: {} for each sample, taken as {}; --output-kind says otherwise.",
                       input, to_string(*sample_shape), counted(outputs.size(1), "number"), output_words(kind));
  } catch (const Error& error) {  // a description says what is wrong, it does not fail
    return fmt::format(" Nothing can explain or attack it: {}.", error.what());
  }
}

// "4 linear, 2 layer_norm, lstm": operations that read weights, and attention.
std::string described_layers(const Script& script) {
  std::map<std::string, int> counts;
  torchscript::visit_nodes(script.graph()->block(), [&](torch::jit::Node* node) {
    if (!node->kind().is_aten()) return;
    const auto reads_weights = [](const torch::jit::Value* value) {
      const auto known = torch::jit::toIValue(value);
      return known && known->isTensor() && known->toTensor().is_floating_point() && known->toTensor().dim() > 0;
    };
    const std::string name = node->kind().toUnqualString();
    static const std::set<std::string> kNever{"add", "add_",   "sub",   "mul",    "mul_", "div",
                                              "t",   "expand", "slice", "select", "cat"};
    if (kNever.contains(name)) return;
    static const std::set<std::string> kAlways{"lstm",     "gru",       "rnn_tanh",
                                               "rnn_relu", "embedding", "scaled_dot_product_attention"};
    if (kAlways.contains(name) || std::any_of(node->inputs().begin(), node->inputs().end(), reads_weights)) ++counts[name];
  });
  std::string text;
  for (const auto& [name, count] : counts)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", count == 1 ? "" : fmt::format("{} ", count), name);
  return text.empty() ? "" : fmt::format(" Layers seen: {}.", text);
}

std::string described_size(const Script& script) {
  return fmt::format("{} parameters, {} on {}", script.parameters, type_word(script.dtype), device_words(script.device));
}

// A script that was read into a Network.
class ScriptedNetwork final : public Model {
 public:
  ScriptedNetwork(Script script, Imported imported) : script_(std::move(script)), imported_(std::move(imported)) {}

  at::Tensor logits(const at::Tensor& inputs) const override { return logits(inputs, Rule::exact()); }

  at::Tensor logits(const at::Tensor& inputs, const Rule& rule) const override {
    check_inputs(script_, inputs);
    if (imported_.depends_on_shape && inputs.sizes().slice(1) != at::IntArrayRef(imported_.sample_shape)) {
      torchscript::refused_inputs(script_.path, inputs,
                                  fmt::format("it was traced for samples of shape {}", to_string(imported_.sample_shape)));
    }
    try {
      return imported_.network.run(inputs, rule).logits;
    } catch (const c10::Error& error) {
      throw_if_out_of_memory(error);
      torchscript::refused_inputs(script_.path, inputs, error.what_without_backtrace());
    }
  }

  Capabilities capabilities() const override {
    return {.layers = true, .float64 = true, .scale_invariant = imported_.network.scale_invariant()};
  }
  const Network* network() const override { return &imported_.network; }
  std::optional<std::int64_t> parameter_count() const override { return script_.parameters; }
  at::Device device() const override { return script_.device; }
  at::ScalarType dtype() const override { return script_.dtype; }
  std::optional<Layout> layout() const override { return layout_of(script_); }

  OutputKind output_kind() const override { return script_.output_kind; }

  std::unique_ptr<Model> in_double() const override {
    Script script = script_;
    script.dtype = at::kDouble;
    auto copy = std::make_unique<ScriptedNetwork>(
        std::move(script), Imported{imported_.network.to(at::kDouble), imported_.sample_shape, imported_.depends_on_shape});
    copy->set_name(name());
    return copy;
  }

  std::string describe() const override {
    return fmt::format("{}: {}, read into a network of {}; {}. Checked against the file on samples of shape {}.{}", script_.path,
                       script_.kind, describe_operations(imported_.network), described_size(script_),
                       to_string(imported_.sample_shape),
                       described_ends(*this, script_, imported_.sample_shape) + described_notes(script_));
  }

 private:
  Script script_;
  Imported imported_;
};

// A script that is run as it is.
class OpaqueScript final : public Model {
 public:
  OpaqueScript(Script script, std::string reason, Capabilities capabilities)
      : script_(std::move(script)), reason_(std::move(reason)), capabilities_(capabilities) {}

  at::Tensor logits(const at::Tensor& inputs) const override {
    check_inputs(script_, inputs);
    return torchscript::run_script(script_, inputs);
  }
  using Model::logits;

  std::optional<std::int64_t> parameter_count() const override { return script_.parameters; }
  Capabilities capabilities() const override { return capabilities_; }
  at::Device device() const override { return script_.device; }
  at::ScalarType dtype() const override { return script_.dtype; }
  std::optional<Layout> layout() const override { return layout_of(script_); }

  OutputKind output_kind() const override { return script_.output_kind; }

  std::unique_ptr<Model> in_double() const override {
    if (!capabilities_.float64) return nullptr;
    auto copy = std::make_unique<OpaqueScript>(torchscript::in_double(script_), reason_, capabilities_);
    copy->set_name(name());
    return copy;
  }

  std::string describe() const override {
    std::string cannot = "no surrogates, no layer-wise explainers";
    if (!capabilities_.gradients)
      cannot += ", no gradients";
    else if (!capabilities_.double_backward)
      cannot += ", no gradients of gradients";
    if (!capabilities_.float64) cannot += ", no double precision";
    return fmt::format(
        "{}: {} that runs as it is, because {}: {}; {}.{}", script_.path, script_.kind, reason_, cannot, described_size(script_),
        described_ends(*this, script_, script_.traced_shape) + described_layers(script_) + described_notes(script_));
  }

 private:
  Script script_;
  std::string reason_;
  Capabilities capabilities_;
};

std::unique_ptr<Model> make_model(Script script) {
  const TileThread alone;  // the trials are small: threads would spend their time waiting for each other
  const std::string path = script.path;
  for (const std::string& note : script.notes) log_warning("{}: {}", path, note);
  if (script.batch && torchscript::takes_any_batch(script)) script.batch.reset();
  auto read = torchscript::import_network(script);
  std::unique_ptr<Model> model;
  if (auto* imported = std::get_if<Imported>(&read)) {
    model = std::make_unique<ScriptedNetwork>(std::move(script), std::move(*imported));
  } else {
    const Capabilities capabilities = torchscript::tried_capabilities(script);
    model = std::make_unique<OpaqueScript>(std::move(script), std::get<std::string>(std::move(read)), capabilities);
  }
  model->set_name(path);
  return model;
}

PackedModel make_packed(Script script) {
  std::optional<InputPacking> packing = script.packing;
  return {make_model(std::move(script)), std::move(packing)};
}

}  // namespace

PackedModel load_torchscript(const std::string& path, at::Device device, const ModelOptions& options, const GivenInputs& given) {
  return make_packed(torchscript::read_script(torchscript::Archive::open(path), device, options, given));
}

PackedModel load_program(program::Program program, at::Device device, const ModelOptions& options, const GivenInputs& given) {
  return make_packed(torchscript::make_script(std::move(program), device, options, given));
}

}  // namespace holdfast::model

// From a file to a Script.
#include "script.h"

#include <algorithm>
#include <filesystem>

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import_read.h>

#include "../network/describe.h"
#include "archive.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/model/outputs.h"
#include "refuse.h"

namespace holdfast::model::torchscript {
namespace {

// Torch reads the bytes that were checked, not the file, which may have become another one.
class CheckedBytes final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit CheckedBytes(const Bytes& bytes) : bytes_(bytes) {}
  std::size_t size() const override { return bytes_.size(); }
  std::size_t read(std::uint64_t begin, void* into, std::size_t count, const char*) const override {
    const std::size_t first = std::min<std::uint64_t>(begin, bytes_.size()), number = std::min(count, bytes_.size() - first);
    std::copy_n(bytes_.data() + first, number, static_cast<std::byte*>(into));
    return number;
  }

 private:
  const Bytes& bytes_;
};

torch::jit::Module load_module(const Archive& archive, at::Device device) {
  refuse_code_that_runs_at_loading(archive);
  try {
    const torch::jit::Module module = torch::jit::load(std::make_shared<CheckedBytes>(archive.bytes()), device);
    refuse_operators_that_do_not_compute(module, archive.path());
    return module;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    input_error("{} is not a TorchScript file, or is damaged: {}", archive.path(), essence(error.what()));
  }
}

// Attention masks hold infinities for good reason, so only NaN is refused in what is not trained.
void refuse_non_finite(const torch::jit::Module& module, const std::string& path) {
  for (const auto& parameter : module.named_parameters()) {
    if (parameter.value.is_floating_point() && !at::isfinite(parameter.value).all().item<bool>()) {
      input_error("{}: {} holds a number that is not finite", path, parameter.name);
    }
  }
  for (const auto& buffer : module.named_buffers()) {
    if (buffer.value.is_floating_point() && at::isnan(buffer.value).any().item<bool>())
      input_error("{}: {} holds NaN", path, buffer.name);
  }
}

// Types that say nothing, such as Any, are left to the first call.
bool never_one_tensor(const c10::Type& type) {
  if (const auto* tuple = type.castRaw<c10::TupleType>()) {
    return tuple->elements().size() != 1 || never_one_tensor(*tuple->elements()[0]);
  }
  switch (type.kind()) {
    case c10::TypeKind::DictType:
    case c10::TypeKind::ListType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::IntType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::NoneType:
      return true;
    default:
      return false;
  }
}

void refuse_other_signatures(const torch::jit::Module& module, const std::string& path) {
  const auto method = module.find_method("forward");
  if (!method) input_error("{} has no method 'forward'", path);
  const auto& arguments = method->function().getSchema().arguments();
  std::size_t needed = 0;
  for (std::size_t i = 1; i < arguments.size(); ++i) needed += arguments[i].default_value() ? 0 : 1;
  if (arguments.size() < 2 || needed > 1) {
    input_error("{} takes {} inputs; a model here takes one tensor and gives its logits", path, arguments.size() - 1);
  }
  if (arguments[1].type()->kind() != c10::TypeKind::TensorType) {
    input_error("{} takes a {}; a model here takes one tensor and gives its logits", path, arguments[1].type()->str());
  }
  const auto& results = method->function().getSchema().returns();
  if (results.size() == 1 && never_one_tensor(*results[0].type())) {
    input_error("{} gives a {}; a model here gives one tensor of logits [samples, classes]", path, results[0].type()->str());
  }
}

bool is_constantly_off(const torch::jit::Node* node, const char* flag) {
  const auto value = torch::jit::toIValue(node->namedInput(flag));
  return value && value->isBool() && !value->toBool();
}

void refuse_random(torch::jit::Graph& graph, const std::string& path) {
  visit_nodes(graph.block(), [&](torch::jit::Node* node) {
    // Torch calls the in-place dropout nondeterministic whether it is on or off.
    const bool dropout = std::string_view(node->kind().toQualString()).find("dropout") != std::string_view::npos;
    if (node->isNondeterministic() && !(dropout && is_constantly_off(node, "train"))) {
      const std::string place = place_of(node);
      input_error("{} draws random numbers in evaluation ({}{}); the same inputs must give the same logits", path,
                  node->kind().toQualString(), place.empty() ? "" : " at " + place);
    }
  });
}

// Tracing stores its example inputs, without data. The loader could restore them, but it then fixes every size in the graph.
std::optional<std::vector<std::int64_t>> traced_sample_shape(const Archive& archive) {
  if (!archive.has("traced_inputs.pkl")) return std::nullopt;
  caffe2::serialize::PyTorchStreamReader reader(std::make_shared<CheckedBytes>(archive.bytes()));
  const auto traced =
      torch::jit::readArchiveAndTensors("traced_inputs", "", "traced_inputs/", std::nullopt, std::nullopt, at::kMeta, reader)
          .toGenericDict();
  const auto found = traced.find("forward");
  if (found == traced.end() || !found->value().isList() || found->value().toListRef().size() != 1) return std::nullopt;
  const at::IValue input = found->value().toListRef()[0];
  if (!input.isTensor() || input.toTensor().dim() < 2) return std::nullopt;
  return input.toTensor().sizes().slice(1).vec();
}

// Freezing keeps as attributes only what the module itself writes to.
bool reads_attributes(torch::jit::Graph& graph) {
  bool found = false;
  visit_nodes(graph.block(), [&](torch::jit::Node* node) {
    found = found || node->kind() == torch::jit::prim::SetAttr ||
            (node->kind() == torch::jit::prim::GetAttr && node->output()->type()->kind() != c10::TypeKind::ClassType);
  });
  return found;
}

at::ScalarType first_floating_type(const torch::jit::Module& module) {
  for (const at::Tensor& parameter : module.parameters()) {
    if (parameter.is_floating_point()) return parameter.scalar_type();
  }
  for (const at::Tensor& buffer : module.buffers()) {
    if (buffer.is_floating_point()) return buffer.scalar_type();
  }
  return at::kFloat;
}

// Freezing is made for inference: it drops what only stops gradients.
bool stops_gradients(const torch::jit::Module& module) {
  const auto graph = module.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  bool found = false;
  visit_nodes(graph->block(), [&](torch::jit::Node* node) {
    found = found || std::string_view(node->kind().toQualString()).starts_with("aten::detach");
  });
  return found;
}

torch::jit::Module freeze(const torch::jit::Module& module, const std::string& path) {
  try {
    return torch::jit::freeze_module(module);
  } catch (const std::exception& error) {
    input_error("{} cannot be frozen: {}", path, essence(error.what()));
  }
}

at::Tensor as_logits(const at::IValue& result, const Script& script, const at::Tensor& inputs) {
  at::IValue value = result;
  if (value.isTuple() && value.toTupleRef().elements().size() == 1) value = value.toTupleRef().elements()[0];
  if (!value.isTensor()) {
    input_error("{} gives a {}; a model here gives one tensor of logits [samples, classes]", script.path, value.type()->str());
  }
  at::Tensor logits = value.toTensor();
  if (logits.dim() != 2 || logits.size(0) != inputs.size(0)) {
    input_error("{} {}", script.path, wrong_outputs(logits.sizes(), inputs.size(0)));
  }
  return logits;
}

}  // namespace

Script read_script(const std::string& path, at::Device device) {
  // Calls inside calls are only inlined while the executor may optimise, whatever the caller's thread is set to.
  const torch::jit::GraphOptimizerEnabledGuard inlines(true);
  const Archive archive = Archive::open(path);
  torch::jit::Module module = load_module(archive, device);
  refuse_other_signatures(module, path);
  refuse_non_finite(module, path);
  module.eval();

  const bool freezable = !stops_gradients(module);
  Script script{.path = path, .module = freezable ? freeze(module, path) : module.clone(), .source = module};
  script.traced_shape = traced_sample_shape(archive);
  for (const at::Tensor& parameter : module.parameters()) script.parameters += parameter.numel();
  script.device = device;
  script.dtype = first_floating_type(module);

  const auto graph = script.graph();
  torch::jit::Inline(*graph);
  script.notes = prepare_for_evaluation(*graph);
  torch::jit::EliminateDeadCode(graph);
  refuse_random(*graph, path);
  script.writes_to_input = torch::jit::AliasDb(graph).hasWriters(graph->inputs().at(1));
  script.keeps_state = reads_attributes(*graph);
  if (!freezable)
    script.runs_as_is = "it stops gradients with detach";
  else if (script.keeps_state)
    script.runs_as_is = "it writes to its own attributes";
  return script;
}

Script in_double(const Script& script) {
  Script copy = script;
  copy.module = script.module.clone();
  copy.module.to(at::kDouble);
  copy.dtype = at::kDouble;
  visit_nodes(copy.graph()->block(), [](torch::jit::Node* node) {
    if (node->kind() != torch::jit::prim::Constant || !node->hasAttribute(torch::jit::attr::value) ||
        node->kindOf(torch::jit::attr::value) != torch::jit::AttributeKind::t) {
      return;
    }
    const at::Tensor value = node->t(torch::jit::attr::value);
    if (!value.is_floating_point()) return;
    node->t_(torch::jit::attr::value, value.to(at::kDouble));
    node->output()->inferTypeFrom(node->t(torch::jit::attr::value));
  });
  return copy;
}

std::string place_of(const torch::jit::Node* node) {
  const auto original = node->sourceRange().findSourceRangeThatGenerated();
  const auto place = (original ? *original : node->sourceRange()).file_line_col();
  if (!place || std::get<0>(*place).empty()) return {};
  return std::filesystem::path(std::get<0>(*place)).filename().string() + ":" + std::to_string(std::get<1>(*place));
}

at::Tensor run_script(const Script& script, const at::Tensor& inputs) {
  // The profiling executor rewrites a graph after its first calls, so that bytes depend on their order.
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  at::IValue result;
  try {
    torch::jit::Module module = script.keeps_state ? script.module.deepcopy() : script.module;
    result = module.forward({script.writes_to_input ? inputs.clone() : inputs});
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    refused_inputs(script.path, inputs, error.what());
  }
  return as_logits(result, script, inputs);
}

void refused_inputs(const std::string& path, const at::Tensor& inputs, const std::string& message) {
  input_error("{} refused inputs of shape {} ({}): {}", path, to_string(inputs.sizes().vec()), type_word(inputs.scalar_type()),
              essence(message));
}

std::string essence(const std::string& message) {
  // The interpreter puts the cause last, after "<kind>Error: "; the reader puts it first.
  static const std::string kMark = "Error: ";
  std::size_t begin = message.rfind(kMark);
  const bool traceback = begin != std::string::npos && message.find("Traceback of TorchScript") != std::string::npos;
  begin = message.find_first_not_of('\n', traceback ? begin + kMark.size() : 0);
  if (begin == std::string::npos) return "";
  std::string line = message.substr(begin, message.find('\n', begin) - begin);
  // What torch adds for its own developers.
  for (const char* tail : {" This is an internal miniz error", " (no backtrace available)"})
    line = line.substr(0, line.find(tail));
  while (!line.empty() && (line.back() == '.' || line.back() == ' ')) line.pop_back();
  return line;
}

}  // namespace holdfast::model::torchscript

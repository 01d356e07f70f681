// From a file to a Script.
#include "script.h"

#include <algorithm>
#include <filesystem>

#include <fmt/ranges.h>

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import_read.h>

#include "../network/describe.h"
#include "../program/graph.h"
#include "archive.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/tensor_memory.h"
#include "holdfast/model/derivatives.h"
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
    throw_if_out_of_memory(error);
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

// Types that say nothing, such as Any, are left to the first call; so are dictionaries and tuples, of which one tensor counts.
bool never_a_tensor(const c10::Type& type) {
  switch (type.kind()) {
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
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (!arguments[i].default_value() && arguments[i].type()->kind() != c10::TypeKind::TensorType)
      input_error("{}: its input {} is a {}; inputs here are tensors", path, arguments[i].name(), arguments[i].type()->str());
  }
  if (arguments.size() < 2) input_error("{} takes no tensor; a model here takes one and gives its logits", path);
  const auto& results = method->function().getSchema().returns();
  if (results.size() == 1 && never_a_tensor(*results[0].type())) {
    input_error("{} gives a {}; a model here gives one tensor of logits [samples, classes]", path, results[0].type()->str());
  }
}

// Operators that may draw (dropout, attention, recurrent layers) do not where their rate is 0 or they do not train.
bool never_draws(const torch::jit::Node* node) {
  const auto known = [&](const char* argument) {
    return node->hasNamedInput(argument) ? torch::jit::toIValue(node->namedInput(argument)) : std::nullopt;
  };
  for (const char* flag : {"train", "training"}) {
    if (const auto value = known(flag); value && value->isBool() && !value->toBool()) return true;
  }
  for (const char* rate : {"dropout_p", "dropout", "p"}) {
    if (const auto value = known(rate); value && value->isScalar() && value->toScalar().toDouble() == 0) return true;
  }
  return false;
}

void refuse_random(torch::jit::Graph& graph, const std::string& path) {
  visit_nodes(graph.block(), [&](torch::jit::Node* node) {
    if (node->isNondeterministic() && !never_draws(node)) {
      const std::string place = place_of(node);
      input_error("{} draws random numbers in evaluation ({}{}); the same inputs must give the same logits", path,
                  node->kind().toQualString(), place.empty() ? "" : " at " + place);
    }
  });
}

bool has_recurrent_kernels(torch::jit::Graph& graph) {
  bool found = false;
  visit_nodes(graph.block(), [&](torch::jit::Node* node) {
    const std::string_view name = node->kind().toQualString();
    found = found || name == "aten::lstm" || name == "aten::gru" || name == "aten::rnn_tanh" || name == "aten::rnn_relu";
  });
  return found;
}

// The graph with kernels that can be differentiated twice, where it differs.
std::optional<torch::jit::Module> with_second_derivatives(const torch::jit::Module& module) {
  torch::jit::Module copy = module.clone();
  return choose_math_attention(*copy.get_method("forward").graph()) ? std::optional(copy) : std::nullopt;
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

at::ScalarType first_floating_type(const program::Program& program) {
  for (const program::Constant& constant : program.constants) {
    const at::ScalarType type = to_tensor({constant.array.type, {0}, {}}).scalar_type();
    if (constant.is_parameter && at::isFloatingType(type)) return type;
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
    throw_if_out_of_memory(error);
    input_error("{} cannot be frozen: {}", path, essence(error.what()));
  }
}

// The outputs of an ONNX file have names that its exporter made up; they are a tuple.
bool names_say_nothing(const Script& script) {
  return script.kind == "an ONNX file";
}

// The output that counts, by its name: the one that was asked for, else `logits`, else the only one, or the first tensor of a
// plain tuple. `named`: they are those of a dictionary or a named tuple.
at::IValue named_output(const std::vector<std::pair<std::string, at::IValue>>& outputs, bool named, const Script& script) {
  const auto called = [&](const std::string& name) {
    return std::find_if(outputs.begin(), outputs.end(), [&](const auto& output) { return output.first == name; });
  };
  if (!script.output_name.empty()) {
    if (const auto found = called(script.output_name); found != outputs.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [name, value] : outputs) names.push_back(name);
    input_error("{} has no output '{}'; it has {}", script.path, script.output_name, fmt::join(names, ", "));
  }
  if (const auto found = called("logits"); found != outputs.end()) return found->second;
  if (named && outputs.size() > 1 && !names_say_nothing(script)) {
    std::vector<std::string> names;
    for (const auto& [name, value] : outputs) names.push_back(name);
    input_error("{} gives {}; say which holds its logits: --output-name {} (output_name in Python)", script.path,
                fmt::join(names, ", "), names.front());
  }
  const auto first = std::find_if(outputs.begin(), outputs.end(), [](const auto& output) { return output.second.isTensor(); });
  return first == outputs.end() ? at::IValue() : first->second;
}

at::IValue one_output(const at::IValue& result, const Script& script) {
  std::vector<std::pair<std::string, at::IValue>> outputs;
  bool named = result.isGenericDict();
  if (result.isTuple()) {
    const auto schema = result.type()->expectRef<c10::TupleType>().schema();  // of a named tuple
    named = schema != nullptr;
    const auto& elements = result.toTupleRef().elements();
    for (std::size_t i = 0; i < elements.size(); ++i)
      outputs.emplace_back(schema ? schema->arguments()[i].name() : std::to_string(i), elements[i]);
  } else if (result.isGenericDict()) {
    for (const auto& entry : result.toGenericDict()) {
      if (entry.key().isString()) outputs.emplace_back(entry.key().toStringRef(), entry.value());
    }
  } else {
    return result;
  }
  return named_output(outputs, named, script);
}

// What a tuple or dictionary is made of, by name; empty where a name is not known.
std::vector<std::pair<std::string, torch::jit::Value*>> parts_of(torch::jit::Node* node) {
  std::vector<std::pair<std::string, torch::jit::Value*>> parts;
  if (node->kind() == torch::jit::prim::TupleConstruct) {
    const auto schema = node->output()->type()->expectRef<c10::TupleType>().schema();
    for (std::size_t i = 0; i < node->inputs().size(); ++i)
      parts.emplace_back(schema ? schema->arguments()[i].name() : std::to_string(i), node->input(i));
  } else if (node->kind() == torch::jit::prim::DictConstruct) {
    for (std::size_t i = 0; i + 1 < node->inputs().size(); i += 2) {
      const auto key = torch::jit::toIValue(node->input(i));
      if (!key || !key->isString()) return {};
      parts.emplace_back(key->toStringRef(), node->input(i + 1));
    }
  }
  return parts;
}

// Where the graph shows which of several outputs counts it gives that one alone, so that what ends in a dictionary can become a
// network too. Otherwise the outputs are looked at when there are some (one_output).
void keep_one_output(Script& script) {
  torch::jit::Graph& graph = *script.graph();
  if (graph.outputs().size() != 1) return;
  torch::jit::Node* last = graph.outputs()[0]->node();
  const auto parts = parts_of(last);
  const auto called = [&](const std::string& name) {
    return std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part.first == name; });
  };
  auto chosen = called(script.output_name.empty() ? "logits" : script.output_name);
  const bool ordered =
      last->kind() == torch::jit::prim::TupleConstruct && last->output()->type()->expectRef<c10::TupleType>().schema() == nullptr;
  if (chosen == parts.end() && script.output_name.empty() && (ordered || parts.size() == 1 || names_say_nothing(script)))
    chosen = parts.begin();
  if (chosen == parts.end() || chosen->second->type()->kind() != c10::TypeKind::TensorType) return;
  graph.eraseOutput(0);
  graph.registerOutput(chosen->second);
  if (!last->hasUses()) last->destroy();  // else it would count as another reader of the logits
  torch::jit::Function& function = script.module.get_method("forward").function();
  function.setSchema(function.getSchema().cloneWithReturns({c10::Argument("", c10::TensorType::get())}));
}

at::Tensor as_outputs(const at::IValue& result, const Script& script, const at::Tensor& inputs) {
  const at::IValue value = one_output(result, script);
  if (!value.isTensor()) {
    input_error("{} gives a {}; a model here gives a tensor of logits [samples, classes]", script.path, result.type()->str());
  }
  const at::Tensor outputs = value.toTensor();
  if (const std::string wrong = wrong_outputs(outputs.sizes(), inputs.size(0), OutputKind::kAuto); !wrong.empty())
    input_error("{} {}", script.path, wrong);
  return outputs.dim() == 1 ? outputs.unsqueeze(1) : outputs;
}

// Everything that is done to a flat graph, wherever it came from.
void complete(Script& script, const ModelOptions& options, const GivenInputs& given) {
  const auto graph = script.graph();
  if (!given.inputs.empty()) {
    take_packed_inputs(script, given, options.embedding);
  } else if (needed_inputs(script).size() > 1) {
    script.lacks_inputs = true;
    script.runs_as_is = "it takes several inputs";
  }
  script.output_kind = options.output_kind;
  script.output_name = options.output_name;
  keep_one_output(script);
  for (std::string& note : prepare_for_evaluation(*graph, script.output_kind)) script.notes.push_back(std::move(note));
  torch::jit::EliminateDeadCode(graph);
  refuse_random(*graph, script.path);
  script.is_recurrent = has_recurrent_kernels(*graph);
  script.twice = with_second_derivatives(script.module);
  const torch::jit::AliasDb aliases(graph);
  for (const torch::jit::Value* input : graph->inputs().slice(1))
    script.writes_to_input = script.writes_to_input || aliases.hasWriters(input);
  script.keeps_state = reads_attributes(*graph);
  if (!script.runs_as_is && script.keeps_state) script.runs_as_is = "it writes to its own attributes";
}

// A module whose `forward` is the graph; its first input is the module.
torch::jit::Module module_of(const std::shared_ptr<torch::jit::Graph>& graph) {
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  const auto type = c10::ClassType::create(c10::QualifiedName("__torch__.Program"), unit, /*is_module=*/true);
  unit->register_type(type);
  graph->inputs()[0]->setType(type);
  type->addMethod(unit->create_function(c10::QualifiedName(*type->name(), "forward"), graph));
  return {unit, type};
}

// Tensors that the graph makes itself, such as the first state of a recurrent layer, are made in double precision too.
void make_in_double(torch::jit::Graph& graph) {
  visit_nodes(graph.block(), [&](torch::jit::Node* node) {
    const std::string_view name = node->kind().toQualString();
    if (name != "aten::zeros" && name != "aten::ones" && name != "aten::full" && name != "aten::scalar_tensor") return;
    const auto index = static_cast<std::size_t>(*node->schema().argumentIndexWithName("dtype"));
    const auto type = torch::jit::toIValue(node->input(index));
    if (!type || !type->isInt() || type->toInt() != static_cast<std::int64_t>(at::kFloat)) return;
    const torch::jit::WithInsertPoint before(node);
    node->replaceInput(index, graph.insertConstant(static_cast<std::int64_t>(at::kDouble)));
  });
}

torch::jit::Module in_double(const torch::jit::Module& module) {
  torch::jit::Module copy = module.clone();
  copy.to(at::kDouble);
  make_in_double(*copy.get_method("forward").graph());
  visit_nodes(copy.get_method("forward").graph()->block(), [](torch::jit::Node* node) {
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

// What the file says of its samples: their shape where it is fixed, and how many it takes where that is fixed.
void read_sizes(Script& script, const program::Input& input) {
  if (input.sizes.size() < 2) return;
  script.batch = input.sizes[0];
  std::vector<std::int64_t> sample;
  for (std::size_t i = 1; i < input.sizes.size(); ++i) {
    if (!input.sizes[i]) return;
    sample.push_back(*input.sizes[i]);
  }
  script.traced_shape = sample;
}

// As refused_inputs, with what the caller gave instead of how it is packed.
[[noreturn]] void refused_parts(const Script& script, const std::string& message) {
  std::vector<std::string> given;
  for (const GivenInput& input : script.packing->inputs())
    given.push_back(fmt::format("{} {} ({})", input.name, to_string(input.shape), type_word(input.type)));
  input_error("{} refused samples of {}: {}", script.path, fmt::join(given, ", "), essence(message));
}

// As many samples at once as the file was made for; the last ones are filled up with copies.
at::Tensor run_in_parts(const Script& script, const at::Tensor& inputs) {
  const std::int64_t size = *script.batch, samples = inputs.size(0), parts = (samples + size - 1) / size;
  const at::Tensor rows = at::arange(parts * size, at::TensorOptions(inputs.device()).dtype(at::kLong)).clamp_max(samples - 1);
  std::vector<at::Tensor> logits;
  for (const at::Tensor& part : inputs.index_select(0, rows).split(size)) logits.push_back(run_script(script, part));
  return at::cat(logits).slice(0, 0, samples);
}

}  // namespace

Script read_script(const Archive& archive, at::Device device, const ModelOptions& options, const GivenInputs& given) {
  // Calls inside calls are only inlined while the executor may optimise, whatever the caller's thread is set to.
  const torch::jit::GraphOptimizerEnabledGuard inlines(true);
  const std::string& path = archive.path();
  torch::jit::Module module = load_module(archive, device);
  refuse_other_signatures(module, path);
  refuse_non_finite(module, path);
  module.eval();

  const bool freezable = !stops_gradients(module);
  Script script{
      .path = path, .kind = "a TorchScript file", .module = freezable ? freeze(module, path) : module.clone(), .source = module};
  script.traced_shape = traced_sample_shape(archive);
  for (const at::Tensor& parameter : module.parameters()) script.parameters += parameter.numel();
  script.device = device;
  script.dtype = first_floating_type(module);
  if (!freezable) script.runs_as_is = "it stops gradients with detach";
  torch::jit::Inline(*script.graph());
  complete(script, options, given);
  return script;
}

Script make_script(program::Program program, at::Device device, const ModelOptions& options, const GivenInputs& given) {
  Script script{.path = program.path, .kind = program.kind};
  script.device = device;
  for (const program::Constant& constant : program.constants)
    script.parameters += constant.is_parameter ? constant.array.count() : 0;
  script.dtype = first_floating_type(program);
  if (program.inputs.empty()) input_error("{} takes no tensor; a model here takes one and gives its logits", script.path);
  read_sizes(script, program.inputs.front());
  for (const program::Input& input : program.inputs)
    script.declared_types.push_back(to_tensor({input.type, {0}, {}}).scalar_type());
  script.source = script.module = module_of(program::make_graph(std::move(program), device));
  refuse_other_signatures(script.module, script.path);
  complete(script, options, given);
  return script;
}

Script in_double(const Script& script) {
  Script copy = script;
  copy.module = in_double(script.module);
  if (script.twice) copy.twice = in_double(*script.twice);
  copy.dtype = at::kDouble;
  return copy;
}

std::string place_of(const torch::jit::Node* node) {
  const auto original = node->sourceRange().findSourceRangeThatGenerated();
  const auto place = (original ? *original : node->sourceRange()).file_line_col();
  if (!place || std::get<0>(*place).empty()) return {};
  return std::filesystem::path(std::get<0>(*place)).filename().string() + ":" + std::to_string(std::get<1>(*place));
}

at::Tensor run_script(const Script& script, const at::Tensor& inputs) {
  if (script.lacks_inputs)
    input_error("{} takes {} inputs, {}: give each of them, --inputs NAME=FILE.npy (in Python a dictionary or a tuple)",
                script.path, needed_inputs(script).size(), fmt::join(needed_inputs(script), ", "));
  if (script.batch && inputs.size(0) != *script.batch) return run_in_parts(script, inputs);
  // The profiling executor rewrites a graph after its first calls, so that bytes depend on their order.
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  at::IValue result;
  const WithoutCudnn differentiable(script.is_recurrent && script.device.is_cuda());
  try {
    const torch::jit::Module& chosen = script.twice && TwiceDifferentiable::is_on() ? *script.twice : script.module;
    torch::jit::Module module = script.keeps_state ? chosen.deepcopy() : chosen;
    const at::Tensor own = script.writes_to_input ? inputs.clone() : inputs;
    std::vector<at::IValue> arguments{own};
    if (script.packing) {
      const std::vector<at::Tensor> parts = script.packing->unpack(own);
      arguments.assign(parts.begin(), parts.end());
    }
    result = module.forward(std::move(arguments));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw_if_out_of_memory(error);
    if (script.packing) refused_parts(script, error.what());
    refused_inputs(script.path, inputs, error.what());
  }
  return as_outputs(result, script, inputs);
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

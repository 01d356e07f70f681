// One packed tensor in place of a graph's inputs.
#include <torch/csrc/jit/api/function_impl.h>

#include "holdfast/core/error.h"
#include "script.h"

namespace holdfast::model::torchscript {
namespace packed {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

bool is_one_of(const Node* node, std::initializer_list<std::string_view> names) {
  const std::string_view name = node->kind().toQualString();
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Reader {
  Node* node = nullptr;
  std::size_t input = 0;  // position among the file's inputs
  bool transposed = false;
  Embedding embedding;
};

// The embeddings that read one of the graph's inputs as it is, or with its two dimensions exchanged.
std::vector<Reader> embeddings_of(Graph& graph) {
  std::vector<Reader> found;
  visit_nodes(graph.block(), [&](Node* node) {
    if (!is_one_of(node, {"aten::embedding"})) return;
    Value* ids = node->namedInput("indices");
    bool transposed = false;
    while (is_one_of(ids->node(), {"aten::to", "aten::long", "aten::contiguous", "aten::clone", "aten::t", "aten::transpose"})) {
      if (is_one_of(ids->node(), {"aten::t", "aten::transpose"})) transposed = !transposed;
      ids = ids->node()->input(0);
    }
    const auto weight = torch::jit::toIValue(node->namedInput("weight"));
    const auto padding = torch::jit::toIValue(node->namedInput("padding_idx"));
    for (std::size_t i = 1; i < graph.inputs().size(); ++i) {
      if (graph.inputs()[i] != ids || !weight || !weight->isTensor()) continue;
      std::string name = node->namedInput("weight")->debugName();
      if (name.starts_with("self.")) name = name.substr(5);
      if (name.ends_with(".weight")) name.resize(name.size() - 7);
      found.push_back({node, i - 1, transposed,
                       {.name = name, .weight = weight->toTensor(), .padding = padding && padding->isInt() ? padding->toInt() : -1}});
    }
  });
  return found;
}

std::optional<Reader> chosen_embedding(Graph& graph, const Script& script, const std::string& asked) {
  std::vector<Reader> found = embeddings_of(graph);
  std::string names;
  for (const Reader& reader : found) names += (names.empty() ? "" : ", ") + reader.embedding.name;
  if (!asked.empty()) std::erase_if(found, [&](const Reader& reader) { return reader.embedding.name != asked; });
  if (!asked.empty() && found.empty())
    input_error("{}: no embedding called '{}' reads token ids; {}", script.path, asked, names.empty() ? "none does" : names + " do");
  if (found.size() > 1) input_error("{}: the token ids go to {}; say which (--embedding NAME)", script.path, names);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

// The file's inputs in the order of its arguments; what was given by name may be in another one.
std::vector<std::size_t> argument_order(const torch::jit::Module& module, const std::vector<FileInput>& inputs,
                                        const std::string& path) {
  const auto& arguments = module.get_method("forward").function().getSchema().arguments();
  std::vector<std::size_t> order;
  std::vector<bool> used(inputs.size(), false);
  for (std::size_t argument = 1; argument < arguments.size(); ++argument) {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].name == arguments[argument].name() || (inputs[i].name.empty() && i == argument - 1)) found = i;
    }
    if (!found && !arguments[argument].default_value())
      input_error("{} takes {} inputs; {} is missing (--inputs {}=FILE.npy)", path, arguments.size() - 1,
                  arguments[argument].name(), arguments[argument].name());
    if (found) used[*found] = true;
    order.push_back(found.value_or(inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!used[i]) input_error("{} has no input '{}'", path, inputs[i].name);
  }
  return order;
}

class Rewriter {
 public:
  Rewriter(Script& script, const ModelOptions& options) : script_(script), options_(options), graph_(*script.graph()) {}

  void run() {
    const std::vector<std::size_t> order = argument_order(script_.module, options_.inputs, script_.path);
    std::vector<FileInput> inputs;
    for (const std::size_t i : order) {
      if (i < options_.inputs.size()) inputs.push_back(options_.inputs[i]);
    }
    const std::optional<Reader> tokens = chosen_embedding(graph_, script_, options_.embedding);
    if (!tokens && inputs.size() == 1) return;  // one table of whole numbers
    if (order.size() != inputs.size()) input_error("{}: inputs that are left out must be the last ones", script_.path);
    const InputPacking packing(inputs, options_.layout, tokens ? std::optional(tokens->embedding) : std::nullopt,
                               tokens ? tokens->input : 0);
    const torch::jit::WithInsertPoint at_start(graph_.block()->nodes().front());
    packed_ = graph_.insertInput(1, "packed");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Value* value = tokens && i == tokens->input ? numbers_at(packing.ids_at(), at::kLong) : part(packing, i);
      if (tokens && i == tokens->input) {
        value = graph_.insert(c10::Symbol::aten("clamp"), {value, std::int64_t{0}, tokens->embedding.weight.size(0) - 1});
        replace_embedding(packing, *tokens, value);
      }
      graph_.inputs()[i + 2]->replaceAllUsesWith(value);
    }
    while (graph_.inputs().size() > 2 && graph_.inputs().size() > 2 + order.size() - inputs.size()) graph_.eraseInput(2);
    set_signature();
    script_.packing = packing;
    script_.traced_shape = packing.layout().sample_shape();
  }

 private:
  Value* insert(const char* name, std::vector<torch::jit::NamedValue> arguments) {
    return graph_.insert(c10::Symbol::aten(name), arguments);
  }
  Value* list(const std::vector<std::int64_t>& numbers) { return graph_.insertConstant(at::IValue(numbers)); }

  // One number of each step.
  Value* numbers_at(std::int64_t place, at::ScalarType type) {
    return insert("to", {insert("round", {insert("select", {packed_, std::int64_t{2}, place})}), static_cast<std::int64_t>(type)});
  }

  Value* part(const InputPacking& packing, std::size_t i) {
    const InputPacking::Place& place = packing.places()[i];
    const FileInput& input = packing.inputs()[i];
    Value* value = insert("slice", {packed_, packing.dim(), place.begin, place.end, std::int64_t{1}});
    if (place.everywhere && packing.layout().is_sequence()) value = insert("select", {value, std::int64_t{1}, std::int64_t{0}});
    if (place.everywhere && !packing.layout().is_sequence()) {
      for (int dim = 0; dim < 2; ++dim) value = insert("select", {value, std::int64_t{2}, std::int64_t{0}});
    }
    std::vector<std::int64_t> shape = input.shape;
    shape.insert(shape.begin(), -1);
    value = insert("reshape", {value, list(shape)});
    if (at::isFloatingType(input.type)) return value;
    return insert("to", {insert("round", {value}), static_cast<std::int64_t>(input.type)});
  }

  // Padding and tokens that are left out read their own embedding.
  void replace_embedding(const InputPacking& packing, const Reader& reader, Value* ids) {
    Value* moved = insert("slice", {packed_, std::int64_t{2}, std::int64_t{0}, packing.layout().stride, std::int64_t{1}});
    Value* weight = graph_.insertConstant(reader.embedding.weight);
    Value* own = insert("embedding", {weight, ids});
    Value* ranked = insert("unsqueeze", {numbers_at(packing.ids_at() + 1, at::kBool), std::int64_t{-1}});
    Value* embedded = insert("where", {ranked, moved, own});
    if (reader.transposed) embedded = insert("transpose", {embedded, std::int64_t{0}, std::int64_t{1}});
    reader.node->output()->replaceAllUsesWith(embedded);
    reader.node->destroy();
  }

  void set_signature() {
    auto& function = torch::jit::toGraphFunction(script_.module.get_method("forward").function());
    const c10::FunctionSchema& before = function.getSchema();
    std::vector<c10::Argument> arguments{before.arguments()[0], c10::Argument("packed", c10::TensorType::get())};
    for (std::size_t i = 1 + options_.inputs.size(); i < before.arguments().size(); ++i) arguments.push_back(before.arguments()[i]);
    function.setSchema(c10::FunctionSchema(before.name(), before.overload_name(), std::move(arguments), before.returns()));
  }

  Script& script_;
  const ModelOptions& options_;
  Graph& graph_;
  Value* packed_ = nullptr;
};

}  // namespace packed

void take_packed_inputs(Script& script, const ModelOptions& options) {
  if (!options.inputs.empty()) packed::Rewriter(script, options).run();
}

}  // namespace holdfast::model::torchscript

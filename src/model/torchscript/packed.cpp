// Scripts of several inputs, or of token ids: they are run on packed samples (holdfast/model/packing.h).
#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "script.h"

namespace holdfast::model::torchscript {
namespace packed {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// An embedding that reads an input of the file.
struct Reader {
  Node* node = nullptr;
  std::vector<Node*> moves;  // what gives the ids another order or shape on their way to it, first to last
  TokenEmbedding embedding;
};

bool exchanges_dimensions(const Node* node) {
  const std::string_view name = node->kind().toQualString();
  return name == "aten::t" || name == "aten::numpy_T" || name == "aten::transpose" || name == "aten::permute";
}

// Into another matrix of ids: some models write ids.view(-1, length).
bool gives_another_shape(const Node* node) {
  const std::string_view name = node->kind().toQualString();
  if ((name != "aten::view" && name != "aten::reshape") || node->inputs().size() != 2) return false;
  const auto sizes = torch::jit::toIValue(node->input(1));
  if (sizes) return sizes->isIntList() && sizes->toIntVector().size() == 2;
  const Node* made = node->input(1)->node();
  return made->kind() == torch::jit::prim::ListConstruct && made->inputs().size() == 2;
}

bool keeps_ids(const Node* node) {
  const std::string_view name = node->kind().toQualString();
  return name == "aten::to" || name == "aten::_to_copy" || name == "aten::long" || name == "aten::contiguous" ||
         name == "aten::clone" || name == "aten::alias" || name == "aten::detach";
}

// "self.encoder.words.weight" -> "encoder.words"
std::string embedding_name(const Value* weight) {
  std::string name = weight->debugName();
  if (name.starts_with("self.")) name = name.substr(5);
  if (name.ends_with(".weight")) name.resize(name.size() - 7);
  return name;
}

// The embeddings that read an input as it is, or as another matrix of the same ids. The graph's first input is the module.
std::vector<Reader> find_readers(Graph& graph) {
  std::vector<Reader> found;
  visit_nodes(graph.block(), [&](Node* node) {
    if (node->kind() != c10::Symbol::aten("embedding")) return;
    Value* ids = node->namedInput("indices");
    std::vector<Node*> moves;
    while (true) {
      Node* before = ids->node();
      if (exchanges_dimensions(before) || gives_another_shape(before))
        moves.insert(moves.begin(), before);
      else if (!keeps_ids(before))
        break;
      ids = before->input(0);
    }
    const auto weight = torch::jit::toIValue(node->namedInput("weight"));
    if (!weight || !weight->isTensor() || weight->toTensor().dim() != 2) return;
    const auto padding = torch::jit::toIValue(node->namedInput("padding_idx"));
    for (std::size_t i = 1; i < graph.inputs().size(); ++i) {
      if (graph.inputs()[i] == ids)
        found.push_back({node,
                         moves,
                         {.name = embedding_name(node->namedInput("weight")),
                          .weight = weight->toTensor(),
                          .padding = padding && padding->isInt() ? padding->toInt() : -1,
                          .input = i - 1}});
    }
  });
  return found;
}

std::vector<std::string> argument_names(const Script& script) {
  std::vector<std::string> names;
  const auto& arguments = script.module.get_method("forward").function().getSchema().arguments();
  for (std::size_t i = 1; i < arguments.size(); ++i) names.push_back(arguments[i].name());
  return names;
}

// Ids that are no words, by the names that tokenizers give them: token_type_ids, segment_ids, position_ids. They are left out
// where embeddings of other inputs remain.
void leave_out_other_ids(const Script& script, std::vector<Reader>& readers) {
  const std::vector<std::string> names = argument_names(script);
  std::vector<Reader> words;
  for (const Reader& reader : readers) {
    const std::string& name = names.at(reader.embedding.input);
    const bool other = name.find("type") != std::string::npos || name.find("segment") != std::string::npos ||
                       name.find("position") != std::string::npos;
    if (!other) words.push_back(reader);
  }
  if (!words.empty()) readers = std::move(words);
}

std::optional<Reader> choose_reader(const Script& script, const std::string& asked) {
  std::vector<Reader> found = find_readers(*script.graph());
  std::vector<std::string> names;
  for (const Reader& reader : found) names.push_back(reader.embedding.name);
  if (!asked.empty()) {
    std::erase_if(found, [&](const Reader& reader) { return reader.embedding.name != asked; });
    if (found.empty())
      input_error("{}: no embedding called '{}' reads token ids{}", script.path, asked,
                  names.empty() ? "; none does" : fmt::format("; {} does", fmt::join(names, ", ")));
  }
  if (found.size() > 1) leave_out_other_ids(script, found);
  if (found.size() > 1)
    input_error("{}: token ids go to {}; say which is explained (--embedding NAME)", script.path, fmt::join(names, " and to "));
  return found.empty() ? std::nullopt : std::optional(found.front());
}

// ONNX does not say which id is padding. torch.nn.Embedding keeps the row of its padding at zero, and no other row is.
void find_padding(Script& script, TokenEmbedding& embedding) {
  if (embedding.padding >= 0 || script.kind != "an ONNX file") return;
  const at::Tensor zero = embedding.weight.eq(0).all(1).nonzero();
  if (zero.size(0) != 1) return;
  embedding.padding = zero.item<std::int64_t>();
  script.notes.push_back(fmt::format("token {} is taken as padding, because its embedding is zero", embedding.padding));
}

// What is given, in the order of the file's arguments. Those with a default may be left out at the end.
GivenInputs in_order(const Script& script, const GivenInputs& given) {
  const auto& arguments = script.module.get_method("forward").function().getSchema().arguments();
  const std::vector<std::string> names = argument_names(script);
  GivenInputs ordered{.layout = given.layout, .special_tokens = given.special_tokens};
  for (std::size_t i = 0; i < given.inputs.size(); ++i) {
    const std::string& name = given.inputs[i].name;
    if (name.empty() ? i >= names.size() : std::find(names.begin(), names.end(), name) == names.end())
      input_error("{} has no input {}; it has {}", script.path, name.empty() ? std::to_string(i + 1) : fmt::format("'{}'", name),
                  fmt::join(names, ", "));
  }
  std::string left_out;
  for (std::size_t place = 0; place < names.size(); ++place) {
    const GivenInput* found = nullptr;
    for (std::size_t i = 0; i < given.inputs.size(); ++i) {
      if (given.inputs[i].name == names[place] || (given.inputs[i].name.empty() && i == place)) found = &given.inputs[i];
    }
    if (found == nullptr && !arguments[place + 1].default_value())
      input_error("{} takes {}; {} is missing (--inputs {}=FILE.npy)", script.path, fmt::join(names, ", "), names[place],
                  names[place]);
    if (found == nullptr) {
      left_out = names[place];
      continue;
    }
    if (!left_out.empty()) input_error("{}: {} comes before {} and must be given too", script.path, left_out, names[place]);
    ordered.inputs.push_back(*found);
    ordered.inputs.back().name = names[place];
  }
  return ordered;
}

// Numbers are converted to what the file declares. Its sizes are checked by running it.
void use_declared_types(const Script& script, const std::vector<std::optional<at::ScalarType>>& declared, GivenInputs& given) {
  for (std::size_t i = 0; i < given.inputs.size() && i < declared.size(); ++i) {
    GivenInput& input = given.inputs[i];
    if (!declared[i] || *declared[i] == input.type) continue;
    if (!at::isFloatingType(*declared[i]) && at::isFloatingType(input.type))
      input_error("{}: input {} takes whole numbers ({}), but its array holds {}", script.path, input.name,
                  c10::toString(*declared[i]), c10::toString(input.type));
    input.type = *declared[i];
  }
}

// The embedded tokens [.., .., width] moved as the ids are.
Value* moved(Graph& graph, Value* embedded, Node* move, std::int64_t width) {
  if (exchanges_dimensions(move))
    return graph.insert(c10::Symbol::aten("transpose"), {embedded, std::int64_t{0}, std::int64_t{1}});
  std::vector<Value*> sizes;
  if (const auto known = torch::jit::toIValue(move->input(1))) {
    for (const std::int64_t size : known->toIntVector()) sizes.push_back(graph.insertConstant(size));
  } else {
    const auto made = move->input(1)->node()->inputs();
    sizes.assign(made.begin(), made.end());
  }
  sizes.push_back(graph.insertConstant(width));
  Value* shape = graph.insertNode(graph.createList(c10::IntType::get(), sizes))->output();
  return graph.insert(c10::Symbol::aten("reshape"), {embedded, shape});
}

// The embedded tokens become the graph's first argument.
void take_embedded(Script& script, const Reader& reader) {
  Graph& graph = *script.graph();
  Value* embedded = graph.insertInput(1, "embedded");
  embedded->setType(c10::TensorType::get());
  {
    const torch::jit::WithInsertPoint before(reader.node);
    Value* own = embedded;
    for (Node* move : reader.moves) own = moved(graph, own, move, reader.embedding.weight.size(1));
    reader.node->output()->replaceAllUsesWith(own);
  }
  reader.node->destroy();
  torch::jit::Function& function = script.module.get_method("forward").function();
  const c10::FunctionSchema& schema = function.getSchema();
  std::vector<c10::Argument> arguments = schema.arguments();
  arguments.insert(arguments.begin() + 1, c10::Argument("embedded", c10::TensorType::get()));
  function.setSchema(schema.cloneWithArguments(std::move(arguments)));
}

}  // namespace packed

void take_packed_inputs(Script& script, const GivenInputs& given, const std::string& embedding) {
  GivenInputs ordered = packed::in_order(script, given);
  packed::use_declared_types(script, script.declared_types, ordered);
  std::optional<packed::Reader> reader = packed::choose_reader(script, embedding);
  if (!reader && ordered.inputs.size() == 1) {
    if (!script.declared_types.empty() && script.declared_types[0] && !at::isFloatingType(*script.declared_types[0]))
      input_error("{}: input {} takes whole numbers, and no embedding reads them as they are; nothing can be explained",
                  script.path, ordered.inputs[0].name);
    return;  // a table of whole numbers
  }
  if (reader) {
    const GivenInput& ids = ordered.inputs.at(reader->embedding.input);
    if (at::isFloatingType(ids.type) || ids.shape.size() != 1)
      input_error("{}: token ids are whole numbers [samples, tokens]; {} holds {} of shape [samples{}]", script.path, ids.name,
                  c10::toString(ids.type), ids.shape.empty() ? "" : ", " + fmt::format("{}", fmt::join(ids.shape, ", ")));
    packed::find_padding(script, reader->embedding);
    packed::take_embedded(script, *reader);
  }
  script.packing.emplace(ordered, reader ? std::optional(reader->embedding) : std::nullopt);
  script.traced_shape = script.packing->layout().sample_shape();
  script.runs_as_is = reader ? "it takes token ids" : "it takes several inputs";
}

std::vector<std::string> needed_inputs(const Script& script) {
  std::vector<std::string> names;
  const auto& arguments = script.module.get_method("forward").function().getSchema().arguments();
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (!arguments[i].default_value()) names.push_back(arguments[i].name());
  }
  return names;
}

bool reads_tokens(const Script& script) {
  return !packed::find_readers(*script.graph()).empty();
}

std::vector<std::string> described_inputs(const Script& script) {
  std::vector<std::string> names = packed::argument_names(script);
  for (const packed::Reader& reader : packed::find_readers(*script.graph())) {
    std::string& name = names.at(reader.embedding.input);
    name += fmt::format(" (token ids, read by the embedding {})", reader.embedding.name);
  }
  return names;
}

}  // namespace holdfast::model::torchscript

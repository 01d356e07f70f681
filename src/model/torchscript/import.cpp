#include "import.h"

#include <torch/csrc/jit/ir/constants.h>

#include "holdfast/core/error.h"
#include "holdfast/core/tensor_memory.h"
#include "holdfast/core/words.h"
#include "trial.h"

namespace holdfast::model::torchscript {
namespace {

using torch::jit::Block;
using torch::jit::Value;
using JitNode = torch::jit::Node;

// Any number above one does: what counts is that nothing mistakes a real size for it.
constexpr std::int64_t kBatch = 2;

const Known* known(const Symbol& symbol) {
  return std::get_if<Known>(&symbol.is);
}

bool is_known_list(const Symbol& symbol) {
  const auto* sequence = std::get_if<Sequence>(&symbol.is);
  if (sequence == nullptr) return false;
  return std::all_of(sequence->items.begin(), sequence->items.end(), [](const Symbol& item) { return known(item) != nullptr; });
}

// What a constant operation reads; a list of known items becomes a list of its type.
Known as_known(const Symbol& symbol, const Value* value) {
  if (const Known* plain = known(symbol)) return *plain;
  const auto type = value->type()->cast<c10::ListType>();
  c10::impl::GenericList list(type->getElementType());
  bool from_shape = false;
  for (const Symbol& item : std::get<Sequence>(symbol.is).items) {
    list.push_back(known(item)->value);
    from_shape = from_shape || known(item)->from_shape;
  }
  return {at::IValue(list), from_shape};
}

bool raises(const Block* block) {
  return std::any_of(block->nodes().begin(), block->nodes().end(),
                     [](const JitNode* node) { return node->kind() == torch::jit::prim::RaiseException; });
}

// Operations that change nothing about a value: what they give is what they got.
bool passes_through(const JitNode* node) {
  static const std::unordered_set<std::string> kNames = {"prim::NumToTensor",    "aten::Int",
                                                         "aten::ScalarImplicit", "aten::IntImplicit",
                                                         "prim::unchecked_cast", "prim::unchecked_unwrap_optional"};
  return kNames.count(node->kind().toQualString()) > 0;
}

// Throws NotReadable, also when the script itself does not take samples of this shape.
Imported read_for(const Script& script, const std::vector<std::int64_t>& sample_shape) {
  Importer importer(sample_shape, at::TensorOptions(script.device).dtype(script.dtype));
  importer.read(*script.graph(), script.module);
  if (importer.depends_on_shape() && !script.traced_shape) {
    throw NotReadable("its operations depend on the shape of the samples, which only a traced file tells");
  }
  Imported imported{importer.network(), sample_shape, importer.depends_on_shape()};
  const std::string difference = difference_from(script, imported.network, trial_inputs(script, sample_shape));
  if (!difference.empty()) throw NotReadable(difference);
  return imported;
}

}  // namespace

Importer::Importer(const std::vector<std::int64_t>& sample_shape, at::TensorOptions options) : options_(options) {
  std::vector<std::int64_t> shape = {kBatch};
  shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
  nodes_.push_back({"input", op::Input{}, {}});
  shapes_.push_back(shape);
}

void Importer::read(const torch::jit::Graph& graph, const torch::jit::Module& module) {
  bind(graph.inputs()[0], {Known{module._ivalue()}});
  bind(graph.inputs()[1], fresh(0));
  const auto& arguments = module.get_method("forward").function().getSchema().arguments();
  for (std::size_t i = 2; i < graph.inputs().size(); ++i) bind(graph.inputs()[i], {Known{*arguments[i].default_value()}});

  read_block(graph.block());
  Symbol result = symbol(graph.outputs()[0]);
  if (const auto* tuple = std::get_if<Sequence>(&result.is); tuple != nullptr && !tuple->items.empty()) {
    result = Symbol(tuple->items[0]);
  }
  const auto* tracked = std::get_if<Tracked>(&result.is);
  if (tracked == nullptr) throw NotReadable("its result is not one tensor that depends on the input");
  int last = tracked->slot->node;
  if (shape(last).size() == 1) last = add(op::Reshape{{1}}, {last}, "one_column");
  if (shape(last).size() != 2)
    throw NotReadable(fmt::format("its result has {}, not 2", counted(std::ssize(shape(last)), "dimension")));
  // The logits are the last node's value; what comes after the returned one is not needed.
  nodes_.resize(static_cast<std::size_t>(last) + 1);
}

Network Importer::network() const {
  // Without the nodes that nothing reads: the network's list is what is computed.
  std::vector<bool> needed(nodes_.size(), false);
  needed.front() = needed.back() = true;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (needed[i]) {
      for (const int input : nodes_[i].inputs) needed[static_cast<std::size_t>(input)] = true;
    }
  }
  Network network;
  std::vector<int> position(nodes_.size(), -1);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!needed[i]) continue;
    std::vector<int> inputs;
    for (const int input : nodes_[i].inputs) inputs.push_back(position[static_cast<std::size_t>(input)]);
    position[i] = network.add(nodes_[i].name, nodes_[i].operation, inputs);
  }
  return network;
}

const Symbol& Importer::symbol(const Value* value) const {
  const auto found = symbols_.find(value);
  HOLDFAST_CHECK(found != symbols_.end());
  return found->second;
}

int Importer::add(Operation operation, std::vector<int> inputs, const std::string& name) {
  std::vector<at::IntArrayRef> read;
  for (const int input : inputs) read.push_back(shape(input));
  std::vector<std::int64_t> result = shape_after(operation, read);
  if (result.empty() || result[0] != kBatch) throw NotReadable(operation_name(operation) + " mixes the samples of a batch");
  shapes_.push_back(std::move(result));
  const std::string base = name.empty() ? operation_name(operation) : name;
  std::string unique = name.empty() ? fmt::format("{}_{}", base, nodes_.size()) : base;
  for (int copy = 2; !names_.insert(unique).second; ++copy) unique = fmt::format("{}_{}", base, copy);
  nodes_.push_back({unique, std::move(operation), std::move(inputs)});
  return static_cast<int>(nodes_.size()) - 1;
}

Symbol Importer::fresh(int node) {
  return {Tracked{std::make_shared<TensorSlot>(TensorSlot{node, storages_++})}};
}

Symbol Importer::view_of(const Tracked& base, int node) {
  if (base.slot->node == node) return {base};
  return {Tracked{std::make_shared<TensorSlot>(TensorSlot{node, base.slot->storage})}};
}

void Importer::read_block(const Block* block) {
  for (const JitNode* node : block->nodes()) read_node(node);
}

void Importer::read_node(const JitNode* node) {
  if (node->kind() == torch::jit::prim::Constant) return bind(node->output(), {Known{*torch::jit::toIValue(node->output())}});
  if (node->kind() == torch::jit::prim::If) return read_branch(node);
  if (node->kind() == torch::jit::prim::GetAttr) {
    const Known* object = known(symbol(node->input()));
    return bind(node->output(), {Known{object->value.toObjectRef().getAttr(node->s(torch::jit::attr::name))}});
  }
  if (passes_through(node)) return bind(node->output(), Symbol(symbol(node->input(0))));
  if (read_structure(node) || fold(node)) return;

  std::string name = node->kind().toQualString();
  const bool in_place = name.back() == '_' && node->maybeSchema() != nullptr && node->schema().is_mutable();
  if (in_place) name.pop_back();
  const OperatorCall call(*this, node);
  const OperationReader reader = find_reader(name);
  if (reader == nullptr && reads_batch_size(node)) call.refuse("depends on the number of samples");
  if (reader == nullptr) call.refuse("is not known");
  Symbol result = reader(call);
  if (in_place) return write_in_place(node, result);
  if (node->outputs().size() == 1) return bind(node->output(), std::move(result));
  call.refuse("gives several values");
}

bool Importer::reads_batch_size(const JitNode* node) const {
  return std::any_of(node->inputs().begin(), node->inputs().end(),
                     [&](const Value* input) { return std::holds_alternative<BatchSize>(symbol(input).is); });
}

void Importer::read_branch(const JitNode* node) {
  const Known* condition = known(symbol(node->input()));
  if (condition == nullptr || !condition->value.isBool())
    OperatorCall(*this, node).refuse("depends on the values of the samples");
  const bool taken = condition->value.toBool();
  const Block* chosen = node->blocks()[taken ? 0 : 1];
  const Block* other = node->blocks()[taken ? 1 : 0];
  // Where the other way is an error there is but one way. A condition made of conditions says how it came about; anything
  // else that was chosen by a size holds for samples of this shape only.
  const bool by_shape = condition->from_shape && !raises(other);
  const std::size_t nodes_before = nodes_.size();
  read_block(chosen);
  bool only_known = nodes_.size() == nodes_before;
  for (std::size_t i = 0; i < node->outputs().size(); ++i) {
    Symbol result = symbol(chosen->outputs()[i]);
    if (auto* held = std::get_if<Known>(&result.is))
      held->from_shape = held->from_shape || by_shape;
    else
      only_known = false;
    bind(node->outputs()[i], std::move(result));
  }
  if (by_shape && !only_known) depends_on_shape_ = true;
}

bool Importer::fold(const JitNode* node) {
  torch::jit::Stack stack;
  bool from_shape = false;
  for (const Value* input : node->inputs()) {
    const Symbol& read = symbol(input);
    if (known(read) == nullptr && !is_known_list(read)) return false;
    Known argument = as_known(read, input);
    from_shape = from_shape || argument.from_shape;
    stack.push_back(std::move(argument.value));
  }
  const auto* schema = node->maybeSchema();
  if (schema == nullptr || schema->is_mutable() || node->hasSideEffects()) OperatorCall(*this, node).refuse("is not known");
  const at::NoGradGuard no_gradients;
  try {
    node->getOperation()(stack);
  } catch (const std::exception& error) {
    throw_if_out_of_memory(error);
    OperatorCall(*this, node).refuse(essence(error.what()));
  }
  for (std::size_t i = 0; i < node->outputs().size(); ++i) {
    bind(node->outputs()[i], {Known{stack[stack.size() - node->outputs().size() + i], from_shape}});
  }
  return true;
}

// An in-place operation moves every value that is this tensor. A view of it that is read later would have to change as
// well; such graphs are left alone.
void Importer::write_in_place(const JitNode* node, const Symbol& result) {
  const OperatorCall call(*this, node);
  const auto* target = std::get_if<Tracked>(&symbol(node->input(0)).is);
  const auto* moved = std::get_if<Tracked>(&result.is);
  if (target == nullptr || moved == nullptr) call.refuse("writes to a constant");
  for (const auto& [value, held] : symbols_) {
    const auto* tracked = std::get_if<Tracked>(&held.is);
    if (tracked == nullptr || tracked->slot == target->slot || tracked->slot->storage != target->slot->storage) continue;
    for (const torch::jit::Use& use : value->uses()) {
      if (use.user->isAfter(node)) call.refuse("writes to a tensor of which a view is read later");
    }
  }
  target->slot->node = moved->slot->node;
  bind(node->output(), {*target});
}

std::variant<Imported, std::string> import_network(const Script& script) {
  if (script.runs_as_is) return *script.runs_as_is;
  std::string reason =
      script.traced_shape ? "" : "no shape of samples was found that goes through it; a traced file tells its own";
  bool has_reason = false;  // the likeliest shape's reason is the one to tell, unless it only says that the shape was wrong
  for (const std::vector<std::int64_t>& shape : candidate_shapes(script)) {
    try {
      return read_for(script, shape);
    } catch (const DoesNotFit& error) {
      if (script.traced_shape) reason = error.what();
    } catch (const NotReadable& error) {
      if (!has_reason) reason = error.what();
      has_reason = true;
    }
  }
  return reason;
}

}  // namespace holdfast::model::torchscript

// What is edited in a frozen graph before it is read or run.
#include <algorithm>
#include <string_view>

#include "script.h"

namespace holdfast::model::torchscript {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

bool is_called(const Node* node, std::initializer_list<std::string_view> names) {
  const std::string_view name = node->kind().toQualString();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Replaces a flag that is constantly true by false; says whether it did.
bool turn_off(Graph& graph, Node* node, const char* flag) {
  const auto position = node->schema().argumentIndexWithName(flag);
  if (!position) return false;
  const auto index = static_cast<std::size_t>(*position);
  const auto value = torch::jit::toIValue(node->input(index));
  if (!value || !value->isBool() || !value->toBool()) return false;
  const torch::jit::WithInsertPoint before(node);
  node->replaceInput(index, graph.insertConstant(false));
  return true;
}

bool is_none(Value* value) {
  const auto known = torch::jit::toIValue(value);
  return known && known->isNone();
}

// Attention has no flag, only a rate.
bool turn_off_rate(Graph& graph, Node* node) {
  const auto index = static_cast<std::size_t>(*node->schema().argumentIndexWithName("dropout_p"));
  const auto value = torch::jit::toIValue(node->input(index));
  if (!value || !value->isDouble() || value->toDouble() == 0) return false;
  const torch::jit::WithInsertPoint before(node);
  node->replaceInput(index, graph.insertConstant(0.0));
  return true;
}

bool turn_off_dropout(Graph& graph) {
  bool edited = false;
  visit_nodes(graph.block(), [&](Node* node) {
    if (is_called(node, {"aten::dropout", "aten::dropout_", "aten::feature_dropout", "aten::feature_dropout_",
                         "aten::alpha_dropout", "aten::alpha_dropout_", "aten::feature_alpha_dropout",
                         "aten::feature_alpha_dropout_", "aten::native_dropout"})) {
      edited = turn_off(graph, node, "train") || edited;
    } else if (is_called(node, {"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"})) {
      const auto rate = torch::jit::toIValue(node->namedInput("dropout"));
      const bool drops = !rate || !rate->isDouble() || rate->toDouble() != 0;
      edited = (turn_off(graph, node, "train") && drops) || edited;
    } else if (is_called(node, {"aten::scaled_dot_product_attention"})) {
      edited = turn_off_rate(graph, node) || edited;
    }
  });
  return edited;
}

// Only where there are running statistics; a layer without them uses the batch's in evaluation too.
bool turn_off_batch_statistics(Graph& graph) {
  bool edited = false;
  visit_nodes(graph.block(), [&](Node* node) {
    if (is_called(node, {"aten::batch_norm"}) && !is_none(node->namedInput("running_mean"))) {
      edited = turn_off(graph, node, "training") || edited;
    }
  });
  if (!edited) return false;
  // The counter of training batches would be written to at every call.
  visit_nodes(graph.block(), [](Node* node) {
    if (!is_called(node, {"aten::add_"}) || node->output()->hasUses()) return;
    Node* source = node->input(0)->node();
    if (source->kind() == torch::jit::prim::GetAttr && source->s(torch::jit::attr::name) == "num_batches_tracked")
      node->destroy();
  });
  return true;
}

// What a model prints would stand among the program's results, and a warning could steer the terminal. Only the first is news:
// torch's own functions have warnings on ways that are never taken.
bool turn_off_printing(Graph& graph) {
  bool edited = false;
  visit_nodes(graph.block(), [&](Node* node) {
    if (!is_called(node, {"prim::Print", "aten::warn"})) return;
    edited = edited || is_called(node, {"prim::Print"});
    node->destroy();
  });
  return edited;
}

// Nothing but the shape changes, or nothing at all.
bool keeps_values(const Node* node) {
  return is_called(node,
                   {"aten::squeeze", "aten::unsqueeze", "aten::view", "aten::reshape", "aten::flatten", "aten::contiguous"});
}

// The softmax over classes or the sigmoid that the graph returns, alone or first in a tuple; null where there is none, or where
// something else reads it too.
Node* final_squashing(Graph& graph) {
  if (graph.outputs().size() != 1) return nullptr;
  Node* last = graph.outputs()[0]->node();
  if (last->kind() == torch::jit::prim::TupleConstruct && !last->inputs().empty()) last = last->input(0)->node();
  while (keeps_values(last) && last->output()->uses().size() == 1) last = last->input(0)->node();
  if (last->outputs().size() != 1 || last->output()->uses().size() != 1) return nullptr;
  if (is_called(last, {"aten::sigmoid", "aten::log_sigmoid"})) return last;
  if (!is_called(last, {"aten::softmax", "aten::log_softmax"})) return nullptr;
  const auto dim = torch::jit::toIValue(last->namedInput("dim"));
  const bool over_classes = dim && dim->isInt() && (dim->toInt() == 1 || dim->toInt() == -1);
  return over_classes ? last : nullptr;
}

}  // namespace

std::vector<std::string> prepare_for_evaluation(Graph& graph, OutputKind& kind) {
  std::vector<std::string> notes;
  open_fast_paths(graph);
  if (turn_off_dropout(graph)) notes.push_back("dropout that the file keeps on in evaluation is turned off");
  if (turn_off_batch_statistics(graph)) {
    notes.push_back("batch normalisation that was traced in training mode uses its running statistics");
  }
  if (turn_off_printing(graph)) notes.push_back("what the file prints is left out");
  const bool may_cut = kind == OutputKind::kAuto || kind == OutputKind::kProbabilities || kind == OutputKind::kProbability;
  if (Node* squashing = may_cut ? final_squashing(graph) : nullptr) {
    const bool softmax = is_called(squashing, {"aten::softmax", "aten::log_softmax"});
    notes.push_back(std::string("logits are what goes into the ") + squashing->kind().toUnqualString() + " at its end");
    squashing->output()->replaceAllUsesWith(squashing->input(0));
    squashing->destroy();
    kind = softmax ? OutputKind::kLogits : OutputKind::kLogit;
  }
  return notes;
}

}  // namespace holdfast::model::torchscript

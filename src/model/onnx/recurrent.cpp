// Recurrent layers: LSTM, GRU, RNN. ONNX keeps the gates in another order than torch.
#include <algorithm>
#include <cctype>

#include "translator.h"

namespace holdfast::model::onnx {
namespace {

// Rows of ONNX's weights where torch's gates are.
const Integers kLstmGates{0, 2, 3, 1}, kGruGates{1, 0, 2}, kOnlyGate{0};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return text;
}

}  // namespace

void Translator::lstm() {
  check_recurrent({"sigmoid", "tanh", "tanh"});
  recurrent("aten::lstm", kLstmGates);
}

void Translator::gru() {
  check_recurrent({"sigmoid", "tanh"});
  if (integer("linear_before_reset", 0) == 0)
    refuse("resets before the matrix (linear_before_reset=0), which torch's layer does not");
  recurrent("aten::gru", kGruGates);
}

void Translator::rnn() {
  const auto chosen = attribute<std::vector<std::string>>("activations", {"Tanh"});
  const bool relu = !chosen.empty() && lower(chosen[0]) == "relu";
  check_recurrent({relu ? "relu" : "tanh"});
  recurrent(relu ? "aten::rnn_relu" : "aten::rnn_tanh", kOnlyGate);
}

// `activations`: torch's, the same in both directions. Others, and what torch's layers do not have, are refused.
void Translator::check_recurrent(const std::vector<std::string>& activations) const {
  if (has(4) || has(7) || integer("layout", 0) != 0 || node_->attributes.contains("clip") || integer("input_forget", 0) != 0)
    refuse("has lengths, peepholes or limits of its own");
  const auto own = attribute<std::vector<std::string>>("activations", {});
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (lower(own[i]) != activations[i % activations.size()])
      refuse(fmt::format("has {} where torch's layer has another", own[i]));
  }
  if (attribute<std::string>("direction", "forward") == "reverse") refuse("runs backwards only");
}

// Rows [first, first + gates * hidden) of one direction, gates in torch's order. `width`: of a row; 0: one number each.
RawArray Translator::gates_of(const RawArray& from, const Integers& order, std::int64_t way, std::int64_t first,
                              std::int64_t width) const {
  const std::int64_t ways = from.shape[0], hidden = constant(2)->shape[2], gates = static_cast<std::int64_t>(order.size());
  RawArray result{from.type, {gates * hidden}, {}};
  if (width > 0) result.shape.push_back(width);
  const std::size_t row = static_cast<std::size_t>(std::max<std::int64_t>(width, 1)) * size_of(from.type);
  const std::size_t rows = from.bytes.size() / row / static_cast<std::size_t>(ways);
  const std::size_t block = static_cast<std::size_t>(hidden) * row;
  const std::size_t start = (static_cast<std::size_t>(way) * rows + static_cast<std::size_t>(first)) * row;
  if (start + static_cast<std::size_t>(gates) * block > from.bytes.size()) refuse("has weights of other shapes");
  for (const std::int64_t gate : order) {
    const auto at = from.bytes.begin() + static_cast<std::ptrdiff_t>(start + static_cast<std::size_t>(gate) * block);
    result.bytes.insert(result.bytes.end(), at, at + static_cast<std::ptrdiff_t>(block));
  }
  return result;
}

// One layer, in one direction or both. `order` says where torch's gates are.
void Translator::recurrent(const char* operation, const Integers& order) {
  const RawArray *input_weights = constant(1), *own_weights = constant(2), *biases = constant(3);
  if (input_weights == nullptr || own_weights == nullptr || input_weights->shape.size() != 3 || own_weights->shape.size() != 3 ||
      (has(3) && biases == nullptr)) {
    refuse("has weights that are not constant");
  }
  const std::int64_t ways = attribute<std::string>("direction", "forward") == "bidirectional" ? 2 : 1;
  const std::int64_t hidden = own_weights->shape[2], width = input_weights->shape[2];
  const auto gates = static_cast<std::int64_t>(order.size());
  if (input_weights->shape != Integers{ways, gates * hidden, width} ||
      own_weights->shape != Integers{ways, gates * hidden, hidden} ||
      (biases != nullptr && biases->shape != Integers{ways, 2 * gates * hidden}) || hidden < 1 || width < 1) {
    refuse("has weights of other shapes");
  }
  Items weights;
  for (std::int64_t way = 0; way < ways; ++way) {
    weights.push_back(make_constant(gates_of(*input_weights, order, way, 0, width)));
    weights.push_back(make_constant(gates_of(*own_weights, order, way, 0, hidden)));
    if (biases == nullptr) continue;
    weights.push_back(make_constant(gates_of(*biases, order, way, 0, 0)));
    weights.push_back(make_constant(gates_of(*biases, order, way, gates * hidden, 0)));
  }
  const Argument x = tensor(0);
  const auto state = [&](std::size_t input) {
    if (has(input)) return tensor(input);
    const Items shape{{ways}, size_of_input(x, 1), {hidden}};
    return call("aten::zeros", {{"size", {shape}}, {"dtype", {input_weights->type}}, {"device", {program::OwnDevice{}}}});
  };
  const bool has_cell = order == kLstmGates;
  const Argument start = has_cell ? Argument{Items{state(5), state(6)}} : state(5);
  program::Call layer{.operation = operation, .overload = "input", .where = where()};
  layer.arguments = {{"input", x},
                     {"hx", start},
                     {"params", {weights}},
                     {"has_biases", {biases != nullptr}},
                     {"num_layers", {std::int64_t{1}}},
                     {"dropout", {0.0}},
                     {"train", {false}},
                     {"bidirectional", {ways == 2}},
                     {"batch_first", {false}}};
  const std::string all = fresh(), last = fresh(), cell = fresh();
  layer.results = {{{all}}, {{last}}};
  if (has_cell) layer.results.push_back({{cell}});
  program_.calls.push_back(std::move(layer));
  // [steps, samples, ways * hidden] -> [steps, ways, samples, hidden]
  const Argument apart = call("aten::unflatten", {{Reference{all}}, {std::int64_t{2}}, {Items{{ways}, {hidden}}}});
  give(call("aten::transpose", {apart, {std::int64_t{1}}, {std::int64_t{2}}}));
  give({Reference{last}}, 1);
  if (has_cell) give({Reference{cell}}, 2);
}

}  // namespace holdfast::model::onnx

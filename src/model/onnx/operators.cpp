// Which operators of ONNX are read, and the few that are neither layers, nor shapes, nor sizes.
#include <cmath>

#include "translator.h"

namespace holdfast::model::onnx {

void Translator::reduce(const char* operation) {
  const bool keep = integer("keepdims", 1) != 0;
  std::optional<Integers> axes = known(1, "axes");
  if (!axes || axes->empty()) {
    if (integer("noop_with_empty_axes", 0) != 0) return give(tensor(0));
    const auto dims = rank(0);
    if (!dims) refuse("reduces all dimensions of a tensor whose shape the file does not tell");
    axes.emplace();
    for (std::int64_t i = 0; i < *dims; ++i) axes->push_back(i);
  }
  give(call(operation, {tensor(0), list(*axes), {keep}}));
}

void Translator::clip() {
  const auto limit = [&](std::size_t input, const char* older) -> Argument {
    if (node_->attributes.contains(older)) return {real(older, 0)};
    if (!has(input)) return {};
    const auto number = constant(input) == nullptr ? std::nullopt : only_number(*constant(input));
    if (!number) refuse("has limits that are not constant");
    return {*number};
  };
  give(call("aten::clamp", {tensor(0), limit(1, "min"), limit(2, "max")}));
}

// clip(alpha x + beta, 0, 1)
void Translator::hard_sigmoid() {
  const double alpha = real("alpha", 0.2), beta = real("beta", 0.5);
  if (std::abs(alpha - 1.0 / 6) < 1e-6 && beta == 0.5) return give(call("aten::hardsigmoid", Items{tensor(0)}));
  const Argument line = call("aten::add", {call("aten::mul", {tensor(0), {alpha}}), {beta}});
  give(call("aten::clamp", {line, {0.0}, {1.0}}));
}

void Translator::variadic(const char* operation) {
  Argument result = tensor(0);
  for (std::size_t i = 1; i < node_->inputs.size(); ++i) result = call(operation, {result, tensor(i)});
  give(result);
}

void Translator::identity() {
  if (node_->outputs.size() > 1 && !node_->outputs[1].empty()) refuse("gives its mask, which is not read");
  if (sizes_.contains(input_name(0))) return give(*sizes(0));
  // Equal weights are often kept once; each of their names is then a weight.
  if (const RawArray* array = constant(0)) {
    graph_.constants.emplace(node_->outputs[0], RawArray(*array));
    return;
  }
  give(tensor(0));
}

const std::unordered_map<std::string, Translator::Operator>& Translator::operators() {
  using T = Translator;
  static const std::unordered_map<std::string, Operator> table = {
      {"Conv", [](T& t) { t.conv(); }},
      {"Gemm", [](T& t) { t.gemm(); }},
      {"BatchNormalization", [](T& t) { t.batch_norm(); }},
      {"LayerNormalization", [](T& t) { t.layer_norm(); }},
      {"Reshape", [](T& t) { t.reshape(); }},
      {"Flatten", [](T& t) { t.flatten(); }},
      {"Transpose", [](T& t) { t.transpose(); }},
      {"Squeeze", [](T& t) { t.squeeze(); }},
      {"Unsqueeze", [](T& t) { t.unsqueeze(); }},
      {"Concat", [](T& t) { t.concat(); }},
      {"Split", [](T& t) { t.split(); }},
      {"Slice", [](T& t) { t.slice(); }},
      {"Gather", [](T& t) { t.gather(); }},
      {"Shape", [](T& t) { t.shape(); }},
      {"Expand", [](T& t) { t.expand(); }},
      {"Range", [](T& t) { t.range(); }},
      {"ConstantOfShape", [](T& t) { t.constant_of_shape(); }},
      {"Constant", [](T& t) { t.constant_node(); }},
      {"Cast", [](T& t) { t.cast(); }},
      {"Clip", [](T& t) { t.clip(); }},
      {"Pad", [](T& t) { t.pad(); }},
      {"HardSigmoid", [](T& t) { t.hard_sigmoid(); }},
      {"Relu", [](T& t) { t.plain("aten::relu"); }},
      {"Sigmoid", [](T& t) { t.plain("aten::sigmoid"); }},
      {"Tanh", [](T& t) { t.plain("aten::tanh"); }},
      {"Softplus", [](T& t) { t.plain("aten::softplus"); }},
      {"HardSwish", [](T& t) { t.plain("aten::hardswish"); }},
      {"Mish", [](T& t) { t.plain("aten::mish"); }},
      {"Erf", [](T& t) { t.plain("aten::erf"); }},
      {"Exp", [](T& t) { t.plain("aten::exp"); }},
      {"Log", [](T& t) { t.plain("aten::log"); }},
      {"Sqrt", [](T& t) { t.plain("aten::sqrt"); }},
      {"Neg", [](T& t) { t.plain("aten::neg"); }},
      {"Abs", [](T& t) { t.plain("aten::abs"); }},
      {"Reciprocal", [](T& t) { t.plain("aten::reciprocal"); }},
      {"Sin", [](T& t) { t.plain("aten::sin"); }},
      {"Cos", [](T& t) { t.plain("aten::cos"); }},
      {"Floor", [](T& t) { t.plain("aten::floor"); }},
      {"Ceil", [](T& t) { t.plain("aten::ceil"); }},
      {"Round", [](T& t) { t.plain("aten::round"); }},
      {"Sign", [](T& t) { t.plain("aten::sign"); }},
      {"Not", [](T& t) { t.plain("aten::logical_not"); }},
      {"Selu", [](T& t) { t.plain("aten::selu"); }},
      {"Add", [](T& t) { t.binary("aten::add", "aten::add"); }},
      {"Sub", [](T& t) { t.binary("aten::sub", "aten::sub"); }},
      {"Mul", [](T& t) { t.binary("aten::mul", "aten::mul"); }},
      {"Div", [](T& t) { t.binary("aten::div", "aten::floordiv"); }},
      {"Mod", [](T& t) { t.binary("aten::remainder", "aten::remainder"); }},
      {"Pow", [](T& t) { t.binary("aten::pow", nullptr); }},
      {"MatMul", [](T& t) { t.binary("aten::matmul", nullptr); }},
      {"Equal", [](T& t) { t.binary("aten::eq", "aten::eq"); }},
      {"Less", [](T& t) { t.binary("aten::lt", nullptr); }},
      {"LessOrEqual", [](T& t) { t.binary("aten::le", nullptr); }},
      {"Greater", [](T& t) { t.binary("aten::gt", nullptr); }},
      {"GreaterOrEqual", [](T& t) { t.binary("aten::ge", nullptr); }},
      {"And", [](T& t) { t.binary("aten::logical_and", nullptr); }},
      {"Or", [](T& t) { t.binary("aten::logical_or", nullptr); }},
      {"Softmax", [](T& t) { t.softmax("aten::softmax"); }},
      {"LogSoftmax", [](T& t) { t.softmax("aten::log_softmax"); }},
      {"MaxPool", [](T& t) { t.pool(true); }},
      {"AveragePool", [](T& t) { t.pool(false); }},
      {"GlobalAveragePool", [](T& t) { t.global_pool("aten::mean"); }},
      {"GlobalMaxPool", [](T& t) { t.global_pool("aten::amax"); }},
      {"ReduceMean", [](T& t) { t.reduce("aten::mean"); }},
      {"ReduceSum", [](T& t) { t.reduce("aten::sum"); }},
      {"ReduceMax", [](T& t) { t.reduce("aten::amax"); }},
      {"ReduceMin", [](T& t) { t.reduce("aten::amin"); }},
      {"Max", [](T& t) { t.variadic("aten::maximum"); }},
      {"Min", [](T& t) { t.variadic("aten::minimum"); }},
      {"Sum", [](T& t) { t.variadic("aten::add"); }},
      {"Identity", [](T& t) { t.identity(); }},
      {"Dropout", [](T& t) { t.identity(); }},
      {"Where", [](T& t) { t.where_node(); }},
      {"PRelu", [](T& t) { t.prelu(); }},
      {"LeakyRelu",
       [](T& t) {
         t.give(t.call("aten::leaky_relu", {t.tensor(0), {t.real("alpha", 0.01)}}));
       }},
      {"Elu",
       [](T& t) {
         t.give(t.call("aten::elu", {t.tensor(0), {t.real("alpha", 1)}}));
       }},
      {"Gelu",
       [](T& t) {
         t.give(
             t.call("aten::gelu", {{"self", t.tensor(0)}, {"approximate", {t.attribute<std::string>("approximate", "none")}}}));
       }},
      {"LSTM", [](T& t) { t.lstm(); }},
      {"GRU", [](T& t) { t.gru(); }},
      {"RNN", [](T& t) { t.rnn(); }},
  };
  return table;
}

}  // namespace holdfast::model::onnx

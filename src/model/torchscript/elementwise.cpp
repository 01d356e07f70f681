// Readers of activations and arithmetic.
#include "holdfast/core/error.h"
#include "import.h"

namespace holdfast::model::torchscript {
namespace {

using Kind = op::Activation::Kind;

template <Kind kind>
Symbol activation(const OperatorCall& call) {
  return call.add(op::Activation{.kind = kind}, {call.tensor("self")});
}

Symbol leaky_relu(const OperatorCall& call) {
  return call.add(op::Activation{.kind = Kind::kLeakyRelu, .parameter = call.real("negative_slope")}, {call.tensor("self")});
}

Symbol prelu(const OperatorCall& call) {
  const at::Tensor slope = call.constant("weight");
  if (slope.numel() != 1) call.refuse("has a slope for each channel");
  return call.add(op::Activation{.kind = Kind::kLeakyRelu, .parameter = slope.item<double>()}, {call.tensor("self")});
}

Symbol softplus(const OperatorCall& call) {
  // Below torch's own threshold of 20 the shortcut to a line shows.
  if (call.real("threshold") < 20) call.refuse("turns into a line below beta x = 20");
  return call.add(op::Activation{.kind = Kind::kSoftplus, .parameter = call.real("beta")}, {call.tensor("self")});
}

Symbol elu(const OperatorCall& call) {
  if (call.real("scale") != 1 || call.real("input_scale") != 1) call.refuse("is scaled");
  return call.add(op::Activation{.kind = Kind::kElu, .parameter = call.real("alpha")}, {call.tensor("self")});
}

Symbol gelu(const OperatorCall& call) {
  if (call.has("approximate") && call.text("approximate") != "none") call.refuse("approximates by tanh");
  return activation<Kind::kGelu>(call);
}

// A clamp is an activation when it is relu or relu6.
Symbol clamp_between(const OperatorCall& call, const char* low, const char* high) {
  const bool from_zero = !call.is_none(low) && call.real(low) == 0;
  if (from_zero && (high == nullptr || call.is_none(high))) return activation<Kind::kRelu>(call);
  if (from_zero && call.real(high) == 6) return activation<Kind::kRelu6>(call);
  call.refuse("has limits that are neither relu's nor relu6's");
}

Symbol threshold(const OperatorCall& call) {
  if (call.real("threshold") != 0 || call.real("value") != 0) call.refuse("is not relu");
  return activation<Kind::kRelu>(call);
}

// relu6(x + 3) / 6
int add_hardsigmoid(const OperatorCall& call) {
  Importer& importer = call.importer();
  const auto number = [&](double value) { return at::scalar_tensor(value, importer.options()); };
  const int shifted = importer.add(op::Affine{number(1), number(3)}, {call.tensor("self")});
  const int clamped = importer.add(op::Activation{.kind = Kind::kRelu6}, {shifted});
  return importer.add(op::Multiply{1.0 / 6}, {clamped});
}

Symbol hardsigmoid(const OperatorCall& call) {
  return call.importer().fresh(add_hardsigmoid(call));
}

Symbol hardswish(const OperatorCall& call) {
  return call.add(op::Product{}, {call.tensor("self"), add_hardsigmoid(call)});
}

// A constant beside x: one number, a vector of channels (dimension 1), or an array of a sample's shape.
at::Tensor beside(const OperatorCall& call, const at::Tensor& constant, int x) {
  const at::IntArrayRef shape = call.importer().shape(x);
  const at::Tensor value = constant.to(call.importer().options());
  if (value.numel() == 1) return value.reshape({});
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (value.dim() > rank || (value.dim() == rank && value.size(0) != 1)) call.refuse("broadcasts the tensor");
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank - 1), 1);  // of a sample, as broadcasting lines them up
  const auto own = value.sizes().slice(value.dim() == rank ? 1 : 0);
  std::copy(own.begin(), own.end(), sizes.end() - static_cast<std::ptrdiff_t>(own.size()));
  const bool channels = sizes[0] == value.numel();
  return channels ? value.reshape({-1}) : value.reshape(sizes);
}

// Computes x * scale + shift and keeps the shape of x.
Symbol affine(const OperatorCall& call, int x, const at::Tensor& scale, const at::Tensor& shift) {
  Importer& importer = call.importer();
  const int result = importer.add(op::Affine{beside(call, scale, x), beside(call, shift, x)}, {x});
  if (importer.shape(result) != importer.shape(x)) call.refuse("broadcasts the tensor");
  return importer.fresh(result);
}

at::Tensor number(const OperatorCall& call, double value) {
  return at::scalar_tensor(value, call.importer().options());
}

// matmul + bias is one linear layer when nothing else reads the product.
bool becomes_bias(const OperatorCall& call, const char* self, const at::Tensor& shift) {
  auto* linear = std::get_if<op::Linear>(&call.importer().node(call.tensor(self)).operation);
  if (linear == nullptr || linear->bias.defined() || call.node()->namedInput(self)->uses().size() != 1) return false;
  return shift.dim() == 1 && shift.size(0) == linear->weight.size(0);
}

Symbol add_constant(const OperatorCall& call, const char* x, const at::Tensor& shift) {
  if (becomes_bias(call, x, shift)) {
    std::get<op::Linear>(call.importer().node(call.tensor(x)).operation).bias = shift;
    return {call.tracked(x)};
  }
  return affine(call, call.tensor(x), number(call, 1), shift);
}

int same_rank(const OperatorCall& call, const char* argument) {
  if (call.shape(argument).size() != call.shape("self").size()) call.refuse("broadcasts the tensor");
  return call.tensor(argument);
}

int scaled(const OperatorCall& call, int x, double factor) {
  return factor == 1 ? x : call.importer().add(op::Multiply{factor}, {x});
}

Symbol add(const OperatorCall& call, double sign) {
  const double factor = sign * call.real("alpha");
  if (!call.is_tensor("other")) return add_constant(call, "self", call.constant("other") * factor);
  if (!call.is_tensor("self")) return affine(call, call.tensor("other"), number(call, factor), call.constant("self"));
  const int other = scaled(call, same_rank(call, "other"), factor);
  return call.add(op::Add{}, {call.tensor("self"), other});
}

// other - alpha self
Symbol rsub(const OperatorCall& call) {
  const double factor = -call.real("alpha");
  if (!call.is_tensor("other")) return affine(call, call.tensor("self"), number(call, factor), call.constant("other"));
  const int self = scaled(call, call.tensor("self"), factor);
  return call.add(op::Add{}, {same_rank(call, "other"), self});
}

Symbol times(const OperatorCall& call, const char* x, const at::Tensor& factor) {
  if (factor.numel() == 1) return call.add(op::Multiply{factor.item<double>()}, {call.tensor(x)});
  return affine(call, call.tensor(x), factor, number(call, 0));
}

Symbol mul(const OperatorCall& call) {
  if (!call.is_tensor("other")) return times(call, "self", call.constant("other"));
  if (!call.is_tensor("self")) return times(call, "other", call.constant("self"));
  return call.add(op::Product{}, {call.tensor("self"), same_rank(call, "other")});
}

Symbol div(const OperatorCall& call) {
  if (call.has("rounding_mode") && !call.is_none("rounding_mode")) call.refuse("rounds");
  return times(call, "self", call.constant("other").to(at::kDouble).reciprocal());
}

Symbol square(const OperatorCall& call) {
  return call.add(op::Product{}, {call.tensor("self"), call.tensor("self")});
}

Symbol power(const OperatorCall& call) {
  if (call.is_tensor("exponent") || call.constant("exponent").numel() != 1 || call.real("exponent") != 2)
    call.refuse("is not a square");
  return square(call);
}

}  // namespace

const ReaderTable& elementwise_readers() {
  static const ReaderTable table = {
      {"aten::relu", activation<Kind::kRelu>},
      {"aten::relu6", activation<Kind::kRelu6>},
      {"aten::leaky_relu", leaky_relu},
      {"aten::prelu", prelu},
      {"aten::softplus", softplus},
      {"aten::elu", elu},
      {"aten::gelu", gelu},
      {"aten::silu", activation<Kind::kSilu>},
      {"aten::tanh", activation<Kind::kTanh>},
      {"aten::sigmoid", activation<Kind::kSigmoid>},
      {"aten::hardsigmoid", hardsigmoid},
      {"aten::hardswish", hardswish},
      {"aten::hardtanh", [](const OperatorCall& call) { return clamp_between(call, "min_val", "max_val"); }},
      {"aten::clamp", [](const OperatorCall& call) { return clamp_between(call, "min", "max"); }},
      {"aten::clamp_min", [](const OperatorCall& call) { return clamp_between(call, "min", nullptr); }},
      {"aten::threshold", threshold},
      {"aten::add", [](const OperatorCall& call) { return add(call, 1); }},
      {"aten::sub", [](const OperatorCall& call) { return add(call, -1); }},
      {"aten::rsub", rsub},
      {"aten::mul", mul},
      {"aten::div", div},
      {"aten::neg", [](const OperatorCall& call) { return call.add(op::Multiply{-1}, {call.tensor("self")}); }},
      {"aten::abs", [](const OperatorCall& call) { return call.add(op::Abs{}, {call.tensor("self")}); }},
      {"aten::square", square},
      {"aten::pow", power},
  };
  return table;
}

}  // namespace holdfast::model::torchscript

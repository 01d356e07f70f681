#include "holdfast/model/activation.h"

#include <fmt/ranges.h>

#include "holdfast/core/torch.h"

namespace holdfast::model {
namespace {

using Kind = op::Activation::Kind;

// Gives the name of the activation's one parameter, or nothing.
std::string parameter_name(const MethodInfo& info) {
  return info.options.empty() ? std::string() : info.options.front().name;
}

const MethodInfo& info_of(const op::Activation& activation) {
  return activation_infos().at(static_cast<std::size_t>(activation.kind));
}

// Above beta x = 40 softplus is the line x itself: what is left out, exp(-40), is below the rounding of a double, and of
// all its derivatives. torch's own limit of 20 shows in double precision.
at::Tensor softplus(const at::Tensor& x, double beta) {
  return at::softplus(x, beta, /*threshold=*/40);
}

}  // namespace

const std::vector<MethodInfo>& activation_infos() {
  static const std::vector<MethodInfo> infos = {
      {.name = "relu", .summary = "max(x, 0)"},
      {.name = "relu6", .summary = "min(max(x, 0), 6)"},
      {.name = "leaky_relu",
       .summary = "x where it is positive, slope x elsewhere",
       .options = {{"slope", 0.01, between(0, 1), "slope for negative values"}}},
      {.name = "softplus",
       .summary = "log(1 + exp(beta x)) / beta, a smooth relu",
       .options = {{"beta", 1.0, above(0), "sharpness: relu is the limit of large beta"}}},
      {.name = "elu",
       .summary = "x where it is positive, alpha (exp(x) - 1) elsewhere",
       .options = {{"alpha", 1.0, above(0), "depth for negative values"}}},
      {.name = "gelu", .summary = "x times the normal distribution function of x"},
      {.name = "silu", .summary = "x times the logistic function of x"},
      {.name = "tanh", .summary = "hyperbolic tangent"},
      {.name = "sigmoid", .summary = "logistic function"},
  };
  return infos;
}

op::Activation parse_activation(std::string_view text) {
  const MethodCall call = parse_method_call(text);
  std::vector<std::string> known;
  for (const MethodInfo& info : activation_infos()) {
    if (info.name == call.name) {
      const Options options(info, call);
      const std::string parameter = parameter_name(info);
      return {.kind = static_cast<Kind>(known.size()), .parameter = parameter.empty() ? 0 : options.real(parameter)};
    }
    known.push_back(info.name);
  }
  usage_error("unknown activation '{}'{}", call.name, suggestion(call.name, known));
}

std::string to_string(const op::Activation& activation) {
  const MethodInfo& info = info_of(activation);
  const std::string parameter = parameter_name(info);
  if (parameter.empty()) return info.name;
  return Options(info, {.name = info.name, .options = {{parameter, fmt::format("{}", activation.parameter)}}}).canonical();
}

std::string with_activation(const std::string& architecture, std::string_view activation) {
  const MethodCall call = parse_method_call(architecture);
  std::vector<std::string> parts;
  for (const auto& [name, value] : call.options) {
    if (name == "activation") return architecture;
    parts.push_back(name + "=" + value);
  }
  const op::Activation parsed = parse_activation(activation);
  const MethodInfo& info = info_of(parsed);
  parts.push_back("activation=" + info.name);
  if (!info.options.empty()) parts.push_back(fmt::format("{}={}", parameter_name(info), parsed.parameter));
  return fmt::format("{}({})", call.name, fmt::join(parts, ","));
}

bool is_piecewise_linear(const op::Activation& activation) {
  return activation.kind == Kind::kRelu || activation.kind == Kind::kRelu6 || activation.kind == Kind::kLeakyRelu;
}

at::Tensor activate(const op::Activation& activation, const at::Tensor& x) {
  switch (activation.kind) {
    case Kind::kRelu:
      return at::relu(x);
    case Kind::kRelu6:
      return at::hardtanh(x, 0, 6);
    case Kind::kLeakyRelu:
      return at::leaky_relu(x, activation.parameter);
    case Kind::kSoftplus:
      return softplus(x, activation.parameter);
    case Kind::kElu:
      return at::elu(x, activation.parameter);
    case Kind::kGelu:
      return at::gelu(x);
    case Kind::kSilu:
      return at::silu(x);
    case Kind::kTanh:
      return at::tanh(x);
    case Kind::kSigmoid:
      return at::sigmoid(x);
  }
  bug(__FILE__, __LINE__, "a known activation");
}

at::Tensor activate_smoothed(const op::Activation& activation, const at::Tensor& x, double beta) {
  switch (activation.kind) {
    case Kind::kRelu:
      return softplus(x, beta);
    case Kind::kRelu6:
      return softplus(x, beta) - softplus(x - 6, beta);
    case Kind::kLeakyRelu:
      return x * activation.parameter + softplus(x, beta) * (1 - activation.parameter);
    default:
      return activate(activation, x);
  }
}

}  // namespace holdfast::model

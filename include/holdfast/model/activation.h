// Activations: by name, as functions, and their smooth stand-ins.
//
// An activation is written as a call, `softplus(beta=0.5)`. Calls do not nest, so an architecture spells it with options of its
// own, named alike: `mlp(activation=softplus,beta=0.5)`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/method.h"
#include "holdfast/core/stages.h"
#include "holdfast/model/network.h"

namespace holdfast::model {

// All of them, in the order of op::Activation::Kind.
const std::vector<MethodInfo>& activation_infos();

// Throws kUsage for an unknown name or option.
op::Activation parse_activation(std::string_view call);
// The canonical call: "relu", "softplus(beta=0.5)".
std::string to_string(const op::Activation& activation);

// The architecture's call with `activation` put into its options, unless it names an activation itself:
// ("mlp(hidden=64)", "softplus(beta=0.5)") -> "mlp(hidden=64,activation=softplus,beta=0.5)".
std::string with_activation(const std::string& architecture, std::string_view activation);

// Whether softplus stands in for it under a Rule: relu, relu6 and leaky_relu. The others are smooth enough as they are.
bool is_piecewise_linear(const op::Activation& activation);

// Element by element, differentiable any number of times.
at::Tensor activate(const op::Activation& activation, const at::Tensor& x);
// Each hinge max(x, 0) replaced by softplus(x) = log(1 + exp(beta x)) / beta, which tends to it as beta grows:
//     relu: softplus(x)     leaky_relu: slope x + (1 - slope) softplus(x)     relu6: softplus(x) - softplus(x - 6)
at::Tensor activate_smoothed(const op::Activation& activation, const at::Tensor& x, double beta);

}  // namespace holdfast::model

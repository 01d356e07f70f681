#include "smooth_ranges.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"

namespace holdfast::measure {
namespace {

using Kind = op::Activation::Kind;

at::Tensor normal_density(const at::Tensor& x) {
  return (-x.square() / 2).exp() / std::sqrt(2 * std::numbers::pi);
}

at::Tensor normal_share(const at::Tensor& x) {
  return at::erfc(-x / std::numbers::sqrt2) / 2;
}

// Where the derivative of `order` turns: zeros of the next one.
std::vector<double> turning_points(const op::Activation& activation, int order) {
  switch (activation.kind) {
    case Kind::kSoftplus:
      return order < 2 ? std::vector<double>{} : std::vector<double>{0};
    case Kind::kSigmoid:
      if (order == 0) return {};
      if (order == 1) return {0};
      return {-1.3169578969248166, 1.3169578969248166};  // log(2 + sqrt 3)
    case Kind::kTanh:
      if (order == 0) return {};
      if (order == 1) return {0};
      return {-0.6584789484624085, 0.6584789484624085};  // half of it
    case Kind::kGelu:
      if (order == 0) return {-0.751791524693564};
      if (order == 1) return {-std::numbers::sqrt2, std::numbers::sqrt2};
      return {-2, 0, 2};
    case Kind::kSilu:
      if (order == 0) return {-1.2784645427610741};
      if (order == 1) return {-2.3993572805154675, 2.3993572805154675};
      return {-3.4358409935351104, 0, 3.4358409935351104};
    default:
      bug(__FILE__, __LINE__, "an activation without ranges");
  }
}

}  // namespace

bool has_smooth_ranges(const op::Activation& activation) {
  switch (activation.kind) {
    case Kind::kSoftplus:
    case Kind::kSigmoid:
    case Kind::kTanh:
    case Kind::kGelu:
    case Kind::kSilu:
      return true;
    default:
      return false;
  }
}

at::Tensor activation_derivative(const op::Activation& activation, int order, const at::Tensor& x) {
  if (order == 0) return activate(activation, x);
  const double beta = activation.kind == Kind::kSoftplus ? activation.parameter : 1;
  const at::Tensor s = at::sigmoid(beta * x), slope = beta * s * at::sigmoid(-beta * x);  // of s
  switch (activation.kind) {
    case Kind::kSoftplus:
      return order == 1 ? s : slope;
    case Kind::kSigmoid:
      return order == 1 ? slope : slope * (1 - 2 * s);
    case Kind::kTanh: {
      const at::Tensor t = at::tanh(x), first = 1 - t.square();
      return order == 1 ? first : -2 * t * first;
    }
    case Kind::kGelu:
      return order == 1 ? normal_share(x) + x * normal_density(x) : normal_density(x) * (2 - x.square());
    case Kind::kSilu:
      return order == 1 ? s + x * slope : slope * (2 + x * (1 - 2 * s));
    default:
      bug(__FILE__, __LINE__, "an activation without ranges");
  }
}

Enclosure activation_range(const op::Activation& activation, int order, const at::Tensor& low, const at::Tensor& high) {
  const at::Tensor first = activation_derivative(activation, order, low), last = activation_derivative(activation, order, high);
  at::Tensor least = at::minimum(first, last), most = at::maximum(first, last);
  for (const double point : turning_points(activation, order)) {
    const at::Tensor passed = (low < point).logical_and(high > point);
    const at::Tensor value = activation_derivative(activation, order, at::scalar_tensor(point, low.options()));
    least = at::where(passed, at::minimum(least, value), least);
    most = at::where(passed, at::maximum(most, value), most);
  }
  return {(least + most) / 2, (most - least) / 2};
}

}  // namespace holdfast::measure

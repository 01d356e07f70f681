#include "operations.h"

#include <torch/csrc/autograd/custom_function.h>

#include "holdfast/core/torch.h"

namespace holdfast::model {
namespace {

// [C] -> [1, C, 1, ...] to go with `x`.
at::Tensor per_channel(const at::Tensor& values, const at::Tensor& x) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[1] = values.size(0);
  return values.view(shape);
}

std::vector<std::int64_t> all_but_channels(const at::Tensor& x) {
  std::vector<std::int64_t> dims;
  for (std::int64_t dim = 0; dim < x.dim(); ++dim) {
    if (dim != 1) dims.push_back(dim);
  }
  return dims;
}

at::Tensor fused(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& mean,
                 const at::Tensor& variance, double epsilon) {
  return at::batch_norm(x, weight, bias, mean, variance, /*training=*/false, /*momentum=*/0, epsilon, /*cudnn_enabled=*/true);
}

// torch differentiates its fused operation twice through the formulas for batch statistics, although with running ones it
// is a scale and a shift. This keeps the fused forward and spells the derivatives out in plain operations, which autograd
// differentiates further by itself.
class EvaluationNorm : public torch::autograd::Function<EvaluationNorm> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor& mean, const at::Tensor& variance, double epsilon) {
    // Copies of the statistics: a training pass before the backward one may update the originals in place.
    const at::Tensor inverse_deviation = at::rsqrt(variance + epsilon);
    const bool weight_needed = weight.requires_grad();
    context->save_for_backward(
        {weight, inverse_deviation, weight_needed ? x : at::Tensor(), weight_needed ? mean.clone() : at::Tensor()});
    return fused(x, weight, bias, mean, variance, epsilon);
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    const torch::autograd::tensor_list saved = context->get_saved_variables();
    const at::Tensor &weight = saved[0], &inverse_deviation = saved[1], &x = saved[2], &mean = saved[3];
    const at::Tensor& gradient = gradients[0];
    torch::autograd::tensor_list result(6);
    if (!gradient.defined()) return result;
    if (context->needs_input_grad(0)) {
      result[0] = gradient * per_channel(weight * inverse_deviation, gradient);
    }
    if (x.defined() && context->needs_input_grad(1)) {
      const at::Tensor normalised = (x - per_channel(mean, x)) * per_channel(inverse_deviation, x);
      result[1] = (gradient * normalised).sum(all_but_channels(gradient));
    }
    if (context->needs_input_grad(2)) result[2] = gradient.sum(all_but_channels(gradient));
    return result;
  }
};

// In plain operations; for the rare layer without weight or bias, which a Function cannot take.
at::Tensor scaled_and_shifted(const op::BatchNorm& norm, const at::Tensor& x) {
  at::Tensor scale = at::rsqrt(norm.variance + norm.epsilon);
  if (norm.weight.defined()) scale = scale * norm.weight;
  at::Tensor shift = -norm.mean * scale;
  if (norm.bias.defined()) shift = shift + norm.bias;
  return x * per_channel(scale, x) + per_channel(shift, x);
}

bool needs_gradient(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad();
}

}  // namespace

at::Tensor batch_norm_evaluation(const op::BatchNorm& norm, const at::Tensor& x) {
  if (!at::GradMode::is_enabled() || !(needs_gradient(x) || needs_gradient(norm.weight) || needs_gradient(norm.bias))) {
    return fused(x, norm.weight, norm.bias, norm.mean, norm.variance, norm.epsilon);
  }
  if (!norm.weight.defined() || !norm.bias.defined()) return scaled_and_shifted(norm, x);
  return EvaluationNorm::apply(x, norm.weight, norm.bias, norm.mean, norm.variance, norm.epsilon);
}

}  // namespace holdfast::model

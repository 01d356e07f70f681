#include "operations.h"

#include <torch/csrc/autograd/custom_function.h>

#include "holdfast/core/error.h"
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

// How many values a channel has, their mean and their summed squared distances from it, [2 C + 1] in double. None where the
// rank's rows are not to count.
at::Tensor moments(const at::Tensor& x, bool counts) {
  const auto [variance, mean] = at::var_mean(x, all_but_channels(x), /*correction=*/0);
  const double count = counts ? static_cast<double>(x.numel() / x.size(1)) : 0;
  return at::cat(
      {mean.to(at::kDouble), variance.to(at::kDouble) * count, at::full({1}, count, mean.options().dtype(at::kDouble))});
}

// Batch normalisation of a batch that several ranks have a share of each. Every rank hears the moments of all shares, and the way
// back adds up what each rank knows of the two means in it.
class SharedNorm : public torch::autograd::Function<SharedNorm> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const op::BatchNorm& norm, const BatchShare& share) {
    const std::int64_t channels = x.size(1);
    const at::Tensor own = moments(x, share.rows.counts);
    at::Tensor all = at::zeros({share.ranks->size(), own.numel()}, own.options());
    all.select(0, share.ranks->rank()).copy_(own);
    share.ranks->add_up(all);
    const at::Tensor means = all.slice(1, 0, channels), squares = all.slice(1, channels, 2 * channels),
                     counts = all.slice(1, 2 * channels);
    const at::Tensor count = counts.sum(), mean = (counts * means).sum(0) / count;
    const at::Tensor squared = (squares + counts * (means - mean).square()).sum(0);
    norm.mean.mul_(1 - norm.momentum).add_(mean.to(norm.mean.dtype()), norm.momentum);
    norm.variance.mul_(1 - norm.momentum).add_((squared / (count - 1)).to(norm.variance.dtype()), norm.momentum);

    const at::Tensor centre = mean.to(x.dtype()), inverse = at::rsqrt(squared / count + norm.epsilon).to(x.dtype());
    context->save_for_backward({x, weight, centre, inverse, count});
    context->saved_data["ranks"] = reinterpret_cast<std::int64_t>(share.ranks);
    context->saved_data["counts"] = share.rows.counts;
    return (x - per_channel(centre, x)) * per_channel(inverse * weight, x) + per_channel(bias, x);
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& gradients) {
    HOLDFAST_CHECK(!at::GradMode::is_enabled());  // differentiable once
    const torch::autograd::tensor_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &inverse = saved[3];
    const at::Tensor normalised = (x - per_channel(saved[2], x)) * per_channel(inverse, x);
    const at::Tensor of_bias = gradients[0].sum(all_but_channels(x)),
                     of_weight = (gradients[0] * normalised).sum(all_but_channels(x));
    at::Tensor sums = at::stack({of_bias, of_weight}).to(at::kDouble);
    auto* ranks = reinterpret_cast<RankSum*>(context->saved_data["ranks"].toInt());
    ranks->add_up(sums);
    const at::Tensor means = (sums / saved[4]).to(x.dtype());
    at::Tensor of_x =
        (gradients[0] - per_channel(means[0], x) - normalised * per_channel(means[1], x)) * per_channel(weight * inverse, x);
    if (!context->saved_data["counts"].toBool()) of_x = at::zeros_like(of_x);
    return {of_x, of_weight, of_bias, {}, {}};
  }
};

}  // namespace

at::Tensor batch_norm_training(const op::BatchNorm& norm, const at::Tensor& x, const BatchShare* share) {
  const bool is_shared = share != nullptr && share->ranks->size() > 1;
  if (!is_shared && x.numel() / x.size(1) < 2) {
    input_error("a batch of one value a channel has no variance to normalise with; train with batches of at least 2 samples");
  }
  if (!is_shared) {
    return at::batch_norm(x, norm.weight, norm.bias, norm.mean, norm.variance, /*training=*/true, norm.momentum, norm.epsilon,
                          /*cudnn_enabled=*/true);
  }
  const auto of_channels = [&](const at::Tensor& own, double otherwise) {
    return own.defined() ? own : at::full({x.size(1)}, otherwise, x.options());
  };
  return SharedNorm::apply(x, of_channels(norm.weight, 1), of_channels(norm.bias, 0), norm, *share);
}

at::Tensor batch_norm_evaluation(const op::BatchNorm& norm, const at::Tensor& x) {
  if (!at::GradMode::is_enabled() || !(needs_gradient(x) || needs_gradient(norm.weight) || needs_gradient(norm.bias))) {
    return fused(x, norm.weight, norm.bias, norm.mean, norm.variance, norm.epsilon);
  }
  if (!norm.weight.defined() || !norm.bias.defined()) return scaled_and_shifted(norm, x);
  return EvaluationNorm::apply(x, norm.weight, norm.bias, norm.mean, norm.variance, norm.epsilon);
}

}  // namespace holdfast::model

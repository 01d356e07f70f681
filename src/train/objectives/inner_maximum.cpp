#include "inner_maximum.h"

#include <algorithm>

#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::train {
namespace {

// Ball, range and frozen features of a batch, made of tensor operations: they run wherever the batch is.
class AllowedRange {
 public:
  AllowedRange(const TrainBatch& batch, double epsilon) : low_(batch.inputs - epsilon), high_(batch.inputs + epsilon) {
    const Schema& schema = batch.schema;
    if (schema.features.empty()) {
      if (!schema.range) return;
      low_.clamp_min_(schema.range->first);
      high_.clamp_max_(schema.range->second);
    } else {
      restrict_to(schema.features, batch.inputs);
    }
    // A clean value outside the range may stay where it is.
    low_ = at::minimum(low_, batch.inputs);
    high_ = at::maximum(high_, batch.inputs);
  }

  at::Tensor project(const at::Tensor& points) const { return at::minimum(at::maximum(points, low_), high_); }

 private:
  void restrict_to(const std::vector<Feature>& features, const at::Tensor& inputs) {
    std::vector<double> low, high;
    std::vector<std::int64_t> frozen;
    for (const Feature& feature : features) {
      low.push_back(feature.low);
      high.push_back(feature.high);
      frozen.push_back(feature.frozen ? 1 : 0);
    }
    const auto shape = inputs.sizes().slice(1);
    const auto numbers = [&](const std::vector<double>& values) {
      return at::tensor(values, at::kDouble).to(inputs.options()).view(shape);
    };
    const at::Tensor stays = at::tensor(frozen, at::kLong).to(inputs.device(), at::kBool).view(shape);
    low_ = at::where(stays, inputs, at::maximum(low_, numbers(low)));
    high_ = at::where(stays, inputs, at::minimum(high_, numbers(high)));
  }

  at::Tensor low_, high_;
};

at::Tensor random_start(const TrainBatch& batch, double epsilon) {
  const at::Tensor uniform =
      random_uniform(batch.inputs.sizes().slice(1), batch.sample_ids, batch.seed, "inner maximum", batch.inputs.device());
  return batch.inputs + (2 * uniform - 1).to(batch.inputs.options()) * epsilon;
}

}  // namespace

std::vector<OptionSpec> InnerMaximum::options() {
  return {{"epsilon", 0.3, at_least(0), "radius of the l_inf ball round a sample, in the units of the inputs"},
          {"step_size", 0.01, above(0), "length of a step of the inner maximisation"},
          {"steps", 40, at_least(0), "of the inner maximisation; 0: a random point of the ball"},
          {"warmup", 0.0, between(0, 1), "share of the training over which epsilon and step size rise from 0"}};
}

InnerMaximum InnerMaximum::of(const Options& options) {
  return {.epsilon = options.real("epsilon"),
          .step_size = options.real("step_size"),
          .steps = options.integer("steps"),
          .warmup = options.real("warmup")};
}

at::Tensor InnerMaximum::find(const TrainBatch& batch, const Value& value) const {
  const double share = warmup > 0 ? std::min(1.0, batch.progress / warmup) : 1;
  const AllowedRange allowed(batch, share * epsilon);
  at::Tensor moved = allowed.project(random_start(batch, share * epsilon));
  for (std::int64_t i = 0; i < steps; ++i) {
    at::Tensor gradient;
    {
      const at::AutoGradMode with_graph(true);
      const at::Tensor point = moved.detach().requires_grad_();
      gradient = torch::autograd::grad({value(point).sum()}, {point})[0];
    }
    moved = allowed.project(moved + share * step_size * gradient.sign());
  }
  return moved;
}

std::vector<Preset> chen_presets(const std::vector<std::vector<std::pair<std::string, OptionValue>>>& more) {
  const std::vector<std::pair<std::string, OptionValue>> small_step{
      {"epsilon", 8.0 / 255}, {"step_size", 2.0 / 255}, {"steps", std::int64_t{7}}};
  std::vector<Preset> presets{
      {.name = "mnist", .values = {{"epsilon", 0.3}, {"step_size", 0.01}, {"steps", std::int64_t{40}}}, .help = "MNIST"},
      {.name = "fashion_mnist",
       .values = {{"epsilon", 0.1}, {"step_size", 0.01}, {"steps", std::int64_t{20}}},
       .help = "Fashion-MNIST"},
      {.name = "gtsrb", .values = small_step, .help = "traffic signs: 8 of 255, steps of 2"},
      {.name = "flower", .values = small_step, .help = "flowers: 8 of 255, steps of 2"}};
  for (std::size_t i = 0; i < presets.size(); ++i)
    presets[i].values.insert(presets[i].values.end(), more[i].begin(), more[i].end());
  return presets;
}

at::Tensor hits(const at::Tensor& logits, const at::Tensor& labels) {
  return (logits.detach().argmax(1) == labels).to(logits.scalar_type());
}

}  // namespace holdfast::train

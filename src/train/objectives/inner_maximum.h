// The inner maximum of robust training: the worst point of an l_inf ball round each sample, by projected sign-gradient ascent
// from a random point (Madry et al., "Towards Deep Learning Models Resistant to Adversarial Attacks", ICLR 2018).
//     x'_0 = P(x + u), u uniform in [-epsilon, epsilon]     x'_{t+1} = P(x'_t + step_size sign(grad of value by x'_t))
// P: the nearest point of the ball and of the range of valid inputs; frozen features stay. Inputs are raw, so epsilon and
// step size are in their units: 8/255 where a paper says 8 of 255. Over the share `warmup` of the training both rise from 0 in a
// line: a network that has learnt nothing yet, against the whole ball, may never learn to tell classes apart in a short training.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/train/objective.h"

namespace holdfast::train {

struct InnerMaximum {
  double epsilon = 0.3;
  double step_size = 0.01;
  std::int64_t steps = 40;
  double warmup = 0;

  // `epsilon`, `step_size`, `steps` and `warmup`, with MNIST's values as defaults.
  static std::vector<OptionSpec> options();
  static InnerMaximum of(const Options& options);

  // What is to be large: [B] for [B, sample...], differentiable by its argument.
  using Value = std::function<at::Tensor(const at::Tensor& moved)>;
  // [B, sample...], detached. The start depends on (batch.seed, sample id) alone.
  at::Tensor find(const TrainBatch& batch, const Value& value) const;
};

// What differs between the datasets of Chen et al., "Robust Attribution Regularization", NeurIPS 2019, as presets `mnist`,
// `fashion_mnist`, `gtsrb` and `flower`; `more` has further values of each, in that order.
std::vector<Preset> chen_presets(const std::vector<std::vector<std::pair<std::string, OptionValue>>>& more = {{}, {}, {}, {}});

// 1 where the label is predicted, else 0; [B], without a graph: a term that is reported only.
at::Tensor hits(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace holdfast::train

// What a step of IG-SUM-NORM costs beside the passes it needs, in one thread: cnn_chen, 50 images, 7 inner steps of 5 points, 10
// points in the loss, against bare LibTorch in the blocks that suit it best.
//     inner step   forward, gradient by the points, gradient of that gradient by the points
//     loss         forward, gradient by the points, gradient of all by the weights
//     at most 1.15 times
// Both sides are first shown to give the same loss and the same gradient by the weights; times are medians of interleaved rounds,
// of processor time.
#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/model.h"
#include "holdfast/train/objective.h"
#include "timing.h"

namespace holdfast::bench {
namespace {

constexpr std::int64_t kImages = 50, kInnerSteps = 7, kInnerPoints = 5, kPoints = 10;
constexpr double kEpsilon = 0.3, kStep = 0.1, kWeight = 0.1, kLimit = 1.15;
constexpr int kRounds = 5;

struct Subject {
  Network network = architectures().make("cnn_chen(width=16x32x256)")->build(7);
  Schema schema = Schema::of(Layout::grid(1, 28, 28));
  at::Tensor ids = at::arange(kImages, at::kLong);
  at::Tensor inputs = random_uniform({1, 28, 28}, ids, 3, "bench");
  at::Tensor labels = ids.remainder(10);
  std::vector<at::Tensor> weights;

  Subject() {
    schema.range = {0.0, 1.0};
    network.require_grad(true);
    for (const Parameter& parameter : network.parameters()) weights.push_back(parameter.tensor);
  }
  at::Tensor logits(const at::Tensor& x) const {
    const auto stage = [&](const at::Tensor& in, std::size_t i) {
      return at::max_pool2d(at::relu(at::conv2d(in, weights[i], weights[i + 1], 1, 2)), 2);
    };
    const at::Tensor features = stage(stage(x, 0), 2).flatten(1);
    return at::linear(at::relu(at::linear(features, weights[4], weights[5])), weights[6], weights[7]);
  }
  TrainBatch batch() const { return {.inputs = inputs, .labels = labels, .sample_ids = ids, .schema = schema, .seed = 5}; }
};

// The same objective spelled out, all points in one batch.
struct Plain {
  const Subject& subject;

  // CE at the end and the penalty, [B] each.
  std::pair<at::Tensor, at::Tensor> values(const at::Tensor& moved, std::int64_t points) const {
    const at::Tensor shares = at::arange(1, points + 1, at::kFloat).div_(static_cast<double>(points)).view({1, points, 1, 1, 1});
    const at::Tensor step = moved - subject.inputs;
    at::Tensor rows = (subject.inputs.unsqueeze(1) + shares * step.unsqueeze(1)).flatten(0, 1);
    if (!rows.requires_grad()) rows.requires_grad_();
    const at::Tensor losses =
        at::cross_entropy_loss(subject.logits(rows), subject.labels.repeat_interleave(points), {}, at::Reduction::None);
    const at::Tensor gradients = torch::autograd::grad({losses.sum()}, {rows}, {}, true, true)[0];
    const at::Tensor sum = gradients.view({kImages, points, 1, 28, 28}).sum(1);
    return {losses.view({kImages, points}).select(1, -1), (step * sum / static_cast<double>(points)).flatten(1).abs().sum(1)};
  }

  at::Tensor loss() const {
    const at::Tensor start = random_uniform({1, 28, 28}, subject.ids, 5, "inner maximum");
    const auto project = [&](const at::Tensor& x) {
      return at::minimum(at::maximum(x, subject.inputs - kEpsilon), subject.inputs + kEpsilon).clamp(0, 1);
    };
    at::Tensor moved = project(subject.inputs + (2 * start - 1) * kEpsilon);
    for (std::int64_t i = 0; i < kInnerSteps; ++i) {
      const at::Tensor point = moved.detach().requires_grad_();
      const auto [ce, penalty] = values(point, kInnerPoints);
      moved = project(moved + kStep * torch::autograd::grad({(ce + kWeight * penalty).sum()}, {point})[0].sign());
    }
    const auto [ce, penalty] = values(moved, kPoints);
    return ce.mean() + kWeight * penalty.mean();
  }
};

// The passes alone, `rows` points at a time.
void bare_passes(const Subject& subject, std::int64_t points, std::int64_t rows, bool by_weights) {
  const at::Tensor all = subject.inputs.repeat({points, 1, 1, 1}), labels = subject.labels.repeat({points});
  for (std::int64_t at = 0; at < all.size(0); at += rows) {
    const at::Tensor x = all.slice(0, at, at + rows).detach().requires_grad_();
    const at::Tensor loss = at::cross_entropy_loss(subject.logits(x), labels.slice(0, at, at + rows), {}, at::Reduction::Sum);
    const at::Tensor gradient = torch::autograd::grad({loss}, {x}, {}, true, true)[0];
    if (by_weights) {
      (void)torch::autograd::grad({loss + gradient.sum()}, subject.weights);
    } else {
      (void)torch::autograd::grad({loss + gradient.sum()}, {x});
    }
  }
}

int run() {
  Subject subject;
  const auto objective =
      objectives().make(fmt::format("ig_sum_norm(epsilon={},step_size={},steps={},weight={},inner_path_steps={},path_steps={})",
                                    kEpsilon, kStep, kInnerSteps, kWeight, kInnerPoints, kPoints));
  const TrainBatch batch = subject.batch();
  const auto step = [&] {
    const Loss loss = loss_of(*objective, subject.network, batch);
    return std::pair(loss.total.item<double>(), torch::autograd::grad({loss.total}, subject.weights));
  };
  const auto [total, gradients] = step();
  const at::Tensor expected = Plain{subject}.loss();
  const auto expected_gradients = torch::autograd::grad({expected}, subject.weights);
  double apart = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    apart = std::max(apart, ((gradients[i] - expected_gradients[i]).norm() / expected_gradients[i].norm()).item<double>());
  fmt::print("loss {:.6f}, spelled out {:.6f}; gradients differ by {:.1e} of their length\n", total, expected.item<double>(),
             apart);
  HOLDFAST_CHECK(std::abs(total - expected.item<double>()) < 1e-3 * total && apart < 2e-2);

  std::vector<double> ours;
  std::vector<std::vector<double>> theirs(3);
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(thread_seconds([&] { (void)step(); }));
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const std::int64_t rows = std::vector<std::int64_t>{50, 125, 500}[i];
      theirs[i].push_back(thread_seconds([&] {
        for (std::int64_t k = 0; k < kInnerSteps; ++k) bare_passes(subject, kInnerPoints, rows, /*by_weights=*/false);
        bare_passes(subject, kPoints, rows, /*by_weights=*/true);
      }));
    }
  }
  const double own = median(ours), rival = std::min({median(theirs[0]), median(theirs[1]), median(theirs[2])});
  fmt::print("ig_sum_norm {:.0f} ms a step, bare passes {:.0f} ms: {:.3f} times (limit {})\n", own * 1e3, rival * 1e3,
             own / rival, kLimit);
  return own / rival <= kLimit ? 0 : 1;
}

}  // namespace
}  // namespace holdfast::bench

int main() {
  const holdfast::TileThread one_thread;
  return holdfast::bench::run();
}

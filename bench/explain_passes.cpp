// What explainers cost beside the passes they need: saliency and integrated gradients of 50 and 100 steps, on an MLP 30-32-2 with
// 1000 samples and on cnn_chen with 32 images, at most 1.05 times the same passes in plain batched LibTorch. One thread.
//
// The plain side takes its points in batches of the size that suits it best, found by trying. Maps are compared before anything
// is timed; times are medians of interleaved rounds.
#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "timing.h"

namespace holdfast::bench {
namespace {

constexpr double kLimit = 1.05;

at::Tensor uniform(at::IntArrayRef shape, std::uint64_t seed) {
  at::Tensor values = at::empty(shape);
  RandomStream stream(seed, "bench");
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = static_cast<float>(stream.uniform());
  return values;
}

struct Subject {
  std::string name;
  Network network;
  at::Tensor inputs;
  std::function<at::Tensor(const at::Tensor&)> logits;  // plain torch, the same weights
  int rounds;
};

std::vector<at::Tensor> weights_of(const Network& network) {
  std::vector<at::Tensor> weights;
  for (const Parameter& parameter : network.parameters()) weights.push_back(parameter.tensor);
  return weights;
}

Subject mlp() {
  const Network network = architectures().make("mlp(inputs=30,hidden=32,classes=2)")->build(1);
  const std::vector<at::Tensor> w = weights_of(network);
  HOLDFAST_CHECK(w.size() == 4);
  return {"mlp 30-32-2, 1000 samples", network, uniform({1000, 30}, 2),
          [w](const at::Tensor& x) { return at::linear(at::relu(at::linear(x, w[0], w[1])), w[2], w[3]); }, 41};
}

Subject cnn_chen() {
  const Network network = architectures().make("cnn_chen")->build(1);
  const std::vector<at::Tensor> w = weights_of(network);
  HOLDFAST_CHECK(w.size() == 8);
  const auto logits = [w](const at::Tensor& x) {
    const at::Tensor one = at::max_pool2d(at::relu(at::conv2d(x, w[0], w[1], 1, 2)), 2);
    const at::Tensor two = at::max_pool2d(at::relu(at::conv2d(one, w[2], w[3], 1, 2)), 2);
    return at::linear(at::relu(at::linear(two.flatten(1), w[4], w[5])), w[6], w[7]);
  };
  return {"cnn_chen, 32 images", network, uniform({32, 1, 28, 28}, 3), logits, 5};
}

at::Tensor gradient(const Subject& subject, const at::Tensor& points, const at::Tensor& targets) {
  const at::Tensor z = points.requires_grad_();
  const at::Tensor p = at::softmax(subject.logits(z), 1).gather(1, targets.unsqueeze(1)).sum();
  return torch::autograd::grad({p}, {z})[0];
}

// The bare passes of `steps` steps from a zero baseline, `rows` points at a time; 0 steps: the gradient alone.
at::Tensor bare(const Subject& subject, const at::Tensor& targets, std::int64_t steps, std::int64_t rows) {
  const at::Tensor& x = subject.inputs;
  if (steps == 0) return gradient(subject, x.detach().clone(), targets).abs();
  const std::int64_t samples = std::min(rows, x.size(0)), some = std::max<std::int64_t>(1, rows / samples);
  at::Tensor sum = at::zeros_like(x);
  for (std::int64_t sample = 0; sample < x.size(0); sample += samples) {
    const at::Tensor here = x.slice(0, sample, sample + samples), classes = targets.slice(0, sample, sample + samples);
    at::Tensor total = sum.slice(0, sample, sample + samples);
    for (std::int64_t k = 0; k < steps; k += some) {
      const std::int64_t count = std::min(some, steps - k);
      std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()) + 1, 1);
      shape[0] = count;
      const at::Tensor places = at::arange(k + 1, k + count + 1, at::kFloat).div(static_cast<double>(steps)).view(shape);
      const at::Tensor g = gradient(subject, (places * here).flatten(0, 1), classes.repeat({count}));
      total += g.view({count, here.size(0), -1}).sum(0).view_as(here) / static_cast<double>(steps);
    }
  }
  return x * sum;
}

at::Tensor true_maps(const Explanation& explanation) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(explanation.maps.dim()), 1);
  shape[0] = explanation.maps.size(0);
  return explanation.maps * explanation.log_scale.exp().view(shape);
}

bool compare(const Subject& subject, const std::string& call, std::int64_t steps) {
  const auto model = make_model(subject.network);
  const auto explainer = explainers().make(call);
  at::Tensor targets;
  {
    const at::NoGradGuard no_graph;
    targets = predicted_class(model->logits(subject.inputs));
  }
  const ExplainTask task{
      .model = *model,
      .samples = {.inputs = subject.inputs, .targets = targets, .ids = at::arange(subject.inputs.size(0), at::kLong)}};
  std::int64_t rows = subject.inputs.size(0);
  double quickest = 1e30;
  for (std::int64_t some = 16; steps > 0 && some <= 16384 && some <= subject.inputs.size(0) * steps; some *= 2) {
    std::vector<double> times;
    for (int i = 0; i < 3; ++i) times.push_back(wall_seconds([&] { (void)bare(subject, targets, steps, some); }));
    if (median(times) < quickest) quickest = median(times), rows = some;
    if (median(times) > 2 * quickest) break;
  }
  const at::Tensor expected = bare(subject, targets, steps, rows);
  const double apart = (true_maps(explainer->attribute(task)) - expected).abs().max().item<double>();
  HOLDFAST_CHECK(apart <= 1e-4 * expected.abs().max().item<double>());

  std::vector<double> ours, theirs;
  for (int round = 0; round < subject.rounds; ++round) {
    ours.push_back(wall_seconds([&] { (void)explainer->attribute(task); }));
    theirs.push_back(wall_seconds([&] { (void)bare(subject, targets, steps, rows); }));
  }
  const double ratio = median(ours) / median(theirs);
  fmt::print("{:26} {:32} {:9.2f} ms, bare passes {:9.2f} ms ({} rows at a time): {:.3f} times (limit {})\n", subject.name, call,
             median(ours) * 1e3, median(theirs) * 1e3, rows, ratio, kLimit);
  return ratio <= kLimit;
}

int run() {
  const TileThread one_thread;
  bool passed = true;
  for (const Subject& subject : {mlp(), cnn_chen()}) {
    passed &= compare(subject, "saliency", 0);
    passed &= compare(subject, "integrated_gradients(steps=50)", 50);
    passed &= compare(subject, "integrated_gradients(steps=100)", 100);
  }
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace holdfast::bench

int main() {
  return holdfast::bench::run();
}

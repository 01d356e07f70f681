// What batched `er` costs beside the passes it needs: on an n-32-2 MLP, one tile of 1000 samples, one thread, an iteration
// takes one forward, one gradient and one double backward, and at most 1.15 times their bare LibTorch time.
//
// Both sides are first shown to walk the same iterates; times are medians of interleaved rounds.
#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/core.h>

#include "holdfast/attack/attack.h"
#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"

namespace holdfast {
namespace {

constexpr std::int64_t kSamples = 1000, kFeatures = 30, kHidden = 32, kTop = 8, kSteps = 100;
constexpr int kRounds = 31;
constexpr double kEpsilon = 0.5, kLimit = 1.15;

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed, double deviation) {
  at::Tensor values = at::empty(shape);
  RandomStream stream(seed, "bench");
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = static_cast<float>(deviation * stream.normal());
  return values;
}

struct Mlp {
  at::Tensor first_weight = normal({kHidden, kFeatures}, 1, 0.25), first_bias = normal({kHidden}, 2, 0.3);
  at::Tensor last_weight = normal({2, kHidden}, 3, 0.4), last_bias = at::zeros({2});

  at::Tensor logits(const at::Tensor& x) const {
    return at::linear(at::relu(at::linear(x, first_weight, first_bias)), last_weight, last_bias);
  }
  Network network() const {
    Network network;
    network.add("input", op::Input{});
    network.add("first", op::Linear{first_weight, first_bias});
    network.add("act", op::Activation{});
    network.add("last", op::Linear{last_weight, last_bias});
    return network;
  }
};

// The passes of one iteration and nothing else: the objective's gradient at x.
struct Bare {
  const Mlp& mlp;
  at::Tensor targets;         // [B, 1]
  at::Tensor cotangent = {};  // weights times clean signs

  at::Tensor gradient(const at::Tensor& at_point) const {
    const at::Tensor x = at_point.detach().requires_grad_();
    const at::Tensor p = at::softmax(mlp.logits(x), 1).gather(1, targets);
    const at::Tensor map = torch::autograd::grad({p.sum()}, {x}, {}, true, true)[0];
    return torch::autograd::grad({map}, {x}, {cotangent})[0];
  }

  void set_objective(const at::Tensor& inputs) {
    const at::Tensor x = inputs.detach().requires_grad_();
    const at::Tensor map = torch::autograd::grad({at::softmax(mlp.logits(x), 1).gather(1, targets).sum()}, {x})[0];
    const at::Tensor top = at::zeros_like(map).scatter_(1, std::get<1>(map.abs().topk(kTop, 1)), 1.0);
    cotangent = map.sign() * (top / kTop - (1 - top) / (kFeatures - kTop));
  }
};

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run() {
  const TileThread one_thread;
  const Mlp mlp;
  const at::Tensor inputs = normal({kSamples, kFeatures}, 4, 1);
  const auto model = make_model(mlp.network());
  const auto explainer = explainers().make("saliency");
  const auto metric = metrics().make(fmt::format("top_k(k={})", kTop));
  const auto attack = attacks().make(fmt::format("er(steps={})", kSteps));
  const Schema schema = Schema::of(Layout::vector(kFeatures));
  const ThreatModel threat = ThreatModel::make(Norm::kL2, kEpsilon, std::nullopt, schema);
  AttackTask task{.model = *model,
                  .explainer = *explainer,
                  .metric = *metric,
                  .threat = threat,
                  .schema = schema,
                  .inputs = inputs,
                  .targets = predicted_class(mlp.logits(inputs)),
                  .sample_ids = at::arange(kSamples, at::kLong)};
  Bare bare{mlp, task.targets.unsqueeze(1)};
  bare.set_objective(inputs);

  // The same iterates: a ReLU boundary may be crossed a step earlier or later by rounding, in a handful of samples.
  at::Tensor x = inputs;
  for (std::int64_t i = 0; i < kSteps; ++i) {
    const at::Tensor g = bare.gradient(x);
    x = x - kEpsilon / kSteps * g / g.norm(2, 1, true).clamp_min(1e-30);
  }
  task.select = Select::kLast;
  const AttackResult walked = attack->run(task);
  std::int64_t whole = 0, apart = 0;
  for (std::int64_t b = 0; b < kSamples; ++b) {
    if (walked.samples[static_cast<std::size_t>(b)].iteration != kSteps) continue;
    ++whole;
    apart += (walked.perturbed[b] - x[b]).abs().max().item<double>() > 1e-4;
  }
  fmt::print("{} of {} samples walked all {} steps; {} of them ended elsewhere than the plain loop\n", whole, kSamples, kSteps,
             apart);
  HOLDFAST_CHECK(whole > kSamples / 2 && apart * 50 <= whole);

  task.select = Select::kWorst;
  std::vector<double> ours, theirs;
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(seconds([&] { (void)attack->run(task); }) / kSteps);
    theirs.push_back(seconds([&] {
                       for (std::int64_t i = 0; i < kSteps; ++i) (void)bare.gradient(inputs);
                     }) /
                     kSteps);
  }
  const double ratio = median(ours) / median(theirs);
  fmt::print("er {:.3f} ms an iteration, bare passes {:.3f} ms: {:.3f} times (limit {})\n", median(ours) * 1e3,
             median(theirs) * 1e3, ratio, kLimit);
  return ratio <= kLimit ? 0 : 1;
}

}  // namespace
}  // namespace holdfast

int main() {
  return holdfast::run();
}

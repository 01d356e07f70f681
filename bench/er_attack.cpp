// What batched `er` costs beside the passes it needs: one forward, one gradient and one double backward an iteration, in one tile
// on one thread, against their bare LibTorch time.
//     30-32-2 MLP, 1000 samples    at most that time, and 0.3 microseconds a sample: its passes are fused
//     cnn_chen, 25 images          at most 1.05 times
//
// Both sides are first shown to walk the same iterates; times are medians of interleaved rounds, of processor time.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "holdfast/attack/attack.h"
#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "timing.h"

namespace holdfast::bench {
namespace {

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed, double deviation) {
  at::Tensor values = at::empty(shape);
  RandomStream stream(seed, "bench");
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = static_cast<float>(deviation * stream.normal());
  return values;
}

// A network, and its forward pass spelled out.
struct Subject {
  std::string name;
  Network network;
  std::function<at::Tensor(const at::Tensor&)> logits;
  Schema schema;
  at::Tensor inputs;
  std::int64_t top, steps;
  double epsilon;
  int rounds;
  double limit;
  double microseconds = std::numeric_limits<double>::infinity();  // a sample and iteration, at most
};

Subject mlp() {
  const at::Tensor first_weight = normal({32, 30}, 1, 0.25), first_bias = normal({32}, 2, 0.3);
  const at::Tensor last_weight = normal({2, 32}, 3, 0.4), last_bias = at::zeros({2});
  Network network;
  network.add("input", op::Input{});
  network.add("first", op::Linear{first_weight, first_bias});
  network.add("act", op::Activation{});
  network.add("last", op::Linear{last_weight, last_bias});
  return {.name = "30-32-2 MLP, 1000 samples",
          .network = std::move(network),
          .logits =
              [=](const at::Tensor& x) {
                return at::linear(at::relu(at::linear(x, first_weight, first_bias)), last_weight, last_bias);
              },
          .schema = Schema::of(Layout::vector(30)),
          .inputs = normal({1000, 30}, 4, 1),
          .top = 8,
          .steps = 100,
          .epsilon = 0.5,
          .rounds = 31,
          .limit = 1,
          .microseconds = 0.3};
}

Subject cnn() {
  Network network = architectures().make("cnn_chen")->build(7);
  std::vector<at::Tensor> w;
  for (const Parameter& parameter : network.parameters()) w.push_back(parameter.tensor.detach());
  HOLDFAST_CHECK(w.size() == 8);
  const auto stage = [=](const at::Tensor& x, std::size_t i) {
    return at::max_pool2d(at::relu(at::conv2d(x, w[i], w[i + 1], 1, 2)), 2);
  };
  return {.name = "cnn_chen, 25 images",
          .network = std::move(network),
          .logits =
              [=](const at::Tensor& x) {
                const at::Tensor features = stage(stage(x, 0), 2).flatten(1);
                return at::linear(at::relu(at::linear(features, w[4], w[5])), w[6], w[7]);
              },
          .schema = Schema::of(Layout::grid(1, 28, 28)),
          .inputs = normal({25, 1, 28, 28}, 4, 0.3).add_(0.5).clamp_(0, 1),
          .top = 100,
          .steps = 10,
          .epsilon = 0.02,
          .rounds = 9,
          .limit = 1.05};
}

// The passes of one iteration and nothing else: the objective's gradient at x.
struct Bare {
  const Subject& subject;
  at::Tensor targets;         // [B, 1]
  at::Tensor cotangent = {};  // weights times clean signs

  at::Tensor gradient(const at::Tensor& at_point) const {
    const at::Tensor x = at_point.detach().requires_grad_();
    const at::Tensor p = at::softmax(subject.logits(x), 1).gather(1, targets);
    const at::Tensor map = torch::autograd::grad({p.sum()}, {x}, {}, true, true)[0];
    return torch::autograd::grad({map}, {x}, {cotangent})[0];
  }

  void set_objective() {
    const at::Tensor x = subject.inputs.detach().requires_grad_();
    const at::Tensor map = torch::autograd::grad({at::softmax(subject.logits(x), 1).gather(1, targets).sum()}, {x})[0].flatten(1);
    const auto top_count = static_cast<double>(subject.top), others = static_cast<double>(map.size(1) - subject.top);
    const at::Tensor top = at::zeros_like(map).scatter_(1, std::get<1>(map.abs().topk(subject.top, 1)), 1.0);
    cotangent = (map.sign() * (top / top_count - (1 - top) / others)).view_as(x);
  }

  at::Tensor walk() const {
    at::Tensor x = subject.inputs;
    for (std::int64_t i = 0; i < subject.steps; ++i) {
      const at::Tensor g = gradient(x).flatten(1);
      const at::Tensor direction = (g / g.norm(2, 1, true).clamp_min(1e-30)).view_as(x);
      x = x - subject.epsilon / static_cast<double>(subject.steps) * direction;
    }
    return x;
  }
};

// The same iterates: a ReLU boundary may be crossed a step earlier or later by rounding, in a handful of samples.
void check_same(const Subject& subject, const AttackResult& walked, const at::Tensor& expected) {
  std::int64_t whole = 0, apart = 0;
  for (std::int64_t b = 0; b < expected.size(0); ++b) {
    if (walked.samples[static_cast<std::size_t>(b)].iteration != subject.steps) continue;
    ++whole;
    apart += (walked.perturbed[b] - expected[b]).abs().max().item<double>() > 1e-4;
  }
  fmt::print("{}: {} samples walked all {} steps; {} of them ended elsewhere than the plain loop\n", subject.name, whole,
             subject.steps, apart);
  HOLDFAST_CHECK(whole * 2 > expected.size(0) && apart * 50 <= whole);
}

bool run(const Subject& subject) {
  const auto model = make_model(subject.network);
  const auto explainer = explainers().make("saliency");
  const auto metric = metrics().make(fmt::format("top_k(k={})", subject.top));
  const auto attack = attacks().make(fmt::format("er(steps={})", subject.steps));
  const ThreatModel threat = ThreatModel::make({.epsilons = {subject.epsilon}}, subject.schema);
  AttackTask task{.model = *model,
                  .explainer = *explainer,
                  .metric = *metric,
                  .threat = threat,
                  .samples = {.inputs = subject.inputs,
                              .targets = predicted_class(subject.logits(subject.inputs)),
                              .ids = at::arange(subject.inputs.size(0), at::kLong),
                              .schema = share_schema(subject.schema)}};
  Bare bare{subject, task.samples.targets.unsqueeze(1)};
  bare.set_objective();
  task.select = Select::kLast;
  check_same(subject, attack->run(task), bare.walk());

  // Beside its steps a run explains three times: the clean input, and what it returns. That is not part of an iteration.
  task.select = Select::kWorst;
  const ExplainTask clean{.model = *model,
                          .samples = {.inputs = task.samples.inputs, .targets = task.samples.targets, .ids = task.samples.ids}};
  std::vector<double> ours, around, theirs;
  for (int round = 0; round < subject.rounds; ++round) {
    ours.push_back(thread_seconds([&] { (void)attack->run(task); }));
    around.push_back(3 * thread_seconds([&] { (void)explainer->attribute(clean); }));
    theirs.push_back(thread_seconds([&] {
                       for (std::int64_t i = 0; i < subject.steps; ++i) (void)bare.gradient(subject.inputs);
                     }) /
                     static_cast<double>(subject.steps));
  }
  const double own = (median(ours) - median(around)) / static_cast<double>(subject.steps), rival = median(theirs);
  const double each = own * 1e6 / static_cast<double>(subject.inputs.size(0));
  fmt::print("er {:.3f} ms an iteration, bare passes {:.3f} ms: {:.3f} times (limit {}); {:.3f} microseconds a sample", own * 1e3,
             rival * 1e3, own / rival, subject.limit, each);
  if (std::isfinite(subject.microseconds)) fmt::print(" (limit {})", subject.microseconds);
  fmt::print("\n");
  return own / rival <= subject.limit && each <= subject.microseconds;
}

}  // namespace
}  // namespace holdfast::bench

int main() {
  const holdfast::TileThread one_thread;
  const bool small = holdfast::bench::run(holdfast::bench::mlp()), large = holdfast::bench::run(holdfast::bench::cnn());
  return small && large ? 0 : 1;
}

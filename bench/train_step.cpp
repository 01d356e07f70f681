// What a training step of R2ET costs: loss and its gradients by the parameters, 28-32-2 MLP, batches of 256, one thread.
//     r2et                 at most 1.1 times the bare passes it needs: two forwards, two input gradients, the parameters'
//     gradients r2et(curvature=0)    at most 1.1 times its own: one forward, one input gradient, the parameters' gradients the
//     same             at most 2.5 times a step of plain cross-entropy
//
// Both sides are first shown to give the same loss and gradients; times are medians of interleaved rounds, of processor time.
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/model.h"
#include "holdfast/train/objective.h"
#include "timing.h"

namespace holdfast::bench {
namespace {

constexpr std::int64_t kFeatures = 28, kBatch = 256, kTop = 8;
constexpr double kGap = 1, kCurvature = 0.1, kKappa = 1e-2;
constexpr int kRounds = 41, kSteps = 50;

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed, double deviation) {
  at::Tensor values = at::empty(shape);
  RandomStream stream(seed, "bench");
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = static_cast<float>(deviation * stream.normal());
  return values;
}

// The same step written out with the passes it needs, ranks and signs given.
struct Bare {
  std::vector<at::Tensor> w;
  at::Tensor inputs, labels;
  at::Tensor classes = {}, cotangent = {}, direction = {};

  at::Tensor logits(const at::Tensor& x) const { return at::linear(at::relu(at::linear(x, w[0], w[1])), w[2], w[3]); }

  // The gradient of the class's probability, from logits that were computed.
  at::Tensor gradient(const at::Tensor& x, const at::Tensor& z) const {
    return torch::autograd::grad({at::softmax(z, 1).gather(1, classes).sum()}, {x}, {}, true, true)[0];
  }

  // Once: what the steps take as given.
  void look() {
    const at::Tensor x = inputs.detach().requires_grad_(), z = logits(x);
    classes = z.argmax(1, true);
    const at::Tensor g = gradient(x, z).detach();
    const at::Tensor top = at::zeros_like(g).scatter_(1, std::get<1>(g.abs().topk(kTop, 1)), 1.0);
    cotangent = g.sign() * (top / static_cast<double>(kTop) - (1 - top) / static_cast<double>(kFeatures - kTop));
    direction = g.sign() / g.sign().norm(2, 1, true);
  }

  at::Tensor loss(bool with_gap, bool with_curvature) const {
    const at::Tensor x = with_gap ? inputs.detach().requires_grad_() : inputs;
    const at::Tensor z = logits(x);
    at::Tensor total = at::cross_entropy_loss(z, labels);
    if (!with_gap) return total;
    const at::Tensor g = gradient(x, z);
    total = total - kGap * (g * cotangent).sum(1).mean();
    if (!with_curvature) return total;
    const at::Tensor there = (inputs + kKappa * direction).requires_grad_();
    return total + kCurvature * ((gradient(there, logits(there)) - g).norm(2, 1) / kKappa).mean();
  }
};

struct Contest {
  std::string name, rival;
  std::function<at::Tensor()> own_loss, rival_loss;
  double limit;
  bool same;  // both sides are the same loss
};

bool run(const Contest& contest, const std::vector<at::Tensor>& parameters) {
  const auto step = [&](const std::function<at::Tensor()>& loss) { return torch::autograd::grad({loss()}, parameters); };
  if (contest.same) {
    const auto own = step(contest.own_loss), rival = step(contest.rival_loss);
    HOLDFAST_CHECK(at::allclose(contest.own_loss(), contest.rival_loss(), 1e-4, 1e-5));
    for (std::size_t i = 0; i < own.size(); ++i) HOLDFAST_CHECK(at::allclose(own[i], rival[i], 1e-3, 1e-4));
  }
  std::vector<double> ours, theirs;
  const auto many = [&](const std::function<at::Tensor()>& loss) {
    for (int i = 0; i < kSteps; ++i) (void)step(loss);
  };
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(thread_seconds([&] { many(contest.own_loss); }) / kSteps);
    theirs.push_back(thread_seconds([&] { many(contest.rival_loss); }) / kSteps);
  }
  const double own = median(ours), rival = median(theirs);
  fmt::print("{} {:.3f} ms a step, {} {:.3f} ms: {:.3f} times (limit {})\n", contest.name, own * 1e3, contest.rival, rival * 1e3,
             own / rival, contest.limit);
  return own / rival <= contest.limit;
}

bool run_all() {
  Network network = architectures().make(fmt::format("mlp(inputs={},hidden=32)", kFeatures))->build(1);
  network.require_grad(true);
  const Schema schema = Schema::of(Layout::vector(kFeatures));
  const TrainBatch batch{.inputs = normal({kBatch, kFeatures}, 4, 1),
                         .labels = at::arange(kBatch).remainder(2),
                         .sample_ids = at::arange(kBatch),
                         .schema = schema};
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : network.parameters()) parameters.push_back(parameter.tensor);
  HOLDFAST_CHECK(parameters.size() == 4);
  Bare bare{.w = parameters, .inputs = batch.inputs, .labels = batch.labels};
  bare.look();
  const auto trainee = make_trainee(network);
  const auto loss = [&](const std::string& call) {
    return [&trainee, &batch, objective = std::shared_ptr<Objective>(objectives().make(call))] {
      return loss_of(*objective, *trainee, batch).total;
    };
  };
  const auto whole = loss(fmt::format("r2et(gap={},curvature={},kappa={})", kGap, kCurvature, kKappa));
  const auto no_h = loss(fmt::format("r2et(gap={},curvature=0)", kGap));
  bool good = true;
  good &= run({"r2et", "its bare passes", whole, [&] { return bare.loss(true, true); }, 1.1, true}, parameters);
  good &= run({"r2et(curvature=0)", "its bare passes", no_h, [&] { return bare.loss(true, false); }, 1.1, true}, parameters);
  good &= run({"r2et(curvature=0)", "cross-entropy", no_h, loss("ce"), 2.5, false}, parameters);
  return good;
}

}  // namespace
}  // namespace holdfast::bench

int main() {
  const holdfast::TileThread one_thread;
  return holdfast::bench::run_all() ? 0 : 1;
}

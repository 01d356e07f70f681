// What ranking thickness costs beside the passes it needs: 1000 tabular samples, 64 endpoints x 16 points each, on an n-32-2
// MLP, one thread: at most 1.3 times the forward and gradient passes of the same points in plain batched LibTorch.
//
// The bare side has its points ready, takes the batch that suits it best and drops the gradients it makes; the measure's
// arithmetic is first shown to give the thickness of all pairs one by one. Times are medians of interleaved rounds.
#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"
#include "timing.h"

namespace holdfast::bench {
namespace {

constexpr std::int64_t kSamples = 1000, kFeatures = 30, kHidden = 32, kTop = 8, kEndpoints = 64, kPoints = 16;
constexpr std::int64_t kTile = 250;  // as many samples as a tile may have
constexpr int kRounds = 7;
constexpr double kEpsilon = 0.5, kLimit = 1.3;

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

// Forward and gradient of the probability, and nothing else.
at::Tensor bare_gradient(const Mlp& mlp, const at::Tensor& at_points, const at::Tensor& targets) {
  const at::Tensor x = at_points.detach().requires_grad_();
  return torch::autograd::grad({at::softmax(mlp.logits(x), 1).gather(1, targets).sum()}, {x})[0];
}

void bare_passes(const Mlp& mlp, const at::Tensor& points, const at::Tensor& targets, std::int64_t rows) {
  for (std::int64_t begin = 0; begin < points.size(0); begin += rows) {
    const std::int64_t end = std::min(begin + rows, points.size(0));
    (void)bare_gradient(mlp, points.slice(0, begin, end), targets.slice(0, begin, end));
  }
}

// The batch at which the bare passes are fastest.
std::int64_t best_rows(const Mlp& mlp, const at::Tensor& points, const at::Tensor& targets) {
  std::int64_t best = 0;
  double least = 1e300;
  for (const std::int64_t rows : {1024, 2048, 4096, 8192, 16384, 65536}) {
    const double time = wall_seconds([&] { bare_passes(mlp, points, targets, rows); });
    if (time < least) least = time, best = rows;
  }
  return best;
}

// Thickness from the definition, in tensors of all pairs, for the first samples and their given endpoints.
std::vector<double> plain_thickness(const Mlp& mlp, const at::Tensor& inputs, const at::Tensor& targets,
                                    const at::Tensor& endpoints) {
  std::vector<double> values;
  const at::Tensor t = (at::arange(kPoints, at::kFloat) + 0.5) / kPoints;
  for (std::int64_t b = 0; b < inputs.size(0); ++b) {
    const at::Tensor way = (endpoints[b] - inputs[b]).unsqueeze(1) * t.view({1, kPoints, 1});
    const at::Tensor points = (inputs[b] + way).flatten(0, 1);
    const at::Tensor order = bare_gradient(mlp, inputs.slice(0, b, b + 1), targets.slice(0, b, b + 1))[0].abs().argsort(0, true);
    const at::Tensor own = targets.slice(0, b, b + 1).expand({points.size(0), 1});
    const at::Tensor maps = bare_gradient(mlp, points, own).abs().index_select(1, order);
    const at::Tensor in_order = maps.slice(1, 0, kTop).unsqueeze(2) >= maps.slice(1, kTop).unsqueeze(1);
    values.push_back(in_order.to(at::kDouble).mean().item<double>());
  }
  return values;
}

int run() {
  const TileThread one_thread;
  const Mlp mlp;
  const at::Tensor inputs = normal({kSamples, kFeatures}, 4, 1);
  const at::Tensor targets = predicted_class(mlp.logits(inputs));
  const auto model = make_model(mlp.network());
  const auto explainer = explainers().make("saliency");
  const Schema schema = Schema::of(Layout::vector(kFeatures));
  const auto task = [&](std::int64_t begin, std::int64_t end) {
    return MeasureTask{.model = *model,
                       .explainer = *explainer,
                       .samples = {.inputs = inputs.slice(0, begin, end),
                                   .targets = targets.slice(0, begin, end),
                                   .ids = at::arange(begin, end, at::kLong),
                                   .schema = share_schema(schema)},
                       .epsilon = kEpsilon};
  };

  constexpr std::int64_t kChecked = 50;
  MeasureTask checked = task(0, kChecked);
  checked.endpoints = inputs.slice(0, 0, kChecked).unsqueeze(1) + normal({kChecked, kEndpoints, kFeatures}, 5, 0.3);
  const std::vector<double> ours_given = measures().make(fmt::format("thickness(k={},from=given)", kTop))->run(checked).values;
  const std::vector<double> plain =
      plain_thickness(mlp, checked.samples.inputs, targets.slice(0, 0, kChecked).unsqueeze(1), checked.endpoints);
  double apart = 0, below_one = 0;
  for (std::size_t b = 0; b < plain.size(); ++b) {
    apart = std::max(apart, std::abs(plain[b] - ours_given[b]));
    below_one += plain[b] < 1;
  }
  fmt::print("{} samples with given endpoints: largest difference from all pairs one by one {:.1e}; {} have swaps\n", kChecked,
             apart, below_one);
  HOLDFAST_CHECK(apart < 1e-4 && below_one > kChecked / 2);  // a pair that is equal but for rounding may go either way

  const auto measure = measures().make(fmt::format("thickness(k={},endpoints={},points={})", kTop, kEndpoints, kPoints));
  const at::Tensor points = (inputs.unsqueeze(1) + normal({1, kEndpoints * kPoints, kFeatures}, 6, 0.05)).flatten(0, 1);
  const at::Tensor classes = targets.repeat_interleave(kEndpoints * kPoints).unsqueeze(1);
  const std::int64_t rows = best_rows(mlp, points, classes);
  std::vector<double> ours, theirs;
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(wall_seconds([&] {
      for (std::int64_t begin = 0; begin < kSamples; begin += kTile) (void)measure->run(task(begin, begin + kTile));
    }));
    theirs.push_back(wall_seconds([&] { bare_passes(mlp, points, classes, rows); }));
  }
  const double ratio = median(ours) / median(theirs);
  fmt::print("thickness of {} samples {:.3f} s, bare passes in batches of {} {:.3f} s: {:.3f} times (limit {})\n", kSamples,
             median(ours), rows, median(theirs), ratio, kLimit);
  return ratio <= kLimit ? 0 : 1;
}

}  // namespace
}  // namespace holdfast::bench

int main() {
  return holdfast::bench::run();
}

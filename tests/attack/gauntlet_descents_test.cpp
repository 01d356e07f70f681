// What gauntlet's walks go down, against autograd through the formulas as one would first write them.
#include <gtest/gtest.h>

#include "../../src/attack/gauntlet/contrast_descent.h"
#include "../../src/attack/gauntlet/window_maximum.h"
#include "attack_case.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::for_images;
using testing_support::mlp_network;
using testing_support::normal_tensor;

constexpr std::int64_t kHeight = 5, kWidth = 6, kRows = 4;

// Maps are the inputs: what a descent pulls back is the derivative by the maps.
class Identity final : public Linearization {
 public:
  explicit Identity(const at::Tensor& maps) { explanation_.maps = maps; }
  at::Tensor pullback(const at::Tensor& cotangent) override { return cotangent; }
};

AttackCase image_case(const std::string& metric) {
  AttackCase test;
  test.model = make_model(for_images(mlp_network({.features = kHeight * kWidth, .classes = 3})));
  test.schema = Schema::of(Layout::grid(1, kHeight, kWidth));
  test.inputs = normal_tensor({kRows, 1, kHeight, kWidth}, 71);
  test.ids = at::arange(kRows, at::kLong);
  test.threat = ThreatModel::make({.norm = Norm::kLinf, .epsilons = {0.1}}, test.schema);
  test.metric = metric;
  return test;
}

at::Tensor near(std::int64_t pixel, std::int64_t w) {
  at::Tensor mask = at::zeros({kHeight, kWidth}, at::kBool);
  const std::int64_t y = pixel / kWidth, x = pixel % kWidth;
  mask.slice(0, std::max<std::int64_t>(0, y - w), y + w + 1).slice(1, std::max<std::int64_t>(0, x - w), x + w + 1).fill_(true);
  return mask.flatten();
}

// log of what the metric sees of the clean top, minus log of the k largest values outside its neighbourhood; one sample.
at::Tensor contrast(const at::Tensor& clean, const at::Tensor& map, std::int64_t k, std::int64_t w, Aim::At at) {
  const at::Tensor a = map.flatten().abs(), top = std::get<1>(clean.flatten().abs().topk(k));
  at::Tensor around = at::zeros({kHeight * kWidth}, at::kBool), seen = at::zeros({}, map.options());
  for (std::int64_t i = 0; i < k; ++i) {
    const at::Tensor window = near(top[i].item<std::int64_t>(), w);
    around.logical_or_(window);
    seen = seen + a.masked_select(window).max();
  }
  if (at == Aim::At::kTopNear) seen = std::get<0>(a.masked_select(around).topk(k)).sum();
  return seen.log() - std::get<0>(a.masked_select(around.logical_not()).topk(k)).sum().log();
}

struct ContrastRow {
  std::string metric;
  std::int64_t w;
};
class ContrastDescent : public testing::TestWithParam<ContrastRow> {};
INSTANTIATE_TEST_SUITE_P(Metrics, ContrastDescent,
                         testing::Values(ContrastRow{"top_k(k=3)", 0}, ContrastRow{"lens_precision(k=3,w=1)", 1},
                                         ContrastRow{"lens_recall(k=3,w=1)", 1}));

TEST_P(ContrastDescent, IsTheGradientOfTheLogarithmOfTheRatio) {
  AttackCase test = image_case(GetParam().metric);
  const AttackTask task = test.task();
  ExplainTask at_clean{.model = task.model,
                       .samples = {.inputs = task.samples.inputs, .targets = task.samples.targets, .ids = task.samples.ids}};
  at_clean.keep_signs = true;
  const Explanation clean = task.explainer.attribute(at_clean);
  Ledger ledger(task, clean, Select::kWorst);
  const gauntlet::AttackState state(task, ledger, clean, 1);
  const auto descent = gauntlet::contrast_descent(state, state.aim, state.rows());
  const at::Tensor maps = normal_tensor({kRows, 1, kHeight, kWidth}, 72);
  Identity here(maps);
  const at::Tensor found = descent->gradient(here, at_clean);
  for (std::int64_t i = 0; i < kRows; ++i) {
    const at::Tensor map = maps[i].clone().requires_grad_();
    const at::Tensor value = contrast(clean.maps[i], map, 3, GetParam().w, state.aim.at);
    const at::Tensor expected = torch::autograd::grad({value}, {map})[0];
    const at::Tensor direction = expected / expected.norm();
    EXPECT_LT((found[i] / found[i].norm() - direction).abs().max().item<double>(), 1e-5) << "sample " << i;
  }
}

TEST(WindowMaximum, StopsAtTheBorderAndSaysWhere) {
  const Schema schema = Schema::of(Layout::grid(1, kHeight, kWidth));
  const at::Tensor a = normal_tensor({2, kHeight * kWidth}, 73).abs();
  for (const std::int64_t w : {0, 1, 2}) {
    const auto [value, position] = gauntlet::WindowMaximum(schema, w)(a);
    EXPECT_TRUE(at::equal(a.gather(1, position), value));
    for (std::int64_t pixel = 0; pixel < kHeight * kWidth; ++pixel) {
      EXPECT_EQ(value[1][pixel].item<float>(), a[1].masked_select(near(pixel, w)).max().item<float>());
    }
  }
}

// Neighbours of a vector are the positions on either side: the way of layouts that are no grids.
TEST(WindowMaximum, WorksOnVectors) {
  const Schema schema = Schema::of(Layout::vector(7));
  const at::Tensor a = normal_tensor({3, 7}, 74).abs();
  const auto [value, position] = gauntlet::WindowMaximum(schema, 2)(a);
  for (std::int64_t i = 0; i < 7; ++i) {
    const at::Tensor window = a.slice(1, std::max<std::int64_t>(0, i - 2), i + 3);
    EXPECT_TRUE(at::equal(value.select(1, i), window.amax(1)));
  }
  EXPECT_TRUE(at::equal(a.gather(1, position), value));
}

}  // namespace
}  // namespace holdfast::attack

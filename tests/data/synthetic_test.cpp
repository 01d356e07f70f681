#include "holdfast/data/synthetic.h"

#include "holdfast/core/torch.h"
#include "support/datasets.h"
#include "support/errors.h"

namespace holdfast::data {
namespace {

const char* const kCalls[] = {"synthetic", "synthetic(linear=3,additive=0,pairs=0,noise=0,levels=0)",
                              "synthetic(linear=0,additive=1,pairs=3,levels=5,function=7)"};

at::Tensor largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max();
}

TEST(SyntheticFunction, GradientsAreThoseOfTheLogit) {
  for (const char* call : kCalls) {
    const SyntheticFunction function = SyntheticFunction::of(call);
    at::Tensor x = load_dataset(call).inputs.slice(0, 0, 50).to(at::kDouble).requires_grad_();
    const at::Tensor reference = torch::autograd::grad({function.logits(x).sum()}, {x})[0];
    EXPECT_LT(largest_difference(function.gradients(x.detach()), reference).item<double>(), 1e-12) << call;
  }
}

// Integrated gradients from the definition, with the midpoint rule.
TEST(SyntheticFunction, ContributionsAreTheIntegratedGradients) {
  for (const char* call : kCalls) {
    const SyntheticFunction function = SyntheticFunction::of(call);
    const at::Tensor x = load_dataset(call).inputs.slice(0, 0, 20).to(at::kDouble);
    const at::Tensor way = x - function.baseline();
    at::Tensor mean = at::zeros_like(x);
    constexpr int kSteps = 2000;
    for (int step = 0; step < kSteps; ++step)
      mean += function.gradients(function.baseline() + way * ((step + 0.5) / kSteps)) / kSteps;
    EXPECT_LT(largest_difference(function.contributions(x), mean * way).item<double>(), 1e-5) << call;
    const at::Tensor sums = function.contributions(x).sum(1);
    EXPECT_LT(largest_difference(sums, function.logits(x) - function.logits(function.baseline().unsqueeze(0))).item<double>(),
              1e-12)
        << call;
  }
}

// Shapley values from the definition: over all subsets of seven features.
TEST(SyntheticFunction, ContributionsAreTheShapleyValues) {
  const SyntheticFunction function = SyntheticFunction::of("synthetic(linear=1,additive=2,pairs=1,noise=1,levels=0)");
  const at::Tensor x = at::tensor({0.9, 0.1, 0.7, 0.2, 0.8, 0.3}, at::kDouble);
  const std::int64_t n = x.numel();
  const auto value = [&](std::int64_t subset) {
    at::Tensor mixed = function.baseline();
    for (std::int64_t i = 0; i < n; ++i) {
      if (subset >> i & 1) mixed[i] = x[i];
    }
    return function.logits(mixed.unsqueeze(0)).item<double>();
  };
  const at::Tensor contributions = function.contributions(x.unsqueeze(0))[0];
  for (std::int64_t i = 0; i < n; ++i) {
    double shapley = 0;
    for (std::int64_t subset = 0; subset < 1 << n; ++subset) {
      if (subset >> i & 1) continue;
      const int size = __builtin_popcountll(static_cast<unsigned long long>(subset));
      const double weight =
          std::tgamma(size + 1) * std::tgamma(static_cast<double>(n) - size) / std::tgamma(static_cast<double>(n) + 1);
      shapley += weight * (value(subset | 1 << i) - value(subset));
    }
    EXPECT_NEAR(contributions[i].item<double>(), shapley, 1e-12) << function.schema().features[static_cast<std::size_t>(i)].name;
  }
}

TEST(SyntheticFunction, NoiseHasNoInfluenceAndTheRestHas) {
  const SyntheticFunction function = SyntheticFunction::of("synthetic");
  const at::Tensor x = load_dataset("synthetic").inputs.to(at::kDouble);
  EXPECT_TRUE(at::equal(function.gradients(x).abs().amax(0) > 0, function.relevant()));
  EXPECT_EQ(function.relevant().sum().item<std::int64_t>(), 15);
}

TEST(Synthetic, FeaturesAreUniformCorrelatedAndOneHot) {
  const Dataset dataset = load_dataset("synthetic(samples=20000,correlation=0.6)");
  const at::Tensor continuous = dataset.inputs.slice(1, 0, 16).to(at::kDouble);
  EXPECT_LT((continuous.mean(0) - 0.5).abs().max().item<double>(), 0.01);
  EXPECT_LT((continuous.var(0) - 1.0 / 12).abs().max().item<double>(), 0.002);
  // Uniform scores of normals with correlation r have correlation 6/pi asin(r/2) (Pearson 1907).
  const double expected = 6 / M_PI * std::asin(0.3);
  const at::Tensor correlation = at::corrcoef(continuous.t());
  const at::Tensor off_diagonal = correlation.masked_select(at::eye(16, at::kBool).logical_not());
  EXPECT_LT((off_diagonal - expected).abs().max().item<double>(), 0.03);
  EXPECT_TRUE(dataset.inputs.slice(1, 16).sum(1).eq(1).all().item<bool>());
  EXPECT_LT((dataset.inputs.slice(1, 16).mean(0) - 1.0 / 3).abs().max().item<double>(), 0.02);
}

TEST(Synthetic, LabelsFollowTheLogit) {
  const Dataset dataset = load_dataset("synthetic(samples=20000)");
  const at::Tensor probability = SyntheticFunction::of(dataset.name).logits(dataset.inputs.to(at::kDouble)).sigmoid();
  // Calibrated in every tenth of the probabilities.
  for (int tenth = 0; tenth < 10; ++tenth) {
    const at::Tensor chosen = (probability >= tenth / 10.0).logical_and(probability < (tenth + 1) / 10.0);
    const auto count = chosen.sum().item<double>();
    ASSERT_GT(count, 100);
    const double difference = (dataset.labels.to(at::kDouble) - probability).masked_select(chosen).mean().item<double>();
    EXPECT_LT(std::abs(difference), 4 * 0.5 / std::sqrt(count)) << tenth;
  }
}

TEST(Synthetic, SeedsGiveOtherSamplesOfTheSameFunctionAndMoreSamplesBeginTheSame) {
  const Dataset a = load_dataset("synthetic"), b = load_dataset("synthetic", {.seed = 1}),
                longer = load_dataset("synthetic(samples=2100)");
  EXPECT_FALSE(at::equal(a.inputs, b.inputs));
  EXPECT_TRUE(at::equal(SyntheticFunction::of(a.name).gradients(b.inputs), SyntheticFunction::of(b.name).gradients(b.inputs)));
  EXPECT_FALSE(at::equal(SyntheticFunction::of("synthetic(function=1)").gradients(b.inputs),
                         SyntheticFunction::of(b.name).gradients(b.inputs)));
  EXPECT_TRUE(at::equal(a.inputs, longer.inputs.slice(0, 0, 2000)));
  EXPECT_EQ(a.test.size(), 400U);
}

TEST(Synthetic, RefusesWhatCannotBe) {
  EXPECT_ERROR(load_dataset("synthetic(levels=1)"), kUsage, "at least 2 levels");
  EXPECT_ERROR(load_dataset("synthetic(linear=0,additive=0,pairs=0,noise=0,levels=0)"), kUsage, "no features");
}

}  // namespace
}  // namespace holdfast::data

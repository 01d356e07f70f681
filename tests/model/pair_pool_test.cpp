// Pooling of pairs against torch's kernel: values, positions of ties, gradients and gradients of gradients.
#include "../../src/model/network/operations.h"

#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include <gtest/gtest.h>

#include "holdfast/core/torch.h"
#include "support/small_models.h"

namespace holdfast::model {
namespace {

using testing_support::normal_tensor;

const op::MaxPool2d kPairs{.kernel = {2, 2}, .stride = {2, 2}};

at::Tensor torchs(const at::Tensor& x) {
  return at::max_pool2d(x, {2, 2}, {2, 2});
}

at::Tensor gradient(const at::Tensor& y, const at::Tensor& x, const at::Tensor& weights, bool again) {
  return torch::autograd::grad({y}, {x}, {weights}, /*retain_graph=*/true, again)[0];
}

class PairPoolShapes : public testing::TestWithParam<std::pair<std::int64_t, std::int64_t>> {};

TEST_P(PairPoolShapes, IsTorchsKernelWithItsDerivatives) {
  const auto [height, width] = GetParam();
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    // Rounded, so that windows have ties.
    const at::Tensor x = (normal_tensor({3, 2, height, width}, 5, type) * 2).round().requires_grad_();
    ASSERT_TRUE(pools_pairs(kPairs, x));
    const at::Tensor ours = pool_pairs(x), theirs = torchs(x);
    EXPECT_TRUE(at::equal(ours, theirs));
    // The square makes the gradient depend on the input, so that there is a second one.
    const at::Tensor weights = normal_tensor(ours.sizes(), 6, type);
    const at::Tensor first = gradient(ours.square(), x, weights, true), expected = gradient(theirs.square(), x, weights, true);
    EXPECT_TRUE(at::equal(first, expected));
    const at::Tensor again = normal_tensor(x.sizes(), 7, type);
    EXPECT_TRUE(at::equal(gradient(first, x, again, false), gradient(expected, x, again, false)));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PairPoolShapes,
                         testing::Values(std::pair(2, 2), std::pair(6, 8), std::pair(7, 9), std::pair(3, 2)));

TEST(PairPool, NanGoesThrough) {
  at::Tensor x = at::zeros({1, 1, 2, 4});
  x[0][0][1][0] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor y = pool_pairs(x);
  EXPECT_TRUE(at::isnan(y[0][0][0][0]).item<bool>());
  EXPECT_EQ(y[0][0][0][1].item<float>(), 0);
}

TEST(PairPool, LeavesOtherPoolsToTorch) {
  const at::Tensor x = at::zeros({1, 1, 4, 4});
  EXPECT_FALSE(pools_pairs({.kernel = {3, 3}, .stride = {2, 2}}, x));
  EXPECT_FALSE(pools_pairs({.kernel = {2, 2}, .stride = {1, 1}}, x));
  EXPECT_FALSE(pools_pairs({.kernel = {2, 2}, .stride = {2, 2}, .padding = {1, 1}}, x));
  EXPECT_FALSE(pools_pairs({.kernel = {2, 2}, .stride = {2, 2}, .ceil_mode = true}, x));
  EXPECT_FALSE(pools_pairs(kPairs, x.transpose(2, 3)));
  EXPECT_FALSE(pools_pairs(kPairs, x.to(at::kHalf)));
}

}  // namespace
}  // namespace holdfast::model

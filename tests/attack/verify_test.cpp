#include "holdfast/attack/verify.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/torch.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::attack {
namespace {

using testing_support::linear_model;

// Logits (x_0 + 1, 0): class 0 while x_0 > -1.
class VerifyTest : public testing::Test {
 protected:
  Verification check(const at::Tensor& perturbed, Norm norm = Norm::kL2, double epsilon = 1,
                     std::optional<std::pair<double, double>> box = {}) {
    const ThreatModel threat{.norm = norm, .epsilon = epsilon, .box = box, .frozen = frozen_};
    return verify(*model_, threat, clean_, perturbed, torch::tensor({41L, 42L}, at::kLong), "test");
  }
  static at::Tensor rows(double a, double b) { return torch::tensor({{0.0, 0.0, 0.0}, {a, b, 0.0}}, at::kDouble).to(at::kFloat); }

  std::unique_ptr<Model> model_ =
      linear_model(torch::tensor({{1.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f}}), torch::tensor({1.0f, 0.0f}));
  at::Tensor clean_ = at::zeros({2, 3});
  std::vector<bool> frozen_;
};

TEST_F(VerifyTest, ReportsWhatItFound) {
  const Verification found = check(rows(0.3, 0.4));
  EXPECT_EQ(found.moved, 1);
  EXPECT_NEAR(found.largest_distance, 0.5, 1e-6);
  EXPECT_NEAR(found.smallest_margin, 1.3, 1e-6);
  EXPECT_TRUE(found.in_double);
}

TEST_F(VerifyTest, FindsALeftBall) {
  EXPECT_NO_THROW(check(rows(0.6, 0.8)));
  EXPECT_ERROR(check(rows(0.6, 0.8001)), kBug, "test: sample 42 moved by 1.0");
  EXPECT_NO_THROW(check(rows(0.5, 0.5), Norm::kL1));
  EXPECT_ERROR(check(rows(0.5, 0.51), Norm::kL1), kBug, "in l1, epsilon is 1");
  EXPECT_NO_THROW(check(rows(1, 1), Norm::kLinf));
  EXPECT_ERROR(check(rows(1, 1.001), Norm::kLinf), kBug, "in linf, epsilon is 1");
  EXPECT_ERROR(check(rows(1e-7, 0), Norm::kL2, 0), kBug, "epsilon is 0");
}

TEST_F(VerifyTest, FindsALeftBox) {
  EXPECT_NO_THROW(check(rows(0.3, 0.5), Norm::kL2, 1, {{0, 0.5}}));
  EXPECT_ERROR(check(rows(0.3, 0.5625), Norm::kL2, 1, {{0, 0.5}}), kBug, "has element 1 at 0.5625, outside the box 0 to 0.5");
  EXPECT_ERROR(check(rows(0.3, -0.01), Norm::kL2, 1, {{0, 0.5}}), kBug, "outside the box 0 to 0.5");
}

TEST_F(VerifyTest, FindsAMovedFrozenFeature) {
  frozen_ = {false, true, false};
  EXPECT_NO_THROW(check(rows(0.3, 0)));
  EXPECT_ERROR(check(rows(0.3, 1e-6)), kBug, "sample 42 moved element 1, which is frozen");
}

TEST_F(VerifyTest, FindsAChangedOrDoubtfulClass) {
  EXPECT_ERROR(check(rows(-1.5, 0), Norm::kL2, 2), kBug, "sample 42 is predicted as class 1");
  EXPECT_ERROR(check(rows(-1 + 1e-5, 0), Norm::kL2, 2), kBug, "ahead by");
  EXPECT_NO_THROW(check(rows(-1 + 2e-4, 0), Norm::kL2, 2));
}

TEST_F(VerifyTest, FindsANumberThatIsNone) {
  EXPECT_ERROR(check(rows(NAN, 0)), kBug, "element 0 that is not finite");
}

// Element 0 goes by steps of 0.25; 1 and 2 are the columns of a one-hot group.
TEST_F(VerifyTest, FindsARowThatIsNotValid) {
  clean_ = torch::tensor({{0.0f, 0.0f, 1.0f}, {0.0f, 0.0f, 1.0f}});
  ThreatModel threat{.norm = Norm::kLinf, .epsilon = 1};
  threat.valid = ValidRows{.groups = {{1, 2}}, .low = {0, 0, 0}, .high = {0.75, 1, 1}, .step = {0.25, 0, 0}};
  const auto check_row = [&](std::initializer_list<float> row) {
    const at::Tensor perturbed = at::stack({clean_[0], torch::tensor(at::ArrayRef<float>(row))});
    return verify(*model_, threat, clean_, perturbed, torch::tensor({41L, 42L}, at::kLong), "test");
  };
  EXPECT_EQ(check_row({0.5f, 0, 1}).moved, 1);
  EXPECT_EQ(check_row({0.5f, 1, 0}).moved, 1);
  EXPECT_ERROR(check_row({0.4f, 0, 1}), kBug, "sample 42 has element 0 at 0.4");
  EXPECT_ERROR(check_row({0.4f, 0, 1}), kBug, "which is not 0 plus a multiple of 0.25");
  EXPECT_ERROR(check_row({1, 0, 1}), kBug, "has element 0 at 1, outside its range 0 to 0.75");
  EXPECT_ERROR(check_row({0, 1, 1}), kBug, "is no valid row: the one-hot group of element 1 has 2 columns at 1 and 0 at 0");
  EXPECT_ERROR(check_row({0, 0, 0}), kBug, "has 0 columns at 1 and 2 at 0");
  EXPECT_ERROR(check_row({0, 0.01f, 1}), kBug, "has 1 columns at 1 and 0 at 0");
  clean_ = torch::tensor({{0.1f, 0.5f, 0.5f}, {0.1f, 0.5f, 0.5f}});
  EXPECT_EQ(check_row({0.25f, 0.5f, 0.5f}).moved, 1) << "a group that stays as it was is no fault of an attack";
}

TEST_F(VerifyTest, FindsANegativeWeightWhereThereWasNone) {
  ThreatModel threat{.norm = Norm::kLinf, .epsilon = 1, .non_negative = true};
  const auto check_row = [&](double a) {
    return verify(*model_, threat, clean_, rows(a, 0.1), torch::tensor({41L, 42L}), "test");
  };
  EXPECT_NO_THROW(check_row(0.1));
  EXPECT_ERROR(check_row(-0.1), kBug, "has element 0 at -0.1");
  clean_[1][2] = -1;
  EXPECT_NO_THROW(check_row(-0.1));
}

// p = 1 / (1 + exp(-1 - x_0)): .731 at 0.
TEST_F(VerifyTest, FindsAProbabilityOutOfTolerance) {
  ThreatModel threat{.epsilon = 2, .tolerance = 0.05};
  const auto check_row = [&](double a) { return verify(*model_, threat, clean_, rows(a, 0), torch::tensor({41L, 42L}), "test"); };
  EXPECT_NEAR(check_row(0.2).largest_change, 1 / (1 + std::exp(-1.2)) - 1 / (1 + std::exp(-1.0)), 1e-7);
  EXPECT_ERROR(check_row(0.3), kBug, "sample 42 has its class's probability moved by 0.05");
  threat.tolerance.reset();
  EXPECT_NO_THROW(check_row(0.3));
}

// Clean inputs on the boundary are no fault of an attack.
TEST_F(VerifyTest, AcceptsAnUnmovedInputWithoutMargin) {
  clean_ = torch::tensor({{-1.0f, 0.0f, 0.0f}, {-1.0f, 0.0f, 0.0f}});
  EXPECT_EQ(check(clean_.clone()).moved, 0);
}

TEST_F(VerifyTest, ChecksModelsWithoutDoublePrecisionAsTheyAre) {
  model_ = make_model(
      [](const at::Tensor& x) {
        return at::cat({x.slice(1, 0, 1) + 1, at::zeros({x.size(0), 1})}, 1);
      },
      Capabilities{}, at::kCPU);
  EXPECT_FALSE(check(rows(0.3, 0.4)).in_double);
  EXPECT_ERROR(check(rows(-1.5, 0), Norm::kL2, 2), kBug, "predicted as class 1");
}

}  // namespace
}  // namespace holdfast::attack

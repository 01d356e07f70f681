#include "holdfast/train/schedule.h"

#include <cmath>
#include <numbers>

#include "support/errors.h"

namespace holdfast::train {
namespace {

double factor(const std::string& call, std::int64_t step, std::int64_t steps_per_epoch = 10, std::int64_t epochs = 8) {
  return schedules().make(call)->factor({step, steps_per_epoch, epochs});
}

TEST(Schedule, ConstantStays) {
  EXPECT_EQ(factor("constant", 0), 1);
  EXPECT_EQ(factor("constant", 79), 1);
}

TEST(Schedule, CosineFallsAlongHalfACosine) {
  EXPECT_EQ(factor("cosine", 0), 1);
  EXPECT_NEAR(factor("cosine", 20), (1 + std::cos(std::numbers::pi / 4)) / 2, 1e-15);
  EXPECT_NEAR(factor("cosine", 40), 0.5, 1e-15);
  EXPECT_NEAR(factor("cosine(floor=0.2)", 40), 0.6, 1e-15);
  EXPECT_NEAR(factor("cosine(floor=0.2)", 80), 0.2, 1e-15);
}

TEST(Schedule, StepFallsAfterTheGivenEpochs) {
  EXPECT_EQ(factor("step(at=2x5,factor=0.5)", 19), 1);
  EXPECT_EQ(factor("step(at=2x5,factor=0.5)", 20), 0.5);
  EXPECT_EQ(factor("step(at=2x5,factor=0.5)", 49), 0.5);
  EXPECT_EQ(factor("step(at=2x5,factor=0.5)", 50), 0.25);
}

TEST(Schedule, WarmUpRisesInALineAndNeverStandsStill) {
  EXPECT_NEAR(factor("constant(warmup=2)", 0), 1.0 / 20, 1e-15);
  EXPECT_NEAR(factor("constant(warmup=2)", 9), 0.5, 1e-15);
  EXPECT_EQ(factor("constant(warmup=2)", 19), 1);
  EXPECT_EQ(factor("constant(warmup=2)", 20), 1);
  // The cosine begins where the rise ends: after 20 of 80 steps, so its middle is at 50.
  EXPECT_EQ(factor("cosine(warmup=2)", 20), 1);
  EXPECT_NEAR(factor("cosine(warmup=2)", 50), 0.5, 1e-15);
  // Half an epoch.
  EXPECT_NEAR(factor("constant(warmup=0.5)", 1), 0.4, 1e-15);
}

TEST(Schedule, RefusesWhatItCannotFollow) {
  EXPECT_ERROR(factor("step(at=5x2)", 0), kUsage, "must ascend");
  EXPECT_ERROR(factor("cosin", 0), kUsage, "did you mean 'cosine'?");
  EXPECT_ERROR(factor("cosine(floor=2)", 0), kUsage, "floor");
}

}  // namespace
}  // namespace holdfast::train

// The two ways of a step that depend on the device, both on the CPU: batches that lie there or are sent, losses that are read at
// once or many together.
#include "../../src/train/batch_source.h"
#include "../../src/train/step_losses.h"

#include <limits>

#include "support/errors.h"
#include "train/toy.h"

namespace holdfast::train {
namespace {

TEST(BatchSource, BatchesThatAreSentAreThoseThatLieThere) {
  const Dataset dataset = two_clouds();
  BatchSource there(dataset, at::kCPU, BatchSource::Keep::kOnDevice), sent(dataset, at::kCPU, BatchSource::Keep::kOnHost);
  EXPECT_TRUE(there.is_on_device());
  EXPECT_FALSE(sent.is_on_device());
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const auto batches = epoch_batches(dataset.train, 16, 0, epoch);
    there.begin_epoch(batches);
    sent.begin_epoch(batches);
    for (const std::vector<std::int64_t>& rows : batches) {
      const GatheredBatch a = there.next(), b = sent.next();
      EXPECT_TRUE(at::equal(a.inputs, dataset.inputs_of(rows)));
      EXPECT_TRUE(at::equal(a.inputs, b.inputs));
      EXPECT_TRUE(at::equal(a.labels, b.labels));
      EXPECT_TRUE(at::equal(a.ids, b.ids));
    }
  }
}

TEST(BatchSource, AnEpochCanBeGivenUp) {
  const Dataset dataset = two_clouds();
  BatchSource sent(dataset, at::kCPU, BatchSource::Keep::kOnHost);
  const auto batches = epoch_batches(dataset.train, 16, 0, 0);
  sent.begin_epoch(batches);
  (void)sent.next();
  sent.begin_epoch(batches);
  EXPECT_TRUE(at::equal(sent.next().inputs, dataset.inputs_of(batches[0])));
}

Loss loss(double total, double part) {
  return {.total = at::scalar_tensor(total), .parts = {{"ce", at::scalar_tensor(part)}}};
}

[[noreturn]] void say_step(std::int64_t step) {
  failure("step {}", step);
}

TEST(StepLosses, ManyReadTogetherGiveTheSameMeans) {
  StepLosses one(say_step, 1), many(say_step, 32);
  for (int i = 0; i < 100; ++i) {
    for (StepLosses* losses : {&one, &many}) losses->add(loss(0.1 * i, 1.0 / (i + 1)), i % 7 + 1);
  }
  EpochRecord a, b;
  one.write(a);
  many.write(b);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.parts, b.parts);
  EXPECT_GT(a.loss, 1);
}

TEST(StepLosses, TheFirstStepThatIsNotFiniteIsNamed) {
  for (const std::int64_t at_once : {1, 32}) {
    StepLosses losses(say_step, at_once);
    EXPECT_ERROR(
        {
          for (int i = 0; i < 50; ++i) losses.add(loss(i < 37 ? 1 : std::numeric_limits<double>::infinity(), 1), 1);
          EpochRecord record;
          losses.write(record);
        },
        kFailure, "step 37");
  }
}

}  // namespace
}  // namespace holdfast::train

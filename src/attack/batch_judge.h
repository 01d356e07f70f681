// What a ledger wants to know of the rows of a batch, worked out on the device that the batch is on: whether each row keeps its
// class, with what certainty, and what the metric says. The device is not waited for: the numbers are fetched many batches at a
// time and handed to Ledger::record_judged. BatchReading is the reference on the CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/attack.h"

namespace holdfast::attack {

// What is known of a row, as bits of one number.
enum RowFlag : int { kSameClass = 1, kCertain = 2, kFinite = 4, kSameTop = 8 };

// Of the rows of one batch, on the host: the metric's values and sums of RowFlag.
struct JudgedRows {
  std::span<const double> values, flags;
};

class BatchJudge {
 public:
  // `clean`: the explanation of all samples of the task. Null where the task has to be judged on the host: a metric that is not
  // a share of top k sets, maps with context, a tolerance of the prediction.
  static std::unique_ptr<BatchJudge> make(const AttackTask& task, const Explanation& clean);

  // [2, rows] in double: values, then flags. `owners` has the sample of each row, on the device.
  at::Tensor read(const Explanation& there, const at::Tensor& owners) const;

 private:
  BatchJudge(const AttackTask& task, const Explanation& clean, TopShare share);
  at::Tensor top_positions(const at::Tensor& maps) const;
  at::Tensor grow(const at::Tensor& sets) const;
  bool reads_in_a_kernel(const Explanation& there) const;
  at::Tensor read_in_a_kernel(const Explanation& there, const at::Tensor& owners) const;

  const Schema& schema_;
  const TopShare share_;
  at::Tensor classes_;    // [samples]: the clean predictions
  at::Tensor top_;        // [samples, features], 0 or 1: the clean map's top k
  at::Tensor compared_;   // what the perturbed map's top k is held against: the top k, or what is near it
  at::Tensor neighbors_;  // [features, features], 0 or 1, where the layout is no grid and windows are asked for
};

}  // namespace holdfast::attack

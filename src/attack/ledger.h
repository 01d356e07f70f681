// The keeper of an attack's iterates. It alone decides what counts: whether the prediction was preserved, what the metric
// says, which iterate is returned, when a sample is done. Attacks only propose points.
//
// An iterate is preserved when its predicted class is the clean one's and the logit margin is at least kMargin, plus what
// float32 cannot tell apart at the size of the logits. A label flip is another predicted class. first_swap is read at
// preserved iterates.
//     kWorst   keeps the preserved iterate with the worst value. Flipped iterates are skipped, the attack goes on. A sample is
//              done when nothing is left to break.
//     kLast    keeps the latest preserved iterate. A sample is done at its first label flip.
//
// Rows. The ledger starts with one row for each sample of the task. Samples that are done stay in the batch until an
// eighth of it is; then shrink() says which rows to keep.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/attack.h"
#include "holdfast/metric/top_k.h"

namespace holdfast {

// The task's explanation at other inputs.
ExplainTask explain_at(const AttackTask& task, const at::Tensor& inputs);

class Ledger {
 public:
  // `clean` is the explanation at task.inputs, whose finite maps every iterate is held against. Throws kFailure when they
  // are not finite. `select` is the task's unless the attack's iterates have no order.
  Ledger(const AttackTask& task, const Explanation& clean, Select select);

  bool finished() const { return running_ == 0; }
  // Adds to the evaluations of every sample that is not done.
  void charge(std::int64_t evaluations);
  // The next iterate of every row, and the explanation there.
  void record(const at::Tensor& iterates, const Explanation& explanation);
  // Rows to keep, as an index on the task's device, when it is worth dropping the others; from then on rows are those.
  std::optional<at::Tensor> shrink();

  // What was found, explained afresh in one batch: maps, logits and values belong together.
  AttackResult finish();

 private:
  struct Sample {
    std::unique_ptr<PreparedMetric> metric;
    std::optional<TopSet> top;  // where first_swap cannot be read off the value; until a feature has left it
    std::int64_t predicted = 0;
    bool done = false;
  };

  void judge(std::int64_t row);
  // The map of a row of the batch that was folded last; nothing when it is not finite.
  std::optional<MapView> map_of(std::int64_t row) const;
  void fold(const at::Tensor& maps);
  void read_predictions(const at::Tensor& logits);
  void note_swap(std::int64_t sample, double value, const MapView& map);
  void take(std::int64_t sample, std::int64_t row, double value);
  void copy_taken(const at::Tensor& iterates);
  bool is_worse(double value, double than) const;
  void stop(std::int64_t sample);

  const AttackTask& task_;
  const Select select_;
  // Of the metric, asked once: rows are judged by the million.
  const bool higher_is_more_alike_, has_top_;
  const double perfect_, floor_;
  std::vector<Sample> samples_;
  std::vector<SampleOutcome> outcomes_;
  std::vector<std::int64_t> rows_;                        // the sample of each row
  std::vector<std::int64_t> taken_rows_, taken_samples_;  // of this iteration
  // Of the batch at hand: folded maps, row after row, and whether all are finite; predicted class and whether it is sure.
  std::vector<double> folded_;
  bool all_finite_ = true;
  std::vector<std::int64_t> predicted_;
  std::vector<char> sure_;
  at::Tensor perturbed_;  // on the CPU
  std::int64_t iteration_ = 0;
  std::int64_t running_ = 0;
};

}  // namespace holdfast

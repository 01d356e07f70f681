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
// eighth of it is; then shrink() says which rows to keep. Attacks with several rows of one sample (restarts) keep the list
// of whose rows they are themselves and pass it along; such rows have no order, so they are for kWorst.
//
// A sample is also done, before any iterate, where nothing can be moved or broken: epsilon 0, all elements frozen or, for
// kWorst, a top k of all features.
//
// A threat model with a tolerance asks for more of a preserved iterate: the predicted class's probability may move by so much.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "accounts.h"
#include "batch_judge.h"
#include "batch_reading.h"
#include "holdfast/attack/attack.h"
#include "holdfast/metric/batch_metric.h"
#include "holdfast/metric/top_k.h"

namespace holdfast::attack {

// The task's explanation at other inputs.
ExplainTask explain_at(const AttackTask& task, const at::Tensor& inputs);

class Ledger {
 public:
  // `clean` is the explanation at task.samples.inputs, whose finite maps every iterate is held against. Throws when they or the
  // logits are not finite (explain/finite.h). `select` is the task's unless the attack's iterates have no order.
  Ledger(const AttackTask& task, const Explanation& clean, Select select);

  // What is found from now on is this component's, and so are evaluations and time. Without a call there are no components.
  void begin_component(const std::string& name) { work_.begin_component(name); }
  // Starts to keep how values fall with the work, for late_gain.
  void keep_history();
  // Begins a search of its own: until the next call, best_points() and best_value() are what it alone found.
  void begin_restart();
  // Ends the restarts: best_points() and best_value() are all work's again.
  void join_restarts();
  // Samples for which nothing worse was found since the restarts ended are done.
  void leave_settled();

  // Set where rows are judged on the device.
  const BatchJudge* batch_judge() const { return batch_judge_.get(); }

  bool finished() const { return running_ == 0; }
  Select select() const { return select_; }
  // Adds to the evaluations of every sample that is not done.
  void charge(std::int64_t evaluations);
  // The next iterate of every row, and the explanation there.
  void record(const at::Tensor& iterates, const Explanation& explanation);
  // Rows to keep, as an index on the task's device, when it is worth dropping the others; from then on rows are those.
  std::optional<at::Tensor> shrink();

  // These do the same for rows that each name their sample, by its position in the task.
  using Owners = std::vector<std::int64_t>;
  void charge(std::int64_t evaluations, const Owners& owners);  // for every row whose sample is not done
  void record(const at::Tensor& iterates, const Explanation& explanation, const Owners& owners);
  // The same for rows that were judged on the device (batch_judge.h).
  void record_judged(const at::Tensor& iterates, const JudgedRows& judged, const Owners& owners);
  void record_judged_again(const at::Tensor& iterates, const JudgedRows& judged, const Owners& owners);
  // More rows of the iteration that was recorded last: iterates that were mended. Their flips have been counted.
  void record_again(const at::Tensor& iterates, const Explanation& explanation, const Owners& owners);
  // Begins an iteration whose rows come in several parts, and takes a part of it. Traces have no entry for it.
  void begin_iteration() { ++iteration_; }
  void record_more(const at::Tensor& iterates, const Explanation& explanation, const Owners& owners);
  // No allowed point is worse than `proven`, as a search of `nodes` more parts shows: a sample whose best point is as bad is
  // done.
  void note_proof(std::int64_t sample, double proven, std::int64_t nodes);
  // The task's start, one row for each sample: before any iteration, and no swap of one.
  void record_start(const at::Tensor& points, const Explanation& explanation);
  std::optional<at::Tensor> shrink(Owners& owners);
  bool finished(const Owners& owners) const;  // whether all their samples are done

  // Steps that were brought back into ball or box, gradients that were not finite: one flag for each row.
  void count_projections(std::span<const char> rows, const Owners& owners);
  void count_non_finite(std::span<const char> rows, const Owners& owners);
  // Takes one flag for each row that took a step: whether there was no gradient to follow.
  void count_steps(std::span<const char> without_gradient, const Owners& owners);

  // The metric of the rows recorded last; NaN where the prediction was not preserved or the metric is undefined.
  const std::vector<double>& values() const { return values_; }
  // For every sample of the task: the best point so far (on the task's device), its value, and whether the sample is done.
  at::Tensor best_points() const;
  double best_value(std::int64_t sample) const {
    return in_restart_ ? restarts_.back()[static_cast<std::size_t>(sample)] : outcomes_[static_cast<std::size_t>(sample)].value;
  }
  bool done(std::int64_t sample) const { return done_[static_cast<std::size_t>(sample)] != 0; }
  std::int64_t evaluations(std::int64_t sample) const { return work_.evaluations(static_cast<std::size_t>(sample)); }
  std::int64_t predicted(std::int64_t sample) const { return samples_[static_cast<std::size_t>(sample)].predicted; }
  // The clean sample's logit margin; and the probability of its class, where the threat model has a tolerance.
  double clean_margin(std::int64_t sample) const { return outcomes_[static_cast<std::size_t>(sample)].clean_margin; }
  double clean_probability(std::int64_t sample) const { return samples_[static_cast<std::size_t>(sample)].probability.value; }
  Owners running() const;  // samples that are not done
  // How far its value moved in the last fifth of the sample's own work; 0 when done, NaN where it is undefined or no history is
  // kept.
  double late_gain(std::size_t sample) const;

  // How far the restart that found least stayed behind the best value; 0 when nothing is left to find, NaN where it is undefined
  // or there were no restarts.
  double restart_gap(std::size_t sample) const;

  // What was found, explained afresh in one batch: maps, logits and values belong together.
  AttackResult finish();

 private:
  struct Sample {
    std::unique_ptr<PreparedMetric> metric;  // null where many pairs are compared at once
    std::optional<TopSet> top;               // where first_swap cannot be read off the value; until a feature has left it
    std::int64_t predicted = 0;
    BatchReading::Probability probability = {};  // of the predicted class, where the threat model has a tolerance
    int component = -1;                          // that found the best point
  };

  void compare_rows(const Owners& owners, bool done_too = false);
  double value_of(std::int64_t row, std::int64_t sample, const MapView& map) const;
  // What is known of a row. What comes after a "no" is not read.
  struct Reading {
    bool same_class = false, preserved = false, finite = false;
    double value = 0;
    bool same_top = true;
  };
  Reading read_row(std::int64_t row, std::int64_t sample) const;
  // The metric at a row, NaN unless it is preserved.
  double judge(std::int64_t row, std::int64_t sample, const Reading& reading);
  bool within_tolerance(std::int64_t row, const Sample& sample) const;
  void take(std::int64_t sample, std::int64_t row, double value);
  void trace();
  void take_back_iteration();
  void count(std::span<const char> rows, const Owners& owners, std::int64_t SampleOutcome::*counter);
  // Rows of the iterates, and the samples whose best point they are now.
  struct Taken {
    std::vector<std::int64_t> rows, samples;
    void clear() { rows.clear(), samples.clear(); }
    void copy(const at::Tensor& iterates, const at::Tensor& points) const;
  };
  void copy_taken(const at::Tensor& iterates) const;
  bool is_better_find(double value, double than) const { return std::isnan(than) || is_worse(value, than); }
  bool is_worse(double value, double than) const;
  bool nothing_to_break() const;
  void judge_rows(const at::Tensor& iterates, const Explanation& explanation, const Owners& owners);
  void stop(std::int64_t sample);

  const AttackTask& task_;
  const Select select_;
  const std::unique_ptr<BatchJudge> batch_judge_;
  // The metric is asked these once: rows are judged by the million.
  const bool higher_is_more_alike_, has_top_;
  const double perfect_, floor_;
  std::vector<Sample> samples_;
  std::vector<SampleOutcome> outcomes_;
  std::vector<char> done_;
  WorkAccount work_;
  ValueHistory history_;
  BatchReading batch_;           // the rows at hand
  Owners rows_;                  // the sample of each row
  Taken taken_, restart_taken_;  // in this iteration
  std::vector<double> values_;
  // Of a metric that compares many pairs at once: the clean maps, sample after sample, and what it says of the rows at hand.
  const BatchMetric* batched_;
  std::vector<double> clean_maps_, row_values_;
  at::Tensor perturbed_, restart_points_;      // on the CPU by rows, on the task's device in batches
  std::vector<std::vector<double>> restarts_;  // what each of them found by itself, one value a sample
  std::vector<double> clean_values_;
  std::vector<double> joined_values_;  // the best values when the restarts ended
  std::vector<char> settled_;          // whether a sample is done because nothing more was found
  bool in_restart_ = false;
  bool starting_ = false, mending_ = false;
  std::int64_t iteration_ = 0;
  std::int64_t running_ = 0;
};

// Looks at the task's start, where it has one and the worst point is kept, as a component of that name. What is found later is
// the component `attack`'s, unless that is empty.
void look_at_start(const AttackTask& task, Ledger& ledger, const std::string& attack = {});

}  // namespace holdfast::attack

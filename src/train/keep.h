// Which epoch's weights a training keeps, and when it stops: early stopping on a validation metric, or, for a retraining, the
// limits on what may change.
#pragma once

#include <cstdint>
#include <vector>

#include "holdfast/train/trainer.h"

namespace holdfast::train {

class Keeper {
 public:
  // `start`: the network as the training begins with it. The dataset and the options must outlive the keeper.
  Keeper(const Dataset& dataset, const TrainOptions& options, const Network& start);

  // After an epoch: puts the validation samples' values into `record` and takes the weights if they are to be kept.
  void judge(EpochRecord& record, const Network& network);
  bool finished(std::int64_t epochs_done) const;

  // What is kept of a training of `epochs_done` epochs: the epoch, and whether its weights are best() or the last ones.
  bool keeps_best() const;
  std::int64_t kept_epoch(std::int64_t epochs_done) const { return keeps_best() ? best_epoch_ : epochs_done; }

  std::int64_t best_epoch() const { return best_epoch_; }  // from 1; 0: none yet, or the start of a retraining
  double best_value() const { return best_value_; }        // higher is better
  const std::vector<Parameter>& best() const { return best_; }
  void restore(std::int64_t best_epoch, double best_value, std::vector<Parameter> best);

 private:
  bool retraining() const { return !options_.retrain.from.empty(); }
  double ranking_kept(const Network& network) const;
  double value_of(const EpochRecord& record) const;

  const Dataset& dataset_;
  const TrainOptions& options_;
  at::Tensor inputs_, labels_;  // of the validation samples
  at::Tensor start_maps_;       // of a retraining's first validation samples
  double start_auc_ = 0;
  std::int64_t best_epoch_ = 0;
  double best_value_ = 0;
  std::vector<Parameter> best_;
};

// Predicts the validation and the test samples, on one thread.
void judge_snapshot(const Dataset& dataset, StepSnapshot& snapshot);

// The fresh or the given weights that a training begins with, on its device.
Network starting_network(const TrainOptions& options);

}  // namespace holdfast::train

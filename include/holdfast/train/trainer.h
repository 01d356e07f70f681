// Training a network on a dataset.
//
// A training is one thread's work with intra-operator parallelism 1, so its weights are the same bytes whatever the number
// of threads; it is also the fast way for small networks, and several trainings run side by side. `threads` serves the
// predictions of the validation and test samples, tile by tile, which are the same bytes for any number too.
// Randomness is keyed: weights by the seed, the order of samples by (seed, epoch), a step's own draws (dropout) by (seed, step),
// a sample's augmentation by (seed, epoch, sample).
//
// Ranks that train together (TrainOptions::ranks) take a part of each batch and add up their gradients at every step. All of them
// have the same weights at any time: those of one process with the same batches, up to rounding. Rank 0 alone writes.
//
// With a folder, every epoch ends with a checkpoint that holds all there is to know (checkpoint.h). Training again into the same
// folder continues after it and ends with the same bytes as a training that was never interrupted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/json.h"
#include "holdfast/core/rank_sum.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/dataset.h"
#include "holdfast/measure/prediction.h"
#include "holdfast/model/network.h"
#include "holdfast/train/progress.h"

namespace holdfast::train {

// Which epoch's weights are kept, by a metric of the validation samples.
struct EarlyStopping {
  std::string metric = "loss";  // auc | accuracy | loss
  std::int64_t patience = 0;    // epochs without a better value after which to stop; 0: never
  bool restore_best = true;     // end with the best epoch's weights instead of the last one's
};

// Training on from another network's weights, no further than its rankings and its predictions stay (R2ET's retraining). The
// epoch before the first one that breaks a limit is the last; epochs that keep both count as any other.
struct Retrain {
  std::string from = {};      // weights of the same architecture: a file, or what load_model takes; empty: fresh weights
  std::int64_t top_k = 8;     // of the rankings that are compared, by saliency
  double ranking_drop = 0.5;  // P@k of the validation samples against the starting network's rankings stays at least 1 - this
  double auc_drop = 0.01;     // their AUC stays at least the starting network's minus this
};

struct TrainOptions {
  std::string architecture = "mlp";             // call; input and classes are the dataset's unless given
  std::shared_ptr<const Network> network = {};  // trained in the architecture's place, from its weights; `architecture` names it
  std::string recipe = "vanilla";               // call; sets the three below where they are not set
  std::string objective = {};                   // call
  std::string activation = {};                  // call; one that the architecture's call names wins
  std::optional<double> weight_decay = {};
  std::int64_t epochs = 30;
  std::int64_t batch_size = 64;
  std::string optimizer = "adam";  // call
  double learning_rate = 1e-3;
  std::string schedule = "constant";  // call
  std::string augmentation = "none";  // call: random changes of the training samples
  EarlyStopping early_stopping = {};
  Retrain retrain = {};
  std::vector<std::int64_t> snapshots = {};  // optimiser steps, ascending, after each of which the network is kept as it is
  std::string precision = "float32";         // of the steps on a GPU: float32 | tf32
  std::uint64_t seed = 0;
  at::Device device = at::kCPU;
  int threads = 0;          // for predictions; 0: one for each core
  std::string folder = {};  // for checkpoint.safetensors and history.jsonl; empty: nothing is written
  bool show_progress = true;
  RankSum* ranks = nullptr;  // of the processes that train this network together
};

// The options with the recipe's and the dataset's parts put in, every call in canonical form and every value checked. Throws
// kUsage naming the option. Resolving twice changes nothing.
TrainOptions resolved(const Dataset& dataset, TrainOptions options);
// What decides the weights: everything but device, threads, folder, progress and ranks.
Json to_json(const TrainOptions& options);

// The network as it was after some of a training's optimiser steps.
struct StepSnapshot {
  std::int64_t step = 0;  // from 1
  Network network;        // on the CPU, without gradients
  std::optional<PredictionQuality> validation = {}, test = {};
};

struct TrainResult {
  Network network;           // on the CPU, without gradients
  std::string architecture;  // call that builds it, activation, input and classes included
  TrainOptions options;      // resolved
  std::vector<EpochRecord> history;
  std::int64_t kept_epoch = 0;  // whose weights these are
  std::optional<PredictionQuality> validation, test;
  std::vector<StepSnapshot> snapshots = {};  // one for each of the options' that was reached
};

// Throws kUsage for options that do not fit, kInterrupted after Ctrl-C, and kFailure when the loss is not finite, naming epoch
// and step. `on_epoch` is called after every epoch that this call trained.
TrainResult train_network(const Dataset& dataset, const TrainOptions& options,
                          const std::function<void(const EpochRecord&)>& on_epoch = {});

// Positions in `rows`, cut into the batches of an epoch: keyed by (seed, epoch), every row once. A last batch of one sample
// joins the one before it: batch normalisation cannot work on one.
std::vector<std::vector<std::int64_t>> epoch_batches(const std::vector<std::int64_t>& rows, std::int64_t batch_size,
                                                     std::uint64_t seed, std::int64_t epoch);

}  // namespace holdfast::train

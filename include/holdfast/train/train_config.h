// The configuration of `holdfast train CONFIG.toml --out RUN`:
//
//     seed = 0                                   # of the weights and the order of samples
//
//     [dataset]
//     name = "breast_cancer"                     # call
//     seed = 0                                   # of the split
//     fold = 0                                   # for datasets split by folds
//
//     [model]
//     architecture = "mlp(hidden=64x64)"         # input and classes are the dataset's unless given
//     activation = "softplus(beta=0.5)"          # the recipe's unless given
//
//     [train]
//     recipe = "vanilla"                         # objective, activation, weight_decay where they are not given
//     objective = "ce"
//     epochs = 30
//     batch_size = 64
//     optimizer = "adam"                         # or sgd(momentum=0.9)
//     learning_rate = 1e-3
//     weight_decay = 0.0
//     schedule = "constant"                      # cosine(warmup=1), step(at=30x60)
//     precision = "float32"                      # of the steps on a GPU; or tf32
//
//     [early_stopping]
//     metric = "loss"                            # auc | accuracy | loss, of the validation samples
//     patience = 0                               # epochs; 0: never stop early
//     restore_best = true
//
//     [retrain]                                  # only to train on from another network's weights
//     from = "runs/vanilla/model.safetensors"
//     top_k = 8
//     ranking_drop = 0.5                         # stop before P@k against its rankings falls below 1 - this,
//     auc_drop = 0.01                            # or the AUC by more than this
//
// Only model.architecture and dataset.name have no default.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/core/config.h"
#include "holdfast/core/stages.h"
#include "holdfast/train/trainer.h"

namespace holdfast::train {

struct TrainConfig {
  std::string dataset;
  std::uint64_t dataset_seed = 0;
  std::int64_t fold = 0;
  TrainOptions options;  // architecture up to early stopping, and seed
};

// Reads every key and calls config.finish(): an unknown key, a wrong type or a value out of range is one sentence. Names of
// methods are checked too, so that a misspelt one costs no loading of data.
TrainConfig read_train_config(const Config& config);

// `architecture` and `activation` of `model`, [train] and [early_stopping] below `table`: for configurations of which a training
// is a part (an audit's models).
void read_model_and_training(const ConfigTable& model, const ConfigTable& table, TrainOptions& options);

}  // namespace holdfast::train

#include "holdfast/train/train_config.h"

#include "holdfast/model/activation.h"
#include "holdfast/model/model.h"
#include "holdfast/train/augmentation.h"
#include "holdfast/train/objective.h"
#include "holdfast/train/optimizer.h"
#include "holdfast/train/schedule.h"

namespace holdfast::train {
namespace {

// Runs `check`, which throws when `key` names an unknown method or option, and says in which line that was.
template <class Check>
void check_call(const ConfigTable& table, const std::string& key, const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", table.where(key), error.what()));
  }
}

template <class Product>
std::string method(const ConfigTable& table, const std::string& key, const std::optional<std::string>& fallback,
                   const Registry<Product>& registry) {
  const std::string call = table.text(key, fallback);
  if (!call.empty()) check_call(table, key, [&] { (void)registry.options(call); });
  return call;
}

void read_model(const ConfigTable& table, TrainOptions& options) {
  options.architecture = method(table, "architecture", std::nullopt, architectures());
  options.activation = table.text("activation", "");
  if (!options.activation.empty()) check_call(table, "activation", [&] { (void)parse_activation(options.activation); });
}

void read_train(const ConfigTable& table, TrainOptions& options) {
  options.recipe = method(table, "recipe", options.recipe, recipes());
  options.objective = method(table, "objective", "", objectives());
  options.epochs = table.integer("epochs", options.epochs, at_least(1));
  options.batch_size = table.integer("batch_size", options.batch_size, at_least(1));
  options.optimizer = method(table, "optimizer", options.optimizer, optimizers());
  options.learning_rate = table.real("learning_rate", options.learning_rate, above(0));
  if (table.has("weight_decay")) options.weight_decay = table.real("weight_decay", std::nullopt, at_least(0));
  options.schedule = method(table, "schedule", options.schedule, schedules());
  options.augmentation = method(table, "augmentation", options.augmentation, augmentations());
  options.precision = table.text("precision", options.precision, one_of({"float32", "tf32"}));
}

void read_early_stopping(const ConfigTable& table, EarlyStopping& stopping) {
  stopping.metric = table.text("metric", stopping.metric, one_of({"auc", "accuracy", "loss"}));
  stopping.patience = table.integer("patience", stopping.patience, at_least(0));
  stopping.restore_best = table.flag("restore_best", stopping.restore_best);
}

void read_retrain(const ConfigTable& table, Retrain& retrain) {
  retrain.from = table.text("from", retrain.from);
  retrain.top_k = table.integer("top_k", retrain.top_k, at_least(1));
  retrain.ranking_drop = table.real("ranking_drop", retrain.ranking_drop, between(0.0, 1.0));
  retrain.auc_drop = table.real("auc_drop", retrain.auc_drop, between(0.0, 1.0));
}

}  // namespace

void read_model_and_training(const ConfigTable& model, const ConfigTable& table, TrainOptions& options) {
  read_model(model, options);
  read_train(table.table("train"), options);
  read_early_stopping(table.table("early_stopping"), options.early_stopping);
  read_retrain(table.table("retrain"), options.retrain);
}

TrainConfig read_train_config(const Config& config) {
  TrainConfig result;
  const ConfigTable root = config.root();
  result.options.seed = static_cast<std::uint64_t>(root.integer("seed", 0, at_least(0)));
  const ConfigTable dataset = root.table("dataset");
  result.dataset = method(dataset, "name", std::nullopt, datasets());
  result.dataset_seed = static_cast<std::uint64_t>(dataset.integer("seed", 0, at_least(0)));
  result.fold = dataset.integer("fold", 0, between(0, 4));
  read_model_and_training(root.table("model"), root, result.options);
  config.finish();
  return result;
}

}  // namespace holdfast::train

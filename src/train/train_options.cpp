#include <cmath>

#include "holdfast/model/activation.h"
#include "holdfast/model/model.h"
#include "holdfast/train/augmentation.h"
#include "holdfast/train/objective.h"
#include "holdfast/train/optimizer.h"
#include "holdfast/train/schedule.h"
#include "holdfast/train/trainer.h"

namespace holdfast::train {
namespace {

bool takes_activation(const std::string& architecture) {
  for (const OptionSpec& option : architectures().info(parse_method_call(architecture).name).options) {
    if (option.name == "activation") return true;
  }
  return false;
}

// The activation of an architecture's call, as a call of its own.
std::string activation_of(const std::string& architecture) {
  const Options options = architectures().options(architecture);
  const std::string& name = options.word("activation");
  for (const MethodInfo& info : activation_infos()) {
    if (info.name != name || info.options.empty()) continue;
    const std::string& parameter = info.options.front().name;
    return to_string(parse_activation(fmt::format("{}({}={})", name, parameter, options.real(parameter))));
  }
  return name;
}

void resolve_model(const Dataset& dataset, TrainOptions& options) {
  if (options.network != nullptr) {
    if (!options.activation.empty())
      usage_error("{} has the activations it was given with; {} (recipe {}) cannot be set", options.architecture,
                  options.activation, options.recipe);
    return;
  }
  if (takes_activation(options.architecture)) {
    if (!options.activation.empty()) options.architecture = with_activation(options.architecture, options.activation);
    options.architecture = fit_architecture(options.architecture, dataset.schema.layout, dataset.classes());
    options.activation = activation_of(options.architecture);
    return;
  }
  if (!options.activation.empty()) {
    usage_error("{} has no activation to set to {} (recipe {})", options.architecture, options.activation, options.recipe);
  }
  options.architecture = fit_architecture(options.architecture, dataset.schema.layout, dataset.classes());
}

void check_snapshots(const Dataset& dataset, const TrainOptions& options) {
  if (options.snapshots.empty()) return;
  const std::int64_t steps =
      options.epochs * static_cast<std::int64_t>(epoch_batches(dataset.train, options.batch_size, options.seed, 0).size());
  std::int64_t before = 0;
  for (const std::int64_t step : options.snapshots) {
    if (step <= before) usage_error("snapshots: step {} comes after step {}; give ascending numbers from 1", step, before);
    if (step > steps) usage_error("snapshots: there is no step {}; {} epochs have {} steps", step, options.epochs, steps);
    before = step;
  }
  if (objectives().make(options.objective)->fits())
    usage_error("snapshots: {} is fitted to its optimum and makes no steps", options.recipe);
}

void check_values(const Dataset& dataset, const TrainOptions& options) {
  if (options.precision != "float32" && options.precision != "tf32")
    usage_error("unknown precision '{}'{}", options.precision, suggestion(options.precision, {"float32", "tf32"}));
  if (options.epochs < 1) usage_error("epochs is {}; it must be at least 1", options.epochs);
  if (options.batch_size < 1) usage_error("batch_size is {}; it must be at least 1", options.batch_size);
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate)) {
    usage_error("learning_rate is {}; it must be above 0", options.learning_rate);
  }
  if (!(*options.weight_decay >= 0) || !std::isfinite(*options.weight_decay)) {
    usage_error("weight_decay is {}; it must be at least 0", *options.weight_decay);
  }
  const EarlyStopping& stopping = options.early_stopping;
  if (stopping.metric != "loss" && stopping.metric != "accuracy" && stopping.metric != "auc") {
    usage_error("early stopping: unknown metric '{}'{}", stopping.metric,
                suggestion(stopping.metric, {"auc", "accuracy", "loss"}));
  }
  if (stopping.patience < 0) usage_error("early stopping: patience is {}; it must be at least 0", stopping.patience);
  if (stopping.patience > 0 && dataset.validation.empty()) {
    usage_error("early stopping needs validation samples and {} has none; set patience to 0", dataset.name);
  }
  const Retrain& retrain = options.retrain;
  if (!retrain.from.empty() && dataset.validation.empty()) {
    usage_error("retraining watches validation samples and {} has none", dataset.name);
  }
  if (!retrain.from.empty() && (retrain.top_k < 1 || retrain.top_k > dataset.schema.layout.features())) {
    usage_error("retrain.top_k is {}; it must be between 1 and the {} features of {}", retrain.top_k,
                dataset.schema.layout.features(), dataset.name);
  }
  if (dataset.train.empty()) usage_error("{} has no training samples", dataset.name);
  augmentations().make(options.augmentation)->check(dataset.schema);
  check_snapshots(dataset, options);
}

}  // namespace

TrainOptions resolved(const Dataset& dataset, TrainOptions options) {
  const auto recipe = recipes().make(options.recipe);
  options.recipe = recipe->name;
  if (options.objective.empty()) options.objective = recipe->objective;
  if (options.activation.empty()) options.activation = recipe->activation;
  options.weight_decay = options.weight_decay.value_or(recipe->weight_decay);
  options.objective = objectives().options(options.objective).canonical();
  options.optimizer = optimizers().options(options.optimizer).canonical();
  options.schedule = schedules().options(options.schedule).canonical();
  options.augmentation = augmentations().options(options.augmentation).canonical();
  if (objectives().make(options.objective)->fits()) options.epochs = 1;
  check_values(dataset, options);
  resolve_model(dataset, options);
  return options;
}

Json to_json(const TrainOptions& options) {
  Json json = {{"architecture", options.architecture},
               {"activation", options.activation},
               {"recipe", options.recipe},
               {"objective", options.objective},
               {"weight_decay", options.weight_decay.value_or(0)},
               {"epochs", options.epochs},
               {"batch_size", options.batch_size},
               {"optimizer", options.optimizer},
               {"learning_rate", options.learning_rate},
               {"schedule", options.schedule},
               {"early_stopping",
                {{"metric", options.early_stopping.metric},
                 {"patience", options.early_stopping.patience},
                 {"restore_best", options.early_stopping.restore_best}}},
               {"seed", options.seed}};
  if (const Retrain& retrain = options.retrain; !retrain.from.empty()) {
    json["retrain"] = {
        {"from", retrain.from}, {"top_k", retrain.top_k}, {"ranking_drop", retrain.ranking_drop}, {"auc_drop", retrain.auc_drop}};
  }
  if (options.precision != "float32") json["precision"] = options.precision;
  if (options.augmentation != "none") json["augmentation"] = options.augmentation;
  if (!options.snapshots.empty()) json["snapshots"] = options.snapshots;
  return json;
}

}  // namespace holdfast::train

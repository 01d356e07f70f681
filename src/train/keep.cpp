#include "keep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/metric/compare.h"
#include "holdfast/model/model.h"
#include "holdfast/train/checkpoint.h"

namespace holdfast::train {
namespace {

constexpr std::int64_t kRankedSamples = 500;  // whose rankings a retraining watches

std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Computes the saliency of the predicted class, as every audit shows it.
at::Tensor saliency_maps(const Network& network, const at::Tensor& inputs, const Schema& schema) {
  const auto model = make_model(network);
  const at::Tensor rows = inputs.to(network.device(), network.dtype());
  const ExplainTask task{.model = *model,
                         .samples = {.inputs = rows,
                                     .targets = predicted_class(network.logits(rows).detach()),
                                     .ids = at::arange(rows.size(0), at::kLong),
                                     .schema = share_schema(schema)}};
  return explainers().make("saliency")->attribute(task).maps.to(at::kCPU, at::kFloat).contiguous();
}

std::span<const float> values_of(const at::Tensor& maps) {
  return {maps.const_data_ptr<float>(), static_cast<std::size_t>(maps.numel())};
}

}  // namespace

Keeper::Keeper(const Dataset& dataset, const TrainOptions& options, const Network& start) : dataset_(dataset), options_(options) {
  if (dataset.validation.empty()) return;
  inputs_ = dataset.inputs_of(dataset.validation);
  labels_ = dataset.labels_of(dataset.validation);
  if (!retraining()) return;
  start_maps_ = saliency_maps(start, inputs_.slice(0, 0, kRankedSamples), dataset.schema);
  start_auc_ = auc(predict(start, inputs_), labels_).mean;
  best_ = snapshot(start.parameters());
}

void Keeper::judge(EpochRecord& record, const Network& network) {
  if (!inputs_.defined()) return;
  const int threads = options_.device.is_cpu() ? options_.threads : 1;
  const PredictionQuality quality = prediction_quality(predict(network, inputs_, threads), labels_);
  record.validation_loss = quality.loss;
  record.accuracy = quality.accuracy.mean;
  record.auc = if_finite(quality.auc.mean);
  if (retraining()) record.ranking_kept = ranking_kept(network);

  const double value = value_of(record);
  const bool keep = retraining() ? value >= 0 : best_epoch_ == 0 || value > best_value_;
  if (!keep) return;
  best_value_ = value;
  best_epoch_ = record.epoch;
  best_ = snapshot(network.parameters());
}

// Gives the value to maximise. That of a retraining is below zero where a limit is broken.
double Keeper::value_of(const EpochRecord& record) const {
  if (retraining()) {
    const Retrain& limits = options_.retrain;
    return std::min(*record.ranking_kept - (1 - limits.ranking_drop),
                    record.auc.value_or(start_auc_) - (start_auc_ - limits.auc_drop));
  }
  const std::string& metric = options_.early_stopping.metric;
  if (metric == "auc" && !record.auc) {
    usage_error("early stopping on auc: the validation samples of {} are all of one class; use loss or accuracy", dataset_.name);
  }
  return metric == "loss" ? -*record.validation_loss : (metric == "auc" ? *record.auc : *record.accuracy);
}

double Keeper::ranking_kept(const Network& network) const {
  const auto metric = metrics().make(fmt::format("top_k(k={})", options_.retrain.top_k));
  const at::Tensor maps = saliency_maps(network, inputs_.slice(0, 0, kRankedSamples), dataset_.schema);
  const std::vector<double> kept = compare_maps(*metric, dataset_.schema, values_of(start_maps_), values_of(maps));
  return std::accumulate(kept.begin(), kept.end(), 0.0) / static_cast<double>(kept.size());
}

bool Keeper::finished(std::int64_t epochs_done) const {
  if (epochs_done >= options_.epochs) return true;
  if (retraining()) return epochs_done > best_epoch_;
  const std::int64_t patience = options_.early_stopping.patience;
  return patience > 0 && best_epoch_ > 0 && epochs_done - best_epoch_ >= patience;
}

bool Keeper::keeps_best() const {
  return retraining() || (options_.early_stopping.restore_best && best_epoch_ > 0);
}

void Keeper::restore(std::int64_t best_epoch, double best_value, std::vector<Parameter> best) {
  best_epoch_ = best_epoch;
  best_value_ = best_value;
  best_ = std::move(best);
}

void judge_snapshot(const Dataset& dataset, StepSnapshot& snapshot) {
  const auto quality_on = [&](const std::vector<std::int64_t>& rows) {
    return prediction_quality(predict(snapshot.network, dataset.inputs_of(rows), 1), dataset.labels_of(rows));
  };
  if (!dataset.validation.empty()) snapshot.validation = quality_on(dataset.validation);
  if (!dataset.test.empty()) snapshot.test = quality_on(dataset.test);
}

Network starting_network(const TrainOptions& options) {
  if (options.network != nullptr) return options.network->to(options.device);
  Network network = architectures().make(options.architecture)->build(options.seed);
  if (!options.retrain.from.empty()) {
    const auto model = load_model(options.retrain.from);
    if (model->network() == nullptr) usage_error("retrain.from: {} is no network that can be trained on", options.retrain.from);
    network.load(model->network()->parameters(), options.retrain.from);
  }
  return network.to(options.device);
}

}  // namespace holdfast::train

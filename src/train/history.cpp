#include "holdfast/core/error.h"
#include "holdfast/core/json_error.h"
#include "holdfast/train/progress.h"

namespace holdfast::train {
namespace {

std::optional<double> optional_number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? std::nullopt : std::optional<double>(found->get<double>());
}

}  // namespace

Json to_json(const EpochRecord& record) {
  Json json = {{"epoch", record.epoch}, {"learning_rate", record.learning_rate}, {"loss", record.loss}};
  json["parts"] = Json::object();
  for (const auto& [name, value] : record.parts) json["parts"][name] = value;
  if (record.validation_loss) {
    json["validation"] = {
        {"loss", *record.validation_loss}, {"accuracy", optional_json(record.accuracy)}, {"auc", optional_json(record.auc)}};
  }
  if (record.ranking_kept) json["ranking_kept"] = *record.ranking_kept;
  json["seconds"] = record.seconds;
  return json;
}

EpochRecord epoch_record_from_json(const Json& json) {
  EpochRecord record;
  record.epoch = json.at("epoch").get<std::int64_t>();
  record.learning_rate = json.at("learning_rate").get<double>();
  record.loss = json.at("loss").get<double>();
  for (const auto& [name, value] : json.at("parts").items()) record.parts.emplace_back(name, value.get<double>());
  if (const auto validation = json.find("validation"); validation != json.end()) {
    record.validation_loss = optional_number(*validation, "loss");
    record.accuracy = optional_number(*validation, "accuracy");
    record.auc = optional_number(*validation, "auc");
  }
  record.ranking_kept = optional_number(json, "ranking_kept");
  record.seconds = json.at("seconds").get<double>();
  return record;
}

Json to_json(const TrainProgress& progress) {
  Json history = Json::array();
  for (const EpochRecord& record : progress.history) history.push_back(to_json(record));
  return {
      {"step", progress.step}, {"best_epoch", progress.best_epoch}, {"best_value", progress.best_value}, {"history", history}};
}

TrainProgress progress_from_json(const Json& json, const std::string& path) {
  try {
    TrainProgress progress{.step = json.at("step").get<std::int64_t>(),
                           .best_epoch = json.at("best_epoch").get<std::int64_t>(),
                           .best_value = json.at("best_value").get<double>()};
    for (const Json& line : json.at("history")) progress.history.push_back(epoch_record_from_json(line));
    return progress;
  } catch (const Json::exception& error) {
    input_error("{}: its record of the training is damaged ({})", path, json_reason(error));
  }
}

}  // namespace holdfast::train

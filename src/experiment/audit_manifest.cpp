#include "audit_manifest.h"

#include "holdfast/core/torch.h"
#include "holdfast/experiment/run_folder.h"

namespace holdfast {
namespace {

Json data_json(const AuditData& data) {
  Json excluded = Json::array();
  for (const auto& [reason, count] : data.excluded) excluded.push_back({{"reason", reason}, {"count", count}});
  return {{"name", data.name},
          {"samples", data.inputs.size(0)},
          {"excluded", excluded},
          {"schema", to_json(data.schema)},
          {"notes", data.notes}};
}

}  // namespace

Json manifest_json(const AuditPlan& plan, const std::string& started, double seconds) {
  const std::string device = plan.models.empty() ? "cpu" : plan.models.front().model->device().str();
  Json json = machine_facts(plan.tiles.threads, device);
  json["kind"] = "audit";
  json["title"] = plan.title;
  json["command"] = plan.command;
  json["identity"] = plan.identity;
  json["seed"] = plan.seed;
  json["tile"] = Json::object();
  for (const AuditData& data : plan.data)
    json["tile"][data.name] = plan.tiles.size > 0 ? plan.tiles.size : default_tile(data.schema.layout);
  json["started"] = started;
  json["seconds"] = seconds;
  json["stages"] = Json::array();
  for (const auto& [name, duration] : plan.stages) json["stages"].push_back({{"name", name}, {"seconds", duration}});
  json["datasets"] = Json::array();
  for (const AuditData& data : plan.data) json["datasets"].push_back(data_json(data));
  json["notes"] = Json::array();
  return json;
}

}  // namespace holdfast

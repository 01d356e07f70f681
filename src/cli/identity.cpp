#include "identity.h"

#include "holdfast/experiment/run_folder.h"

namespace holdfast::cli {

Json identity_of(const SubjectFlags& subject, const Trial& trial, const CommonFlags& common, const Json& more) {
  Json config{{"model", subject.model},
              {"inputs", subject.inputs},
              {"targets", subject.targets},
              {"labels", subject.labels},
              {"schema", subject.schema},
              {"baseline", subject.baseline},
              {"background", subject.background},
              {"explainers", trial.explainers},
              {"attacks", trial.attacks},
              {"metrics", trial.metrics},
              {"measures", trial.measures},
              {"threat", to_json(trial.threat)},
              {"select", to_string(trial.select)},
              {"seed", common.seed}};
  if (subject.output_kind != "auto") config["output_kind"] = subject.output_kind;
  if (!subject.output_name.empty()) config["output_name"] = subject.output_name;
  config.update(more);
  Json identity{{"config", config}};
  identity.update(run_conditions(common.tile, common.torch_device(), subject.files()));
  return identity;
}

}  // namespace holdfast::cli

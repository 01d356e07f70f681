#include "identity.h"

#include "holdfast/experiment/run_folder.h"

namespace holdfast::cli {

Json identity_of(const SubjectFlags& subject, const AttackFlags& attack, const CommonFlags& common, const Json& more,
                 const std::vector<std::string>& more_files) {
  const std::vector<double> epsilons = attack.parsed_epsilons();
  Json config{{"model", subject.model},
              {"inputs", subject.inputs},
              {"targets", subject.targets},
              {"schema", subject.schema},
              {"baseline", subject.baseline},
              {"background", subject.background},
              {"explainers", attack.explainers},
              {"attacks", attack.attacks},
              {"metrics", attack.metrics},
              {"norm", attack.norm},
              {"epsilon", epsilons.size() == 1 ? Json(epsilons.front()) : Json(epsilons)},
              {"box", attack.box},
              {"valid", attack.valid},
              {"sides", attack.sides},
              {"negative_weights", attack.negative_weights},
              {"tolerance", attack.tolerance},
              {"select", attack.select},
              {"seed", common.seed}};
  config.update(more);
  std::vector<std::string> files{model_file(subject.model), subject.inputs,    subject.targets, subject.schema,
                                 subject.baseline,          subject.background};
  files.insert(files.end(), more_files.begin(), more_files.end());
  Json identity{{"config", config}};
  identity.update(run_conditions(common.tile, common.torch_device(), files));
  return identity;
}

}  // namespace holdfast::cli

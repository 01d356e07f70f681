// A task for attacks, with everything it refers to.
#pragma once

#include <memory>
#include <string>

#include "holdfast/attack/attack.h"
#include "holdfast/core/torch.h"
#include "support/small_models.h"

namespace holdfast::testing_support {
using namespace attack;

// The same network for images: their pixels one after the other go into it.
inline Network for_images(const Network& network) {
  Network flat;
  flat.add("input", op::Input{});
  flat.add("flat", op::Flatten{});
  for (std::size_t i = 1; i < network.nodes().size(); ++i) flat.add(network.nodes()[i].name, network.nodes()[i].operation);
  return flat;
}

struct AttackCase {
  std::unique_ptr<Model> model = mlp_model();
  std::string explainer = "saliency";
  std::string metric = "top_k(k=4)";
  Schema schema = Schema::of(Layout::vector(12));
  ThreatModel threat = ThreatModel::make({.epsilons = {0.5}}, schema);
  at::Tensor inputs = normal_tensor({9, 12}, 50);
  at::Tensor ids = at::arange(100, 100 + inputs.size(0), at::kLong);
  at::Tensor targets = {};    // undefined: the predicted classes
  at::Tensor reference = {};  // undefined: the inputs
  std::uint64_t seed = 5;
  Select select = Select::kWorst;
  bool trace = false;

  AttackResult run(const std::string& attack) { return attacks().make(attack)->run(task()); }
  void check(const std::string& attack) { attacks().make(attack)->check(task()); }

  AttackTask task() {
    made_explainer_ = explainers().make(explainer);
    made_metric_ = metrics().make(metric);
    const at::NoGradGuard no_graph;
    return {.model = *model,
            .explainer = *made_explainer_,
            .metric = *made_metric_,
            .threat = threat,
            .samples = {.inputs = inputs,
                        .targets = targets.defined() ? targets : predicted_class(model->logits(inputs)),
                        .ids = ids,
                        .schema = share_schema(schema)},
            .seed = seed,
            .reference = reference.defined() ? reference : inputs,
            .select = select,
            .trace = trace};
  }

  // The same case for samples begin <= i < end alone.
  void keep(std::int64_t begin, std::int64_t end) {
    if (!reference.defined()) reference = inputs;
    inputs = inputs.slice(0, begin, end);
    ids = ids.slice(0, begin, end);
    if (targets.defined()) targets = targets.slice(0, begin, end);
  }

 private:
  std::unique_ptr<Explainer> made_explainer_;
  std::unique_ptr<Metric> made_metric_;
};

inline double mean_value(const AttackResult& result) {
  double sum = 0;
  for (const SampleOutcome& sample : result.samples) sum += sample.value;
  return sum / static_cast<double>(result.samples.size());
}

}  // namespace holdfast::testing_support

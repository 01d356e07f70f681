// Cross-entropy: -log p_y(x); the term of every objective that makes the network predict.

#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"

namespace holdfast::train::ce {

const MethodInfo kInfo{.name = "ce", .summary = "cross-entropy of the labels"};

class CrossEntropy final : public Objective {
 public:
  explicit CrossEntropy(const Options& options) : Objective(options.canonical()) {}

  std::vector<Term> terms(double) const override { return {{.name = "ce"}}; }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    return {cross_entropies(trainee.training_logits(batch.inputs, batch.seed), batch.labels)};
  }
};

void add_to(Registry<Objective>& registry) {
  registry.add<CrossEntropy>(kInfo);
}

}  // namespace holdfast::train::ce

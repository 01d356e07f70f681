// Cross-entropy: -log p_y(x); the term of every objective that makes the network predict.

#include "holdfast/core/torch.h"
#include "methods.h"

namespace holdfast {
namespace {

const MethodInfo kCrossEntropyInfo{.name = "ce", .summary = "cross-entropy of the labels"};

class CrossEntropy final : public Objective {
 public:
  explicit CrossEntropy(const Options& options) : Objective(options.canonical()) {}

  std::vector<Term> terms(double) const override { return {{.name = "ce"}}; }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    return {cross_entropies(trainee.training_logits(batch.inputs, batch.seed), batch.labels)};
  }
};

}  // namespace

at::Tensor cross_entropies(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::None);
}

void add_ce(Registry<Objective>& registry) {
  registry.add<CrossEntropy>(kCrossEntropyInfo);
}

}  // namespace holdfast

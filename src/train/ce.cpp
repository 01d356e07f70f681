// Cross-entropy: -log p_y(x), the mean over the batch; the part of every objective that makes the network predict.

#include "holdfast/core/torch.h"
#include "methods.h"

namespace holdfast {
namespace {

const MethodInfo kInfo{.name = "ce", .summary = "cross-entropy of the labels"};

class CrossEntropy final : public Objective {
 public:
  explicit CrossEntropy(const Options& options) : Objective(options.canonical()) {}

  Loss loss(Network& network, const TrainBatch& batch) const override {
    const at::Tensor total = at::cross_entropy_loss(network.run_training(batch.inputs, batch.seed), batch.labels);
    return {.total = total, .parts = {{"ce", total.detach()}}};
  }
};

}  // namespace

void add_ce(Registry<Objective>& registry) {
  registry.add<CrossEntropy>(kInfo);
}

}  // namespace holdfast

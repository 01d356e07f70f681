// pgd: adversarial training.
//     CE(x')     x': where the cross-entropy is largest in an l_inf ball round x (inner_maximum.h)
// Madry et al., "Towards Deep Learning Models Resistant to Adversarial Attacks", ICLR 2018; in the LENS paper the model whose
// attributions hold best beside IG-SUM-NORM's. The maximum is sought with the network as it predicts; the loss itself is of the
// network in training, where the two differ.
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "inner_maximum.h"

namespace holdfast::train::pgd {

const MethodInfo kInfo{.name = "pgd",
                       .summary = "cross-entropy at the worst point of a ball: adversarial training",
                       .citation = "Madry et al., Towards Deep Learning Models Resistant to Adversarial Attacks, ICLR 2018",
                       .options = InnerMaximum::options(),
                       .presets = chen_presets(),
                       .notes =
                           "A gradient evaluation a step, and one for the loss. Presets are those of Chen et al. 2019, with "
                           "epsilon in the units of inputs in [0, 1]."};

class Pgd final : public Objective {
 public:
  explicit Pgd(const Options& options) : Objective(options.canonical()), inner_(InnerMaximum::of(options)) {}

  std::vector<Term> terms(double) const override { return {{.name = "ce"}, {.name = "robust_accuracy", .weight = 0}}; }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    const at::Tensor moved =
        inner_.find(batch, [&](const at::Tensor& point) { return cross_entropies(trainee.logits(point), batch.labels); });
    const at::Tensor logits = trainee.training_logits(moved, batch.seed);
    return {cross_entropies(logits, batch.labels), hits(logits, batch.labels)};
  }

 private:
  InnerMaximum inner_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<Pgd>(kInfo);
}

}  // namespace holdfast::train::pgd

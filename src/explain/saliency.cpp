// saliency: the gradient of the explained quantity by the input, its magnitude unless signed.
//     I(x) = | d p_c(x) / dx |          p_c: softmax probability of the class that is explained
// Simonyan, Vedaldi, Zisserman, "Deep Inside Convolutional Networks", 2014. The scale of a saturated probability is kept
// apart (logit_cotangent.h), so its ranking survives. On tables with one-hot groups the gradient is projected to the
// directions that valid rows have; project=none gives the papers' maps.

#include "chain_gradient.h"
#include "finish.h"
#include "graph.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/explain/logit_cotangent.h"

namespace holdfast::explain::saliency {

const MethodInfo kInfo{.name = "saliency",
                       .summary = "magnitude of the gradient of the class's probability by the input",
                       .citation = "Simonyan, Vedaldi, Zisserman, Deep Inside Convolutional Networks, ICLR workshop 2014",
                       .options = {target_option(), signed_option(false), project_option()}};

class Saliency final : public Explainer {
 public:
  explicit Saliency(const Options& options)
      : Explainer(options.canonical()),
        quantity_(parse_explained_quantity(options.word("target"))),
        signed_(options.flag("signed")),
        projection_(options, name()) {}

  void check(const Model& model) const override {
    if (!model.capabilities().gradients)
      usage_error("{}: the model has no gradients by its inputs; occlusion and shapley need none", name());
  }

  void check_task(const ExplainTask& task) const override {
    check(task.model);
    (void)projection_.applies(task);
  }

  std::optional<RankedGradient> ranked_gradient(const Schema& schema) const override {
    return RankedGradient{quantity_, projection_.applies(&schema)};
  }

  Explanation attribute(const ExplainTask& task) const override {
    if (std::optional<Explanation> there = explain_chain(task, map_of(task))) return *std::move(there);
    const at::AutoGradMode with_graph(true);
    const Traced traced = trace(task, task.samples.inputs.detach().requires_grad_(), /*create_graph=*/false);
    return {.maps = traced.maps.detach(),
            .log_scale = traced.log_scale,
            .logits = traced.logits.detach(),
            .gauge_share = traced.gauge_share};
  }

  std::unique_ptr<Linearization> linearize(const ExplainTask& task) const override {
    if (!task.model.capabilities().double_backward) usage_error("{}: the model cannot be differentiated twice", name());
    if (std::unique_ptr<Linearization> here = linearize_chain(task, map_of(task))) return here;
    const at::AutoGradMode with_graph(true);
    at::Tensor inputs = task.samples.inputs.detach().requires_grad_();
    Traced traced = trace(task, inputs, /*create_graph=*/true);
    return hold_graph(std::move(inputs), std::move(traced.maps), std::move(traced.log_scale), std::move(traced.logits));
  }

  // The scale is part of what is trained: it is multiplied back, as a constant, so that losses see true magnitudes.
  at::Tensor differentiable(const ExplainTask& task) const override {
    HOLDFAST_CHECK(task.samples.inputs.requires_grad());
    const at::AutoGradMode with_graph(true);
    const Traced traced = trace(task, task.samples.inputs, /*create_graph=*/true);
    std::vector<std::int64_t> one_a_sample(static_cast<std::size_t>(traced.maps.dim()), 1);
    one_a_sample[0] = traced.maps.size(0);
    return traced.maps * traced.log_scale.exp().view(one_a_sample);
  }

 private:
  struct Traced {
    at::Tensor maps, log_scale, logits, gauge_share;
  };

  GradientMap map_of(const ExplainTask& task) const {
    return {.quantity = quantity_, .magnitudes = !signed_ && !task.keep_signs, .project = projection_.applies(task)};
  }

  Traced trace(const ExplainTask& task, const at::Tensor& inputs, bool create_graph) const {
    const at::Tensor logits = task_logits(task, inputs, create_graph);
    const LogitCotangent cotangent = logit_cotangent(create_graph ? logits : logits.detach(), task.samples.targets, quantity_);
    const at::Tensor gradient = input_gradient(logits, inputs, cotangent.value, create_graph);
    at::Tensor maps = projection_.project(gradient, task);
    if (!signed_ && !task.keep_signs) maps = maps.abs();
    return {std::move(maps), cotangent.log_scale, logits, create_graph ? at::Tensor() : projection_.gauge_share(gradient, task)};
  }

  ExplainedQuantity quantity_;
  bool signed_;
  Projection projection_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<Saliency>(kInfo);
}

}  // namespace holdfast::explain::saliency

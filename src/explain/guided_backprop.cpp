// guided_backprop: the gradient of the class's logit, in whose backward pass rectifiers let only positive cotangents through.
//     g_in = f'(z) max(g_out, 0)          at every rectifier a = f(z); everything else as in the gradient
// Springenberg, Dosovitskiy, Brox, Riedmiller, "Striving for Simplicity: The All Convolutional Net", ICLR workshop 2015.
// The paper has ReLU alone. Here all of relu, relu6, leaky_relu, elu, softplus, gelu and silu count as rectifiers, each with its
// own derivative (a leaky one passes `slope` of a positive cotangent where z < 0), and so does a softplus that stands in for a
// ReLU; tanh and sigmoid do not rectify and are differentiated as they are.
#include "guided_backprop.h"

#include "finish.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "layer_explainer.h"

namespace holdfast::explain::guided_backprop {

const MethodInfo kInfo{.name = "guided_backprop",
                       .summary = "gradient whose backward pass keeps only positive cotangents at rectifiers",
                       .citation = "Springenberg et al., Striving for Simplicity: The All Convolutional Net, ICLR workshop 2015",
                       .options = {target_option("logit"), signed_option(true), project_option()},
                       .needs = {"layers of a network"}};

bool rectifies(const Operation& operation) {
  using Kind = op::Activation::Kind;
  const auto* activation = std::get_if<op::Activation>(&operation);
  return activation != nullptr && activation->kind != Kind::kTanh && activation->kind != Kind::kSigmoid;
}

class GuidedBackprop final : public LayerExplainer {
 public:
  explicit GuidedBackprop(const Options& options)
      : LayerExplainer(options.canonical()),
        quantity_(parse_explained_quantity(options.word("target"))),
        signed_(options.flag("signed")),
        projection_(options, name()) {}

  void check_task(const ExplainTask& task) const override {
    check(task.model);
    (void)projection_.applies(task);
  }

 private:
  Traced trace(const ExplainTask& task, const Network& network, const at::Tensor& inputs) const override {
    const LayerValues here = run_layers(network, inputs, task.rule);
    const LogitCotangent cotangent = logit_cotangent(here.logits(), task.samples.targets, quantity_);
    const at::Tensor gradient = guided_gradient(here, cotangent.value);
    at::Tensor maps = projection_.project(gradient, task);
    if (!signed_ && !task.keep_signs) maps = maps.abs();
    return {.maps = std::move(maps),
            .log_scale = cotangent.log_scale,
            .logits = here.logits(),
            .gauge_share = projection_.gauge_share(gradient, task)};
  }

  ExplainedQuantity quantity_;
  bool signed_;
  Projection projection_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<GuidedBackprop>(kInfo);
}

}  // namespace holdfast::explain::guided_backprop

namespace holdfast::explain {

at::Tensor guided_gradient(const LayerValues& here, const at::Tensor& cotangent) {
  return walk_back(here, cotangent, [](const LayerStep& step) {
    return step.pull(guided_backprop::rectifies(step.node().operation) ? at::relu(step.cotangent()) : step.cotangent());
  });
}

}  // namespace holdfast::explain

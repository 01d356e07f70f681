// saliency: the gradient of the explained quantity by the input, its magnitude unless signed.
//     I(x) = | d p_c(x) / dx |          p_c: softmax probability of the class that is explained
// Simonyan, Vedaldi, Zisserman, "Deep Inside Convolutional Networks", 2014. The scale of a saturated probability is kept
// apart (logit_cotangent.h), so its ranking survives. On tables with one-hot groups the gradient is projected to the
// directions that valid rows have; project=none gives the papers' maps.

#include "graph.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/logit_cotangent.h"
#include "methods.h"

namespace holdfast {
namespace {

const MethodInfo kInfo{
    .name = "saliency",
    .summary = "magnitude of the gradient of the class's probability by the input",
    .citation = "Simonyan, Vedaldi, Zisserman, Deep Inside Convolutional Networks, ICLR workshop 2014",
    .options = {
        {"target", "probability", one_of({"probability", "logit", "ce"}),
         "what is differentiated: the class's probability, its logit or its cross-entropy"},
        {"signed", false, anything(), "the gradient itself instead of its magnitude"},
        {"project", "auto", one_of({"auto", "groups", "none"}),
         "remove the part of the gradient that no valid row of a one-hot group can feel; auto: where the data has groups"}}};

class Saliency final : public Explainer {
 public:
  explicit Saliency(const Options& options)
      : Explainer(options.canonical()),
        quantity_(parse_explained_quantity(options.word("target"))),
        signed_(options.flag("signed")),
        project_(options.word("project")) {}

  void check(const Model& model) const override {
    if (!model.capabilities().gradients) usage_error("{}: the model has no gradients by its inputs", name());
  }

  Explanation attribute(const ExplainTask& task) const override {
    const at::AutoGradMode with_graph(true);
    const Traced traced = trace(task, task.inputs.detach().requires_grad_(), /*create_graph=*/false);
    return {traced.maps.detach(), traced.log_scale, traced.logits.detach()};
  }

  std::unique_ptr<Linearization> linearize(const ExplainTask& task) const override {
    if (!task.model.capabilities().double_backward) usage_error("{}: the model cannot be differentiated twice", name());
    const at::AutoGradMode with_graph(true);
    at::Tensor inputs = task.inputs.detach().requires_grad_();
    Traced traced = trace(task, inputs, /*create_graph=*/true);
    return hold_graph(std::move(inputs), std::move(traced.maps), std::move(traced.log_scale), std::move(traced.logits));
  }

  // The scale is part of what is trained: it is multiplied back, as a constant, so that losses see true magnitudes.
  at::Tensor differentiable(const ExplainTask& task) const override {
    HOLDFAST_CHECK(task.inputs.requires_grad());
    const at::AutoGradMode with_graph(true);
    const Traced traced = trace(task, task.inputs, /*create_graph=*/true);
    std::vector<std::int64_t> one_a_sample(static_cast<std::size_t>(traced.maps.dim()), 1);
    one_a_sample[0] = traced.maps.size(0);
    return traced.maps * traced.log_scale.exp().view(one_a_sample);
  }

 private:
  struct Traced {
    at::Tensor maps, log_scale, logits;
  };

  Traced trace(const ExplainTask& task, const at::Tensor& inputs, bool create_graph) const {
    const at::Tensor logits = task_logits(task, inputs);
    const LogitCotangent cotangent = logit_cotangent(create_graph ? logits : logits.detach(), task.targets, quantity_);
    at::Tensor maps = input_gradient(logits, inputs, cotangent.value, create_graph);
    if (projects(task.schema)) maps = project_groups(maps, *task.schema);
    if (!signed_ && !task.keep_signs) maps = maps.abs();
    return {std::move(maps), cotangent.log_scale, logits};
  }

  bool projects(const Schema* schema) const {
    const bool has_groups = schema != nullptr && !schema->groups.empty();
    if (project_ == "groups" && !has_groups)
      usage_error("{}: the data has no one-hot groups; name them in a schema (--schema FILE)", name());
    return project_ != "none" && has_groups;
  }

  ExplainedQuantity quantity_;
  bool signed_;
  std::string project_;
};

}  // namespace

void add_saliency(Registry<Explainer>& registry) {
  registry.add<Saliency>(kInfo);
}

}  // namespace holdfast

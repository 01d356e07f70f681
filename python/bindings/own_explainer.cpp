// Explainers of Python: a model, inputs and classes in, maps of the inputs' shape out.
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "lent.h"
#include "own_method.h"

namespace holdfast::python {
namespace own_explainer {

class OwnExplainer final : public Explainer {
 public:
  OwnExplainer(const OwnMethod& method, const Options& options)
      : Explainer(options.canonical()),
        function_(method.function),
        is_differentiable_(method.facts.at("differentiable").get<bool>()),
        evaluations_(method.facts.at("evaluations").get<std::int64_t>()) {
    const PythonTurn turn;
    keywords_ = share(keywords_of(method.info, options));
  }

  Explanation attribute(const ExplainTask& task) const override {
    ExplainTask here = task;
    here.samples.inputs = task.samples.inputs.detach();
    at::Tensor maps = call(here).detach();
    const at::NoGradGuard no_graph;
    return {.maps = maps,
            .log_scale = at::zeros({maps.size(0)}, maps.options()),
            .logits = task.model.logits(here.samples.inputs).detach()};
  }

  at::Tensor differentiable(const ExplainTask& task) const override {
    if (!is_differentiable_) return Explainer::differentiable(task);
    at::Tensor maps = call(task);
    if (!maps.requires_grad())
      usage_error("{}: it says that it is differentiable, but its maps have no graph; compute them with torch, create_graph=True",
                  name());
    return maps;
  }

  void check(const Model& model) const override {
    if (is_differentiable_ && !model.capabilities().gradients) usage_error("{}: the model has no gradients", name());
  }
  bool is_differentiable() const override { return is_differentiable_; }
  std::int64_t evaluations(const Schema&) const override { return evaluations_; }

 private:
  at::Tensor call(const ExplainTask& task) const {
    if (!task.rule.softplus_beta.empty()) usage_error("{}: it has no surrogate with softplus", name());
    const at::AutoGradMode with_graph(true);
    const PythonTurn turn;
    const Lending<ModelView> lent(std::make_shared<ModelView>(task.model));
    const py::object result =
        (*function_)(py::cast(lent.view()), task.samples.inputs, task.samples.targets, task.seed, **py::dict(*keywords_));
    return py::cast<at::Tensor>(result);
  }

  SharedObject function_, keywords_;
  bool is_differentiable_;
  std::int64_t evaluations_;
};

}  // namespace own_explainer

void extend_explainers(OwnMethod method) {
  const auto shared = std::make_shared<const OwnMethod>(std::move(method));
  explainers_to_extend().extend(
      shared->info, [shared](const Options& options) { return std::make_unique<own_explainer::OwnExplainer>(*shared, options); });
}

}  // namespace holdfast::python

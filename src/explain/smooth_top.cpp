// smooth_top: how often a feature is in the top k of an explanation when noise is added to the input.
//     m_i(x) = P[i in the top k of the map at x + sigma e]          e standard normal, estimated with `samples` copies
// The explained class is the input's at every copy. Levine, Singla, Feizi, "Certifiably Robust Interpretation in Deep Learning",
// 2019 (sparsified SmoothGrad). sigma Phi^-1(m_i) changes by no more than the input does in l2, whatever the model: that is what
// smoothed_overlap certifies (docs/certificates.md). The noise is not projected on one-hot groups: the proof needs all of it.
//
// The noise is that of the sample's id, so the map is a fixed function of the input. It is a count: there is no gradient to
// follow.
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/explain/noisy_tops.h"

namespace holdfast::explain::smooth_top {

const MethodInfo kInfo{
    .name = "smooth_top",
    .summary = "share of noisy copies of the input in which a feature is in the top k of another explanation",
    .citation = "Levine, Singla, Feizi, Certifiably Robust Interpretation in Deep Learning, arXiv:1905.12105, 2019",
    .options = {{"k", 8, at_least(1), "size of the top that is counted"},
                {"sigma", 0.1, above(0), "deviation of the noise, in the units of the inputs"},
                {"samples", 1000, at_least(1), "noisy copies"},
                {"of", "saliency", anything(), "the explanation whose top is counted"}}};

class SmoothTop final : public Explainer {
 public:
  explicit SmoothTop(const Options& options)
      : Explainer(options.canonical()),
        tops_{.k = options.integer("k"),
              .sigma = options.real("sigma"),
              .copies = options.integer("samples"),
              .purpose = "smooth_top.noise"},
        of_(explainers().make(options.word("of"))) {}

  void check(const Model& model) const override { of_->check(model); }

  void check_task(const ExplainTask& task) const override {
    of_->check_task(task);
    const std::int64_t features = task.samples.schema ? task.samples.layout().features() : task.samples.inputs[0].numel();
    if (tops_.k > features) usage_error("{}: the map has {} features; choose k <= {}", name(), features, features);
  }

  bool is_differentiable() const override { return false; }
  std::int64_t evaluations(const Schema& schema) const override { return tops_.copies * of_->evaluations(schema); }

  Explanation attribute(const ExplainTask& task) const override {
    const NoisyTops counted = count_noisy_tops(with_schema(task), *of_, tops_);
    const at::Tensor& inputs = task.samples.inputs;
    const Layout layout = with_schema(task).samples.layout();
    // A feature's share is spread over its channels, which metrics sum.
    const std::int64_t channels = layout.inputs() / layout.features();
    at::Tensor maps = counted.tops / static_cast<double>(tops_.copies * channels);
    maps = maps.view({-1, layout.sides, 1, layout.side_features()}).expand({-1, -1, channels, -1}).reshape(inputs.sizes());
    const at::NoGradGuard no_graph;
    return {.maps = maps.to(inputs.options().requires_grad(false)),
            .log_scale = at::zeros({inputs.size(0)}, inputs.options().requires_grad(false)),
            .logits = task.model.logits(inputs.detach(), task.rule)};
  }

 private:
  static ExplainTask with_schema(ExplainTask task) {
    if (!task.samples.schema) task.samples.schema = share_schema(Schema::of(Layout::guess(task.samples.inputs.sizes().slice(1))));
    return task;
  }

  NoisyTopsOptions tops_;
  std::unique_ptr<Explainer> of_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<SmoothTop>(kInfo);
}

}  // namespace holdfast::explain::smooth_top

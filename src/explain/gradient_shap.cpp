// gradient_shap: gradients at random places between rows of the data and the input, times the difference to those rows.
//     I(x) = 1/n sum_s (x_s - b_s) * dF/dz (b_s + u_s (x_s - b_s))        x_s = x + sigma e_s
// b_s a random row of the background, u_s uniform in [0, 1], e_s standard normal. Its expectation is that of
// integrated_gradients over the baselines. Lundberg, Lee, "A Unified Approach to Interpreting Model Predictions", NeurIPS 2017;
// the form is that of SHAP's GradientExplainer and Captum's GradientShap. Row, place and noise are those of the sample's id.
//
// On one-hot groups the gradient and the noise are projected, and the background's groups are moved to sum 1 (valid rows stay).
#include <fmt/format.h>

#include "baseline.h"
#include "gradient_sum.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "noise.h"

namespace holdfast::explain::gradient_shap {

const MethodInfo kInfo{.name = "gradient_shap",
                       .summary = "gradients between random rows of the data and the input, times their difference",
                       .citation = "Lundberg, Lee, A Unified Approach to Interpreting Model Predictions, NeurIPS 2017",
                       .options = {{"samples", 20, at_least(1), "random rows and places"},
                                   {"sigma", 0.0, at_least(0), "deviation of noise on the input, in the units of the inputs"},
                                   target_option(),
                                   project_option()},
                       .notes = "Needs rows of the data: --background FILE.npy."};

class RandomPlaces final : public PointSet {
 public:
  RandomPlaces(const ExplainTask& task, std::int64_t samples, double sigma, bool project)
      : background_(project ? with_group_sums(task.samples.background, *task.samples.schema) : task.samples.background),
        ids_(task.samples.ids.to(at::kCPU).contiguous()),
        seed_(task.seed),
        samples_(samples) {
    if (task.samples.schema != nullptr) layout_ = task.samples.layout();
    if (sigma > 0) noise_.emplace(task, "gradient_shap.noise", sigma, project);
  }

  std::vector<double> weights() const override {
    return std::vector<double>(static_cast<std::size_t>(samples_), 1 / static_cast<double>(samples_));
  }

  SummedPoints points(const at::Tensor& inputs, std::int64_t sample, std::int64_t first, std::int64_t count) const override {
    const std::int64_t samples = inputs.size(0);
    at::Tensor rows = at::empty({count, samples}, at::kLong), places = at::empty({count, samples}, at::kDouble);
    auto row = rows.accessor<std::int64_t, 2>();
    auto place = places.accessor<double, 2>();
    for (std::int64_t s = 0; s < count; ++s) {
      const std::string purpose = fmt::format("gradient_shap.place.{}", first + s);
      for (std::int64_t b = 0; b < samples; ++b) {
        RandomStream stream(seed_, purpose, static_cast<std::uint64_t>(ids_.const_data_ptr<std::int64_t>()[sample + b]));
        row[s][b] = static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(background_.size(0))));
        place[s][b] = stream.uniform();
      }
    }
    std::vector<std::int64_t> shape(static_cast<std::size_t>(inputs.dim()) + 1, 1);
    shape[0] = count, shape[1] = samples;
    at::Tensor from = background_.index_select(0, rows.flatten().to(background_.device())).unflatten(0, {count, samples});
    if (layout_) from = with_context_of(inputs.unsqueeze(0), from, *layout_);
    const at::Tensor to = noise_ ? inputs.unsqueeze(0) + noise_->rows(sample, samples, first, count) : inputs.unsqueeze(0);
    return {.at = at::lerp(from, to, places.to(from.options()).view(shape)), .times = to - from};
  }

 private:
  at::Tensor background_, ids_;
  std::uint64_t seed_;
  std::int64_t samples_;
  std::optional<Noise> noise_;
  std::optional<Layout> layout_;
};

class GradientShap final : public GradientSumExplainer {
 public:
  explicit GradientShap(const Options& options)
      : GradientSumExplainer(options), samples_(options.integer("samples")), sigma_(options.real("sigma")) {}

  void check_task(const ExplainTask& task) const override {
    GradientSumExplainer::check_task(task);
    check_background(task, name());
  }
  std::int64_t evaluations(const Schema&) const override { return samples_; }

 private:
  std::shared_ptr<const PointSet> points(const ExplainTask& task) const override {
    return std::make_shared<RandomPlaces>(task, samples_, sigma_, projects(task));
  }

  std::int64_t samples_;
  double sigma_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<GradientShap>(kInfo);
}

}  // namespace holdfast::explain::gradient_shap

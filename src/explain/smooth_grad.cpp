// smooth_grad: the gradient of the explained quantity averaged over noisy copies of the input.
//     mean       | 1/n sum_s g_s |              g_s = dF/dz (x + sigma e_s), e_s standard normal
//     squared      1/n sum_s g_s^2
//     variance     1/n sum_s (g_s - mean)^2
// Smilkov et al., "SmoothGrad: removing noise by adding noise", 2017; Hooker et al., "A Benchmark for Interpretability Methods in
// Deep Neural Networks", NeurIPS 2019 (squared); Adebayo et al., "Local Explanation Methods for Deep Neural Networks Lack
// Sensitivity to Parameter Values", 2018 (variance). The mean's magnitude is taken once, after averaging (Captum's Saliency
// inside a NoiseTunnel takes it before, unless abs=False). sigma is in the units of the inputs, not a share of each image's
// range.
//
// The noise is that of the sample's id, so the map is a fixed function of the input that can be attacked and differentiated. On
// one-hot groups the noise is projected as the gradient is: noisy rows keep their groups' sums.
#include "gradient_sum.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "noise.h"

namespace holdfast::explain::smooth_grad {

const MethodInfo kInfo{.name = "smooth_grad",
                       .summary = "gradient of the class's probability averaged over noisy copies of the input",
                       .citation = "Smilkov, Thorat, Kim, Viegas, Wattenberg, SmoothGrad, arXiv:1706.03825, 2017",
                       .options = {{"samples", 50, at_least(1), "noisy copies"},
                                   {"sigma", 0.1, at_least(0), "deviation of the noise, in the units of the inputs"},
                                   {"kind", "mean", one_of({"mean", "squared", "variance"}), "what of the gradients is shown"},
                                   target_option(),
                                   signed_option(false),
                                   project_option()}};

Summand parse_kind(const std::string& kind) {
  return kind == "mean" ? Summand::kGradient : kind == "squared" ? Summand::kSquare : Summand::kVariance;
}

class NoisyCopies final : public PointSet {
 public:
  NoisyCopies(Noise noise, std::int64_t samples) : noise_(std::move(noise)), samples_(samples) {}

  std::vector<double> weights() const override {
    return std::vector<double>(static_cast<std::size_t>(samples_), 1 / static_cast<double>(samples_));
  }
  SummedPoints points(const at::Tensor& inputs, std::int64_t sample, std::int64_t first, std::int64_t count) const override {
    return {.at = inputs.unsqueeze(0) + noise_.rows(sample, inputs.size(0), first, count)};
  }

 private:
  Noise noise_;
  std::int64_t samples_;
};

class SmoothGrad final : public GradientSumExplainer {
 public:
  explicit SmoothGrad(const Options& options)
      : GradientSumExplainer(options, parse_kind(options.word("kind")),
                             options.word("kind") == "mean" && !options.flag("signed")),
        samples_(options.integer("samples")),
        sigma_(options.real("sigma")) {}

  std::int64_t evaluations(const Schema&) const override { return samples_; }

 private:
  std::shared_ptr<const PointSet> points(const ExplainTask& task) const override {
    return std::make_shared<NoisyCopies>(Noise(task, "smooth_grad.noise", sigma_, projects(task)), samples_);
  }

  std::int64_t samples_;
  double sigma_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<SmoothGrad>(kInfo);
}

}  // namespace holdfast::explain::smooth_grad

// input_x_gradient: the gradient of the explained quantity times the input, with its sign.
//     I(x) = x * d p_c(x) / dx
// Shrikumar, Greenside, Shcherbina, Kundaje, "Not Just a Black Box", 2016. On one-hot groups the gradient is projected before it
// is multiplied, so a group's effect appears at the level that is on.
#include "gradient_sum.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::explain::input_x_gradient {

const MethodInfo kInfo{.name = "input_x_gradient",
                       .summary = "gradient of the class's probability times the input",
                       .citation = "Shrikumar, Greenside, Shcherbina, Kundaje, Not Just a Black Box, arXiv:1605.01713, 2016",
                       .options = {target_option(), project_option()}};

class AtTheInput final : public PointSet {
 public:
  std::vector<double> weights() const override { return {1}; }
  SummedPoints points(const at::Tensor& inputs, std::int64_t, std::int64_t, std::int64_t) const override {
    return {.at = inputs.unsqueeze(0), .times = inputs.unsqueeze(0)};
  }
  bool ends_at_input() const override { return true; }
};

class InputXGradient final : public GradientSumExplainer {
 public:
  explicit InputXGradient(const Options& options) : GradientSumExplainer(options) {}

 private:
  std::shared_ptr<const PointSet> points(const ExplainTask&) const override { return std::make_shared<AtTheInput>(); }
};

void add_to(Registry<Explainer>& registry) {
  registry.add<InputXGradient>(kInfo);
}

}  // namespace holdfast::explain::input_x_gradient

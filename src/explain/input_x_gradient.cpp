// input_x_gradient: the gradient of the explained quantity times the input, with its sign.
//     I(x) = x * d p_c(x) / dx
// Shrikumar, Greenside, Shcherbina, Kundaje, "Not Just a Black Box", 2016. On one-hot groups the gradient is projected before it
// is multiplied, so a group's effect appears at the level that is on.
#include "gradient_sum.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "methods.h"

namespace holdfast {
namespace {

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

class InputXGradient final : public Explainer {
 public:
  explicit InputXGradient(const Options& options)
      : Explainer(options.canonical()),
        sum_{.quantity = parse_explained_quantity(options.word("target")), .projection = Projection(options, name())} {}

  void check(const Model& model) const override {
    if (!model.capabilities().gradients) usage_error("{}: the model has no gradients by its inputs", name());
  }
  void check_task(const ExplainTask& task) const override {
    check(task.model);
    (void)sum_.projection.applies(task);
  }

  Explanation attribute(const ExplainTask& task) const override { return sum_.attribute(task, AtTheInput()); }
  std::unique_ptr<Linearization> linearize(const ExplainTask& task) const override {
    return sum_.linearize(task, std::make_shared<AtTheInput>(), name());
  }
  at::Tensor differentiable(const ExplainTask& task) const override { return sum_.differentiable(task, AtTheInput()); }

 private:
  GradientSum sum_;
};

}  // namespace

void add_input_x_gradient(Registry<Explainer>& registry) {
  registry.add<InputXGradient>(kInfo);
}

}  // namespace holdfast

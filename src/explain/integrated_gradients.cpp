// integrated_gradients: the average gradient along the straight line from a baseline to the input, times their difference.
//     I(x) = (x - b) * integral_0^1 dF/dz (b + t (x - b)) dt  ~  (x - b) * sum_k w_k dF/dz (b + t_k (x - b))
// Sundararajan, Taly, Yan, "Axiomatic Attribution for Deep Networks", ICML 2017. F is the class's probability, logit or
// cross-entropy; maps [B, sample...], signed, add up to F(x) - F(b) but for the quadrature's error, which is reported as delta.
//
// Rules: see `quadrature` below. `steps` counts gradients. Captum's trapezoid gives all steps the weight 1/m and so integrates
// constants to (m-1)/m; ours sums to 1.
//
// On one-hot groups the gradient is projected, and the path stays on rows whose groups sum to 1: a zero baseline has 1/levels in
// each of a group's columns.
//
// Shortcut. Where logits(a x) = logits(x) for every a > 0 (networks that standardise their input) the gradient at t x is that at
// x, divided by t. From a zero baseline the sum is then x * dF/dz(x) * sum_k w_k / t_k, exactly: one gradient instead of m. The
// factor is the harmonic number H_m for the right rule; rules that include t = 0 have none. (Such maps add up to zero, for the
// integral itself does not converge: the gradient is orthogonal to the input. delta says so.)
#include <cmath>
#include <numbers>

#include "baseline.h"
#include "completeness.h"
#include "gradient_sum.h"
#include "graph.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/batch_rows.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::explain::integrated_gradients {

const MethodInfo kInfo{.name = "integrated_gradients",
                       .summary = "average gradient on the way from a baseline, times the difference to it",
                       .citation = "Sundararajan, Taly, Yan, Axiomatic Attribution for Deep Networks, ICML 2017",
                       .options = {{"steps", 50, at_least(1), "points on the way"},
                                   {"rule", "right", one_of({"right", "left", "middle", "trapezoid", "gauss"}),
                                    "where they lie and what they weigh"},
                                   baseline_option(),
                                   blur_option(),
                                   target_option(),
                                   project_option(),
                                   {"shortcut", "auto", one_of({"auto", "off"}),
                                    "auto: one gradient, exactly, for models that standardise their input and a zero baseline"}},
                       .notes = "Where one-hot groups are projected a zero baseline has 1/levels in each column of a group."};

// Points and weights on [0, 1] that stand in for an integral.
struct Quadrature {
  std::vector<double> points;   // ascending
  std::vector<double> weights;  // sum 1
};

struct Legendre {
  double value, slope;
};

// The polynomial of this degree at x in (-1, 1), by its three-term recurrence.
Legendre legendre(std::int64_t degree, double x) {
  double before = 1, value = x;
  for (std::int64_t k = 2; k <= degree; ++k) {
    const double next =
        (static_cast<double>(2 * k - 1) * x * value - static_cast<double>(k - 1) * before) / static_cast<double>(k);
    before = value;
    value = next;
  }
  return {value, static_cast<double>(degree) * (x * value - before) / (x * x - 1)};
}

// Newton's method from a cosine that is close to each root.
Quadrature gauss(std::int64_t steps) {
  Quadrature result;
  for (std::int64_t k = steps; k >= 1; --k) {
    double x = std::cos(std::numbers::pi * (static_cast<double>(k) - 0.25) / (static_cast<double>(steps) + 0.5));
    for (int i = 0; i < 8; ++i) {
      const Legendre here = legendre(steps, x);
      x -= here.value / here.slope;
    }
    const double slope = legendre(steps, x).slope;
    result.points.push_back((1 + x) / 2);
    result.weights.push_back(1 / ((1 - x * x) * slope * slope));  // on [-1, 1] twice that
  }
  return result;
}

Quadrature evenly(std::int64_t steps, double first, double step) {
  Quadrature result;
  for (std::int64_t k = 0; k < steps; ++k) result.points.push_back((first + static_cast<double>(k)) * step);
  result.weights.assign(static_cast<std::size_t>(steps), step);
  return result;
}

//     right      k/m, k = 1..m           weights 1/m
//     left       k/m, k = 0..m-1
//     middle     (k - 1/2)/m
//     trapezoid  k/(m-1), k = 0..m-1     weights 1/(m-1), half at both ends
//     gauss      roots of the Legendre polynomial of degree m; exact for polynomials of degree 2m-1
// `steps` is the number of points, m. Throws kUsage for a trapezoid of one.
Quadrature quadrature(const std::string& rule, std::int64_t steps) {
  HOLDFAST_CHECK(steps >= 1);
  const double step = 1 / static_cast<double>(steps);
  Quadrature result;
  if (rule == "left") {
    result = evenly(steps, 0, step);
  } else if (rule == "middle") {
    result = evenly(steps, 0.5, step);
  } else if (rule == "gauss") {
    result = gauss(steps);
  } else if (rule == "trapezoid") {
    if (steps < 2) usage_error("rule=trapezoid: steps is 1; a trapezoid has two ends, choose steps >= 2");
    result = evenly(steps, 0, 1 / static_cast<double>(steps - 1));
    result.weights.front() /= 2;
    result.weights.back() /= 2;
    result.points.back() = 1;
  } else {
    HOLDFAST_CHECK(rule == "right");
    result = evenly(steps, 1, step);
    result.points.back() = 1;
  }
  return result;
}

class Line final : public PointSet {
 public:
  Line(Baseline baseline, Quadrature rule, const at::TensorOptions& options)
      : baseline_(std::move(baseline)), rule_(std::move(rule)), places_(at::tensor(rule_.points, at::kDouble).to(options)) {}

  std::vector<double> weights() const override { return rule_.weights; }
  SummedPoints points(const at::Tensor& inputs, std::int64_t, std::int64_t first, std::int64_t count) const override {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(inputs.dim()) + 1, 1);
    shape[0] = count;
    const at::Tensor places = places_.slice(0, first, first + count).view(shape);
    if (baseline_.zero) return {.at = places * inputs, .times = inputs.unsqueeze(0)};
    const at::Tensor from = baseline_.at(inputs);
    return {.at = at::lerp(from.unsqueeze(0), inputs.unsqueeze(0), places), .times = (inputs - from).unsqueeze(0)};
  }
  bool ends_at_input() const override { return rule_.points.back() == 1; }

 private:
  Baseline baseline_;
  Quadrature rule_;
  at::Tensor places_;
};

// The whole line of a scale-invariant model.
class Shortcut final : public PointSet {
 public:
  explicit Shortcut(double factor) : factor_(factor) {}
  std::vector<double> weights() const override { return {factor_}; }
  SummedPoints points(const at::Tensor& inputs, std::int64_t, std::int64_t, std::int64_t) const override {
    return {.at = inputs.unsqueeze(0), .times = inputs.unsqueeze(0)};
  }
  bool ends_at_input() const override { return true; }

 private:
  double factor_;
};

class IntegratedGradients final : public GradientSumExplainer {
 public:
  explicit IntegratedGradients(const Options& options)
      : GradientSumExplainer(options),
        rule_(quadrature(options.word("rule"), options.integer("steps"))),
        baseline_(options, name()),
        shortcut_(options.word("shortcut") == "auto") {}

  void check_task(const ExplainTask& task) const override {
    GradientSumExplainer::check_task(task);
    baseline_.check(task);
  }
  std::int64_t evaluations(const Schema&) const override { return static_cast<std::int64_t>(rule_.points.size()); }

  Explanation attribute(const ExplainTask& task) const override {
    Explanation explanation = GradientSumExplainer::attribute(task);
    explanation.delta = completeness_delta(explanation, baseline_logits(task), task.samples.targets, quantity());
    return explanation;
  }

 private:
  std::shared_ptr<const PointSet> points(const ExplainTask& task) const override {
    Baseline baseline = baseline_.of(task, projects(task));
    if (shortcut_ && baseline.zero && rule_.points.front() > 0 && task.model.capabilities().scale_invariant) {
      double factor = 0;
      for (std::size_t k = 0; k < rule_.points.size(); ++k) factor += rule_.weights[k] / rule_.points[k];
      return std::make_shared<Shortcut>(factor);
    }
    return std::make_shared<Line>(std::move(baseline), rule_, task.samples.inputs.options().requires_grad(false));
  }

  // One row where all samples share the baseline.
  at::Tensor baseline_logits(const ExplainTask& task) const {
    const at::NoGradGuard no_graph;
    const Baseline baseline = baseline_.of(task, projects(task));
    if (baseline.common.defined()) return task_logits(task, baseline.common);
    std::vector<at::Tensor> parts;
    for (const at::Tensor& some : task.samples.inputs.detach().split(BatchRows(task).most(Pass::kForward)))
      parts.push_back(task_logits(task, baseline.at(some)));
    return at::cat(parts);
  }

  Quadrature rule_;
  BaselineOption baseline_;
  bool shortcut_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<IntegratedGradients>(kInfo);
}

}  // namespace holdfast::explain::integrated_gradients

// Maps that are sums of gradients over several points a sample:
//     map_b = sum_s w_s t_bs g_bs          g_bs: gradient of the explained quantity at the point z_bs
// integrated_gradients, smooth_grad, gradient_shap and input_x_gradient differ in their points z, weights w and factors t.
//
// Points of all samples go through the model together, in blocks that fit the task's memory (batch_rows.h). For pullbacks the
// blocks' graphs are held when all of them fit; otherwise each is made again when its turn comes, and dropped.
//
// Scale. A probability's gradient underflows where the softmax saturates, at some points of a path and not at others. Each
// point's gradient comes with its own scale (logit_cotangent.h); a sample's sum is kept relative to the largest of its points'
// scales, which is its log_scale. So what is summed is the true gradient: maps add up to the true difference of probabilities,
// and where all points are saturated their ranking survives.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "finish.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/explain/logit_cotangent.h"

namespace holdfast::explain {

struct SummedPoints {
  at::Tensor at;          // [points, samples, sample...]
  at::Tensor times = {};  // [points or 1, samples, sample...]: t; undefined: 1
};

// The points of one task.
class PointSet {
 public:
  virtual ~PointSet() = default;
  virtual std::vector<double> weights() const = 0;  // one a point
  // Points first .. first + count - 1 of the samples whose inputs these are; the first of them is the task's sample `sample`.
  // Autograd reaches `inputs`.
  virtual SummedPoints points(const at::Tensor& inputs, std::int64_t sample, std::int64_t first, std::int64_t count) const = 0;
  // Whether the last point is the input itself: its logits need no pass of their own then.
  virtual bool ends_at_input() const { return false; }
};

enum class Summand {
  kGradient,
  kSquare,    // of the gradient's elements, times undefined
  kVariance,  // of the gradient's elements over the points, weights all the same
};

struct GradientSum {
  ExplainedQuantity quantity = ExplainedQuantity::kProbability;
  Summand summand = Summand::kGradient;
  bool magnitudes = false;  // of the sum
  Projection projection;

  // No delta: that is the method's own.
  Explanation attribute(const ExplainTask& task, const PointSet& set) const;
  // The model and the schema must outlive what is returned. Throws kUsage when the model cannot be differentiated twice.
  std::unique_ptr<Linearization> linearize(const ExplainTask& task, std::shared_ptr<const PointSet> set,
                                           const std::string& name) const;
  // Keeps the whole graph, whatever its size, and multiplies the scale out.
  at::Tensor differentiable(const ExplainTask& task, const PointSet& set) const;
};

// An explainer that is such a sum; it only says where its points are. Takes the options `target` and `project`.
class GradientSumExplainer : public Explainer {
 public:
  explicit GradientSumExplainer(const Options& options, Summand summand = Summand::kGradient, bool magnitudes = false);

  void check(const Model& model) const override;
  void check_task(const ExplainTask& task) const override;
  Explanation attribute(const ExplainTask& task) const override;
  std::unique_ptr<Linearization> linearize(const ExplainTask& task) const override;
  at::Tensor differentiable(const ExplainTask& task) const override;

 protected:
  // The task was checked.
  virtual std::shared_ptr<const PointSet> points(const ExplainTask& task) const = 0;

  ExplainedQuantity quantity() const { return sum_.quantity; }
  bool projects(const ExplainTask& task) const { return sum_.projection.applies(task); }

 private:
  GradientSum sum_;
};

}  // namespace holdfast::explain

// What the engine lends to Python's methods for the time of a call: models, tasks, networks in training. Afterwards they are
// gone, whatever Python keeps.
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>
#include <torch/csrc/utils/pybind.h>

#include "holdfast/attack/attack.h"
#include "holdfast/core/error.h"
#include "holdfast/measure/measure.h"
#include "holdfast/train/objective.h"

namespace holdfast::python {

template <class Thing>
class Lent {
 public:
  explicit Lent(Thing& thing) : thing_(&thing) {}
  Thing& get() const {
    if (thing_ == nullptr) usage_error("this was lent for one call, which is over; use it inside the method only");
    return *thing_;
  }
  void take_back() { thing_ = nullptr; }

 private:
  Thing* thing_;
};

// Lends to a Python object while it lives.
template <class View>
class Lending {
 public:
  explicit Lending(std::shared_ptr<View> view) : view_(std::move(view)) {}
  ~Lending() { view_->take_back(); }
  Lending(const Lending&) = delete;
  Lending& operator=(const Lending&) = delete;
  const std::shared_ptr<View>& view() const { return view_; }

 private:
  std::shared_ptr<View> view_;
};

// A function to logits.
struct ModelView final : Lent<const Model> {
  using Lent::Lent;
};

// An explainer's samples and what may be asked about points near them. Asking costs evaluations, which are counted.
class StudyView {
 public:
  StudyView(const Model& model, const Explainer& explainer, const Samples& samples, std::uint64_t seed);

  at::Tensor logits(const at::Tensor& points) const;
  at::Tensor explain(const at::Tensor& points);
  // Input gradient of sum(cotangent * maps).
  at::Tensor pullback(const at::Tensor& points, const at::Tensor& cotangent);
  const Samples& samples() const { return samples_.get(); }
  std::uint64_t seed() const { return seed_; }
  std::int64_t take_evaluations() { return std::exchange(evaluations_, 0); }
  void take_back();

 private:
  ExplainTask at(const at::Tensor& points) const;

  Lent<const Model> model_;
  Lent<const Explainer> explainer_;
  Lent<const Samples> samples_;
  std::uint64_t seed_;
  std::int64_t evaluations_ = 0;
};

struct AttackView final : StudyView {
  explicit AttackView(const AttackTask& attack)
      : StudyView(attack.model, attack.explainer, attack.samples, attack.seed), task(attack) {}
  void take_back();

  Lent<const AttackTask> task;
};

struct MeasureView final : StudyView {
  explicit MeasureView(const MeasureTask& measure)
      : StudyView(measure.model, measure.explainer, measure.samples, measure.seed), epsilon(measure.epsilon) {}

  double epsilon;
};

// A model in training.
struct TraineeView final : Lent<Trainee> {
  TraineeView(Trainee& trainee, const TrainBatch& batch) : Lent(trainee), seed(batch.seed), progress(batch.progress) {}

  std::uint64_t seed;
  double progress;
};

void bind_lent(py::module_& module);

}  // namespace holdfast::python

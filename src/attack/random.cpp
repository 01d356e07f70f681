// random: the worst of many random points of the threat model, for each sample its own.
// The baseline that every other attack must beat: on ReLU nets the best of 1000 points beats the papers' gradient attacks.
//
// Points are uniform in the ball of the free (not frozen) elements, or on its surface, then projected to the box:
//     l2     a Gaussian direction; radius epsilon * u^(1/n)
//     l1     exponential magnitudes with random signs, scaled to sum 1; the same radius
//     linf   each element uniform; on the surface: scaled until the largest is epsilon
// They have no order, so the worst preserved one is returned whatever the task's selection says.
#include <algorithm>
#include <cmath>

#include "bounds.h"
#include "check.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "ledger.h"
#include "methods.h"

namespace holdfast {
namespace {

const MethodInfo kInfo{
    .name = "random",
    .summary = "worst of many random points in the ball, or on its surface",
    .options = {{"samples", 300, at_least(1), "points tried for each input; 300 cost as much as 100 steps of er"},
                {"from", "ball", one_of({"ball", "sphere"}), "uniform in the ball, or on its surface"}}};

double draw_element(Norm norm, RandomStream& stream) {
  switch (norm) {
    case Norm::kL2:
      return stream.normal();
    case Norm::kLinf:
      return stream.uniform(-1, 1);
    case Norm::kL1:
      break;
  }
  const double magnitude = -std::log(1 - stream.uniform());
  return stream.bits() % 2 == 0 ? magnitude : -magnitude;
}

// A random displacement of `free` elements.
std::vector<double> draw(const ThreatModel& threat, bool on_sphere, std::int64_t free, RandomStream& stream) {
  std::vector<double> move(static_cast<std::size_t>(free));
  for (double& element : move) element = draw_element(threat.norm, stream);
  double scale = threat.epsilon;
  if (threat.norm != Norm::kLinf || on_sphere) {
    const double size = rows::size(threat.norm, move);
    const double radius = on_sphere ? 1 : std::pow(stream.uniform(), 1.0 / static_cast<double>(free));
    scale *= size > 0 ? radius / size : 0;
  }
  for (double& element : move) element *= scale;
  return move;
}

class Random final : public Attack {
 public:
  explicit Random(const Options& options)
      : Attack(options.canonical()), samples_(options.integer("samples")), on_sphere_(options.word("from") == "sphere") {}

  void check(const AttackTask& task) const override { check_task(task); }
  Select selects(Select) const override { return Select::kWorst; }

  AttackResult run(const AttackTask& task) const override {
    check(task);
    ExplainTask point = explain_at(task, task.inputs);
    Ledger ledger(task, task.explainer.attribute(point), selects(task.select));
    ledger.charge(task.explainer.evaluations());
    at::Tensor clean = task.inputs;
    for (std::int64_t i = 0; i < samples_ && !ledger.finished(); ++i) {
      throw_if_interrupted();
      if (const auto kept = ledger.shrink()) {
        for (at::Tensor* tensor : {&clean, &point.targets, &point.sample_ids})
          *tensor = tensor->index_select(0, kept->to(tensor->device()));
      }
      point.inputs = draw_points(task.threat, clean, point.sample_ids,
                                 derived_seed(task.seed, "attack.random", static_cast<std::uint64_t>(i)));
      ledger.charge(task.explainer.evaluations());
      ledger.record(point.inputs, task.explainer.attribute(point));
    }
    return ledger.finish();
  }

 private:
  at::Tensor draw_points(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed) const {
    const std::int64_t rows = clean.size(0), n = clean.numel() / std::max<std::int64_t>(1, rows);
    const HeldBounds bounds(threat);
    const std::int64_t free = bounds->frozen == nullptr ? n : std::count(bounds->frozen, bounds->frozen + n, false);
    at::Tensor moves = at::zeros({rows, n}, at::kDouble);
    const at::Tensor streams = ids.cpu().contiguous();
    for (std::int64_t row = 0; row < rows; ++row) {
      RandomStream stream(seed, "point", static_cast<std::uint64_t>(streams.data_ptr<std::int64_t>()[row]));
      const std::vector<double> move = draw(threat, on_sphere_, free, stream);
      auto next = move.begin();
      double* elements = moves.data_ptr<double>() + row * n;
      for (std::int64_t i = 0; i < n; ++i) {
        if (bounds->frozen == nullptr || !bounds->frozen[i]) elements[i] = *next++;
      }
    }
    const at::Tensor points = clean + moves.view_as(clean).to(clean.options().requires_grad(false));
    return threat.project(points, clean);
  }

  std::int64_t samples_;
  bool on_sphere_;
};

}  // namespace

void add_random(Registry<Attack>& registry) {
  registry.add<Random>(kInfo);
}

}  // namespace holdfast

// threshold: a soft count of what is above the k-th value.
//     minimise  sum_{i in S} u_i q_i / U  -  sum_{j not in N_w(S)} u_j q_j / V,      q = sigmoid(log(v / tau) / T)
// S is the clean top k, v what the metric sees of a feature: its own value, or for i in S the largest within w where the metric
// asks what is near the top. tau lies between the k-th and (k+1)-th value of the present map. u are random weights (small
// samples) or
// 1. U and V make both sums pull equally hard, whatever the number of features that are close to tau.
//
// It looks only at features that are about to cross, so it is at its best from a point that others found. Large samples walk from
// near there again and again, by small steps and with a sharper surrogate than the walks from anywhere: an iterated local search.
// Sharper still, from 100 to 3000, found less on two small networks for MNIST. Small samples start anywhere.
#include <limits>

#include "component.h"
#include "feature_descent.h"
#include "holdfast/core/torch.h"
#include "slopes.h"
#include "window_maximum.h"

namespace holdfast::attack::gauntlet {
namespace {

constexpr double kTiny = 1e-6;  // of the largest value: what is below it is not raised by its logarithm

class SoftThreshold final : public FeatureDescent {
 public:
  // `inside` and `outside` [rows, features]: weights of what is counted, 0 elsewhere.
  SoftThreshold(const Schema& schema, std::int64_t radius, at::Tensor inside, at::Tensor outside, std::int64_t k,
                double temperature)
      : FeatureDescent(schema.layout),
        maximum_(schema, radius),
        inside_(std::move(inside)),
        outside_(std::move(outside)),
        k_(k),
        temperature_(temperature) {}

 private:
  at::Tensor slope(const at::Tensor& a) override {
    const at::Tensor highest = std::get<0>(a.topk(k_ + 1, 1));
    const at::Tensor tau = highest.slice(1, k_ - 1, k_ + 1).mean(1, /*keepdim=*/true).clamp_min(kTiny);
    const auto [value, position] = maximum_(a);
    const at::Tensor lowered = pull(inside_, value, tau), raised = pull(outside_, a, tau);
    return (-raised).scatter_add_(1, position, lowered);
  }
  // The slope of the weighted count by the values, scaled so that its slopes by their logarithms sum to 1.
  at::Tensor pull(const at::Tensor& weights, const at::Tensor& values, const at::Tensor& tau) const {
    const at::Tensor v = values.clamp_min(kTiny), q = ((v / tau).log() / temperature_).sigmoid();
    const at::Tensor slopes = weights * q * (1 - q);
    return slopes / (slopes.sum(1, /*keepdim=*/true).clamp_min(std::numeric_limits<float>::min()) * v);
  }
  bool has_rows() const override {
    return !maximum_.looks() && inside_.scalar_type() == at::kFloat && inside_.is_contiguous() && outside_.is_contiguous();
  }
  void slope_of_row(std::int64_t row, std::span<const float> values, float* slope) override {
    const std::int64_t begin = row * inside_.size(1);
    slopes::threshold(values, k_, temperature_, inside_.const_data_ptr<float>() + begin, outside_.const_data_ptr<float>() + begin,
                      scratch_, slope);
  }
  std::vector<at::Tensor*> state() override { return {&inside_, &outside_}; }

  const WindowMaximum maximum_;
  at::Tensor inside_, outside_;
  std::vector<float> scratch_;
  std::int64_t k_;
  double temperature_;
};

class Threshold final : public Component {
 public:
  std::string name() const override { return "threshold"; }
  bool starts_from_best() const override { return true; }
  bool fits(const AttackState& state) const override {
    return state.gradients && state.k < state.features && state.task.metric.top_count().has_value();
  }

  void run(AttackState& state) override {
    if (state.small) {
      const auto start = state.is_restart() ? Start::kAnywhere : Start::kAroundBest;
      std::int64_t number = 0;
      for (const double temperature : {0.1, 0.3, 1.0})
        walk(state, state.rows(state.scaled(kWalks)), temperature,
             {.number = number++, .steps = kSteps, .from = 2, .to = 32, .start = start});
      return;
    }
    const AttackState::Walks walks = state.scaled_walks(kLongWalks, kLongSteps);
    for (std::int64_t i = 0; i < walks.count; ++i)
      walk(state, state.rows(), 0.5, {.number = i, .steps = walks.steps, .from = 20, .to = 100, .start = Start::kNearBest});
  }

 private:
  using Start = AttackState::WalkPlan::Start;
  static constexpr std::int64_t kWalks = 10, kSteps = 40, kLongWalks = 3, kLongSteps = 60, kNumber = 100;

  static void walk(AttackState& state, const Ledger::Owners& owners, double temperature, AttackState::WalkPlan plan) {
    if (owners.empty()) return;
    plan.number += kNumber;
    SoftThreshold descent = descent_of(state, owners, plan.number, temperature);
    state.walk_down(descent, owners, plan);
  }

  static SoftThreshold descent_of(const AttackState& state, const Ledger::Owners& owners, std::int64_t number,
                                  double temperature) {
    at::Tensor inside = AttackState::rows_of(state.top, owners), outside = 1 - AttackState::rows_of(state.near, owners);
    if (state.small) {
      const at::Tensor u = state.uniform(owners, "gauntlet.threshold", number);
      inside = inside * u.square();
      outside = outside * u.square();
    }
    const std::int64_t radius = state.aim.at == Aim::At::kNearTop ? state.aim.radius : 0;
    return {state.task.map_schema(), radius, inside, outside, state.k, temperature};
  }
};

}  // namespace

std::unique_ptr<Component> make_threshold() {
  return std::make_unique<Threshold>();
}

}  // namespace holdfast::attack::gauntlet

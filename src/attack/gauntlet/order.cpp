// order: turns the map away from the clean one as a whole, for metrics of all features.
//     rank      minimise the correlation of the clean ranks with the map (and with its logarithm)
//     values    minimise the cosine between the maps
#include <limits>

#include "component.h"
#include "feature_descent.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack::gauntlet {
namespace {

// <c, f(a)> / ||f(a)||, f centring where `centred`, of the logarithm where `of_logarithm`.
class Alignment final : public FeatureDescent {
 public:
  Alignment(const Layout& layout, at::Tensor direction, bool centred, bool of_logarithm)
      : FeatureDescent(layout), direction_(std::move(direction)), centred_(centred), of_logarithm_(of_logarithm) {}

 private:
  static constexpr double kOffset = 1e-3;  // of the largest value: what is below it has no order worth fighting for

  at::Tensor slope(const at::Tensor& a) override {
    const at::Tensor b = of_logarithm_ ? (a + kOffset).log() : a;
    const at::Tensor f = centred_ ? b - b.mean(1, /*keepdim=*/true) : b;
    const at::Tensor norm = f.norm(2, 1, /*keepdim=*/true).clamp_min(std::numeric_limits<float>::min());
    const at::Tensor cosine = (direction_ * f).sum(1, /*keepdim=*/true) / norm;
    const at::Tensor slope = direction_ - f * (cosine / norm);
    return of_logarithm_ ? slope / (a + kOffset) : slope;
  }
  std::vector<at::Tensor*> state() override { return {&direction_}; }

  at::Tensor direction_;
  bool centred_, of_logarithm_;
};

at::Tensor unit_rows(const at::Tensor& rows) {
  return rows / rows.norm(2, 1, /*keepdim=*/true).clamp_min(std::numeric_limits<float>::min());
}

class Order final : public Component {
 public:
  std::string name() const override { return "order"; }
  bool fits(const AttackState& state) const override {
    return state.gradients && (state.aim.at == Aim::At::kOrder || state.aim.at == Aim::At::kValues);
  }

  void run(AttackState& state) override {
    const Layout& layout = state.task.map_schema().layout;
    const at::Tensor a = fold_features(layout, state.clean.maps);
    const at::Tensor ranks = a.argsort(/*dim=*/1, /*descending=*/false).argsort(/*dim=*/1, /*descending=*/false).to(a.options());
    const at::Tensor centred = unit_rows(ranks - ranks.mean(1, /*keepdim=*/true)), plain = unit_rows(a);
    struct Kind {
      bool by_rank, of_logarithm;
    };
    std::int64_t number = kNumber;
    for (const auto& [by_rank, of_logarithm] : {Kind{true, false}, Kind{true, true}, Kind{false, false}}) {
      const Ledger::Owners owners = state.rows(state.small ? state.scaled(kWalks) : 1);
      if (owners.empty()) return;
      Alignment descent(layout, AttackState::rows_of(by_rank ? centred : plain, owners), by_rank, of_logarithm);
      state.walk_down(descent, owners,
                      {.number = number++,
                       .steps = state.small ? kSteps : state.scaled(kLongSteps),
                       .from = state.small ? 2.0 : 3.0,
                       .to = state.small ? 32.0 : 60.0});
    }
  }
  double expected_evaluations(const AttackState& state) const override {
    return static_cast<double>(3 * (state.small ? state.scaled(kWalks) * kSteps : state.scaled(kLongSteps))) * state.step_cost();
  }

 private:
  static constexpr std::int64_t kWalks = 20, kSteps = 40, kLongSteps = 60, kNumber = 200;
};

}  // namespace

std::unique_ptr<Component> make_order() {
  return std::make_unique<Order>();
}

}  // namespace holdfast::attack::gauntlet

// order: turns the map away from the clean one as a whole, for metrics of all features.
//     rank      minimise the correlation of the clean ranks with the map (and with its logarithm)
//     values    minimise the cosine between the maps
#include <algorithm>
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
  bool starts_from_best() const override { return true; }
  bool fits(const AttackState& state) const override {
    return state.gradients && (state.aim.at == Aim::At::kOrder || state.aim.at == Aim::At::kValues);
  }

  void run(AttackState& state) override {
    std::vector<Kind> kinds{{true, false}, {true, true}, {false, false}};
    if (state.aim.at == Aim::At::kValues) std::reverse(kinds.begin(), kinds.end());
    if (state.small) {
      for (std::size_t i = 0; i < kinds.size(); ++i) walk(state, kinds[i], i, state.rows(state.scaled(kWalks)), kSteps);
      return;
    }
    // One kind after the other, over the stages too.
    const AttackState::Walks walks = state.scaled_walks(kLongWalks, kLongSteps);
    const auto first = static_cast<std::size_t>(state.stage());
    for (std::size_t i = 0; i < static_cast<std::size_t>(walks.count); ++i)
      walk(state, kinds[(first + i) % kinds.size()], i, state.rows(), walks.steps);
  }

 private:
  static constexpr std::int64_t kWalks = 20, kSteps = 40, kLongWalks = 3, kLongSteps = 60, kNumber = 200;
  struct Kind {
    bool by_rank, of_logarithm;
  };

  static void walk(AttackState& state, const Kind& kind, std::size_t number, const Ledger::Owners& owners, std::int64_t steps) {
    if (owners.empty()) return;
    const Layout& layout = state.task.map_schema().layout;
    const at::Tensor a = fold_features(layout, AttackState::rows_of(state.clean.maps, owners));
    const at::Tensor ranks = a.argsort(/*dim=*/1, /*descending=*/false).argsort(/*dim=*/1, /*descending=*/false).to(a.options());
    const at::Tensor direction = unit_rows(kind.by_rank ? ranks - ranks.mean(1, /*keepdim=*/true) : a);
    Alignment descent(layout, direction, kind.by_rank, kind.of_logarithm);
    using Start = AttackState::WalkPlan::Start;
    state.walk_down(descent, owners,
                    {.number = kNumber + static_cast<std::int64_t>(number),
                     .steps = steps,
                     .from = state.small ? 2.0 : 3.0,
                     .to = state.small ? 32.0 : 60.0,
                     .start = state.is_restart() ? Start::kAnywhere : Start::kAroundBest});
  }
};

}  // namespace

std::unique_ptr<Component> make_order() {
  return std::make_unique<Order>();
}

}  // namespace holdfast::attack::gauntlet

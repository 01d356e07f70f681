// threshold: a soft count of who is above the k-th value.
//     minimise  sum_{i in S} q_i - sum_{i not in S} q_i (weighted as in gaps),   q_i = sigmoid((a_i - tau) / (T tau))
// S the clean top k, tau between the k-th and (k+1)-th value of the present map, T cycled. It looks only at features that are
// about to cross.
#include <limits>

#include "component.h"
#include "feature_descent.h"
#include "holdfast/core/torch.h"

namespace holdfast::gauntlet {
namespace {

constexpr std::int64_t kWalks = 5, kSteps = 20, kLongSteps = 60;

class SoftThreshold final : public FeatureDescent {
 public:
  SoftThreshold(const Layout& layout, at::Tensor gaps, std::int64_t k, double temperature)
      : FeatureDescent(layout), gaps_(std::move(gaps)), k_(k), temperature_(temperature) {}

 private:
  at::Tensor slope(const at::Tensor& a) override {
    const at::Tensor highest = std::get<0>(a.topk(k_ + 1, 1));
    const at::Tensor tau =
        highest.slice(1, k_ - 1, k_ + 1).mean(1, /*keepdim=*/true).clamp_min(std::numeric_limits<float>::min());
    const at::Tensor q = ((a - tau) / (temperature_ * tau)).sigmoid();
    return gaps_ * q * (1 - q);
  }
  std::vector<at::Tensor*> state() override { return {&gaps_}; }

  at::Tensor gaps_;
  std::int64_t k_;
  double temperature_;
};

class Threshold final : public Component {
 public:
  std::string name() const override { return "threshold"; }
  bool fits(const Arena& arena) const override {
    return arena.gradients && arena.k < arena.features && arena.task.metric.top_count().has_value();
  }

  void run(Arena& arena) override {
    const at::Tensor gaps = arena.top * static_cast<double>(arena.features) - static_cast<double>(arena.k);
    std::int64_t walk = 100;
    for (const double temperature : arena.small ? std::vector<double>{0.1, 0.3, 1} : std::vector<double>{0.5}) {
      for (const double r : arena.small ? std::vector<double>{2, 8, 32} : std::vector<double>{3}) {
        const Ledger::Owners owners = arena.rows(arena.small ? arena.scaled(kWalks) : 1);
        if (owners.empty()) return;
        SoftThreshold descent(arena.task.schema.layout, Arena::rows_of(gaps, owners), arena.k, temperature);
        const std::int64_t steps = arena.small ? kSteps : arena.scaled(kLongSteps);
        arena.hunt(descent, owners, walk++, steps, arena.surrogate(r, arena.small ? r : 60, steps));
      }
    }
  }
};

}  // namespace

std::unique_ptr<Component> make_threshold() {
  return std::make_unique<Threshold>();
}

}  // namespace holdfast::gauntlet

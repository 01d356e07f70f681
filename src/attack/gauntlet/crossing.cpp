// crossing: from the best point, just across the boundary of one ReLU after another.
// A piecewise-linear model's explanation changes only where a unit switches. For each unit h with pre-activation z_h the
// nearest point behind its boundary is
//     x - (z_h + sign(z_h) delta) / ||grad z_h||^2 grad z_h,   projected into the ball, and across again where that lost it
// exactly for units of the first layer, to first order for deeper ones. The worst of these points that has not been left just
// before is the next one to look around from (a tabu list). Gradients of all units: one row each, for small networks only.
#include <cmath>
#include <deque>
#include <limits>

#include "component.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"

namespace holdfast::attack::gauntlet {
namespace {

constexpr double kBehind = 1e-3;  // of epsilon: how far behind a boundary

struct Units {
  at::Tensor values, gradients;  // [rows], [rows, sample...]: unit u of sample s in row s * units + u
};

// The pre-activations of all units that can switch, [B, units].
at::Tensor switching_units(const Network& network, const at::Tensor& inputs) {
  const RunResult run = network.run(inputs, {.keep_pre_activations = true});
  std::vector<at::Tensor> parts;
  std::size_t next = 0;
  for (const Node& node : network.nodes()) {
    const auto* activation = std::get_if<op::Activation>(&node.operation);
    if (activation == nullptr) continue;
    const at::Tensor& z = run.pre_activations[next++];
    if (is_piecewise_linear(*activation)) parts.push_back(z.reshape({inputs.size(0), -1}));
  }
  return parts.empty() ? at::Tensor() : at::cat(parts, 1);
}

Units units_at(const Network& network, const at::Tensor& points, std::int64_t units) {
  const at::AutoGradMode with_graph(true);
  const at::Tensor rows = points.repeat_interleave(units, 0).requires_grad_();
  const at::Tensor own = at::arange(units).repeat({points.size(0)}).unsqueeze(1).to(points.device());
  const at::Tensor z = switching_units(network, rows).gather(1, own).squeeze(1);
  const at::Tensor gradient = torch::autograd::grad({z.sum()}, {rows})[0];
  return {z.detach(), gradient};
}

class Crossing final : public Component {
 public:
  std::string name() const override { return "crossing"; }
  bool starts_from_best() const override { return true; }

  bool fits(const AttackState& state) const override {
    const Network* network = state.task.model.network();
    return network != nullptr && state.small && state.has_surrogate() && count(state) > 0 && count(state) <= kMostUnits;
  }

  void run(AttackState& state) override {
    const std::int64_t units = count(state);
    const Ledger::Owners all = state.rows();
    const std::int64_t part = std::max<std::int64_t>(1, kRowsAtOnce / units);
    for (std::size_t begin = 0; begin < all.size(); begin += static_cast<std::size_t>(part)) {
      const std::size_t end = std::min(all.size(), begin + static_cast<std::size_t>(part));
      look_around(
          state, Ledger::Owners(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)),
          units);
    }
  }

 private:
  static constexpr std::int64_t kMostUnits = 256, kRounds = 24, kTabu = 6, kRowsAtOnce = 32768;

  static std::int64_t count(const AttackState& state) {
    const at::NoGradGuard no_graph;
    const at::Tensor z = switching_units(*state.task.model.network(), state.task.samples.inputs.slice(0, 0, 1));
    return z.defined() ? z.size(1) : 0;
  }

  static void look_around(AttackState& state, const Ledger::Owners& samples, std::int64_t units) {
    at::Tensor here = AttackState::rows_of(state.ledger.best_points(), samples);
    Ledger::Owners owners;
    for (const std::int64_t sample : samples) owners.insert(owners.end(), static_cast<std::size_t>(units), sample);
    std::vector<std::deque<std::int64_t>> tabu(samples.size());
    for (std::int64_t round = 0; round < state.scaled(kRounds) && !state.ledger.finished(samples); ++round) {
      const at::Tensor candidates = across(state, here, owners, units);
      state.judge(candidates, owners);
      const at::Tensor chosen = choose(state.harm(), tabu, units);
      here = candidates.index_select(0, chosen.to(candidates.device()));
    }
  }

  // One candidate for each unit of each sample.
  static at::Tensor across(AttackState& state, const at::Tensor& here, const Ledger::Owners& owners, std::int64_t units) {
    const Units at = units_at(*state.task.model.network(), here, units);
    state.ledger.charge(1, owners);
    const at::Tensor clean = AttackState::rows_of(state.task.samples.inputs, owners), from = here.repeat_interleave(units, 0);
    const at::Tensor flat = state.task.threat.hold_frozen(at.gradients).flatten(1);  // the way across goes along what may move
    const at::Tensor square = flat.square().sum(1).clamp_min(std::numeric_limits<float>::min());
    const at::Tensor behind = -at.values.sign() * (kBehind * state.task.threat.epsilon) * square.sqrt();
    at::Tensor points = from;
    for (int turn = 0; turn < 4; ++turn) {
      const at::Tensor z = at.values + (flat * (points - from).flatten(1)).sum(1);  // of the unit's linear piece
      const at::Tensor crossed = z.sign() == behind.sign();
      const at::Tensor step = at::where(crossed, at::zeros_like(z), (behind - z) / square);
      points = state.task.threat.project(points + (flat * step.unsqueeze(1)).view_as(points), clean);
    }
    return points;
  }

  // For each sample the candidate that harms most and whose unit was not crossed lately.
  static at::Tensor choose(const std::vector<double>& harm, std::vector<std::deque<std::int64_t>>& tabu, std::int64_t units) {
    std::vector<std::int64_t> rows;
    for (std::size_t sample = 0; sample < tabu.size(); ++sample) {
      std::deque<std::int64_t>& lately = tabu[sample];
      std::int64_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::int64_t unit = 0; unit < units; ++unit) {
        const double value = harm[sample * static_cast<std::size_t>(units) + static_cast<std::size_t>(unit)];
        if (value < least && std::find(lately.begin(), lately.end(), unit) == lately.end())
          std::tie(best, least) = std::pair(unit, value);
      }
      lately.push_back(best);
      if (lately.size() > kTabu) lately.pop_front();
      rows.push_back(static_cast<std::int64_t>(sample) * units + best);
    }
    return at::tensor(at::ArrayRef<std::int64_t>(rows), at::kLong);
  }
};

}  // namespace

std::unique_ptr<Component> make_crossing() {
  return std::make_unique<Crossing>();
}

}  // namespace holdfast::attack::gauntlet

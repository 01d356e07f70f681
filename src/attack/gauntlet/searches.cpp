// Searches that need no gradient: for explainers and models that have none, and from the best point of those that do.
//     random       points of the ball; where walks are blind of its surface, and in linf also its corners
//     evolution    Gaussian moves around the best point, narrower with every generation; polishes what walks found
//     drift        where walks are blind: moves along the surface, of which those that harm no less are taken
//     square       squares of an image moved to a corner of the ball, smaller with time; kept where they harm
// Metrics of sets are constant almost everywhere: a search that moves only where it gains stands still, and at equal cost loses
// to random points; one that also takes moves that change nothing beats them (drift and square).
// Square search after Andriushchenko et al., "Square Attack", ECCV 2020, with the metric in place of the loss.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../draw.h"
#include "../feature_maps.h"
#include "component.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "search_points.h"

namespace holdfast::attack::gauntlet {
namespace {

// Moves about `width` long in the threat's norm, in l1 with most of it in a few elements, for `children` blocks of all running
// samples, each with a seed of its own.
template <class Seed>
at::Tensor random_moves(const AttackState& state, const Ledger::Owners& owners, std::int64_t children, double width, Seed seed) {
  const at::IntArrayRef shape = state.task.samples.inputs.sizes().slice(1);
  const at::Tensor ids = AttackState::rows_of(state.task.samples.ids, owners).cpu();
  const double n = static_cast<double>(state.task.samples.inputs[0].numel());
  const double deviation = state.task.threat.norm == Norm::kLinf ? width
                           : state.task.threat.norm == Norm::kL2 ? width / std::sqrt(n)
                                                                 : width / n;
  std::vector<at::Tensor> moves;
  const std::int64_t running = ids.size(0) / children;
  for (std::int64_t child = 0; child < children; ++child)
    moves.push_back(random_normal(shape, ids.slice(0, child * running, (child + 1) * running), seed(child), "move",
                                  state.task.samples.inputs.device()));
  at::Tensor all = at::cat(moves);
  if (state.task.threat.norm == Norm::kL1) all = all * all.abs();
  return deviation * all.to(state.task.samples.inputs.options());
}

// Of the searched points, what a component gets beside random ones. These are for restarts alone.
std::int64_t searched_share(const AttackState& state, double share) {
  return std::llround((state.is_restart() ? share : 1) * static_cast<double>(state.searched_points()));
}

class RandomPoints final : public Component {
 public:
  std::string name() const override { return "random"; }
  bool fits(const AttackState&) const override { return true; }

  void run(AttackState& state) override {
    const std::int64_t points = !state.blind ? state.scaled(state.small ? kSmall : kLarge)
                                             : std::llround(kShare * static_cast<double>(state.searched_points()));
    for (std::int64_t i = 0; i < points; ++i) {
      const Ledger::Owners owners = state.rows();
      if (owners.empty()) return;
      state.judge(draw(state, owners, i), owners);
    }
  }

 private:
  static constexpr std::int64_t kSmall = 200, kLarge = 20;
  static constexpr double kShare = 0.3;

  static at::Tensor draw(const AttackState& state, const Ledger::Owners& owners, std::int64_t number) {
    const at::Tensor clean = AttackState::rows_of(state.task.samples.inputs, owners),
                     ids = AttackState::rows_of(state.task.samples.ids, owners);
    const ThreatModel& threat = state.task.threat;
    const std::uint64_t seed = derived_seed(state.seed(), "gauntlet.random", static_cast<std::uint64_t>(number));
    const bool odd = number % 2 == 1;
    if (state.blind && odd && threat.norm == Norm::kLinf)
      return threat.project(draw_levels(threat, clean, ids, seed) + threat.epsilon * draw_signs(clean, ids, seed), clean);
    return draw_points(threat, clean, ids, seed, /*on_sphere=*/odd || state.blind);
  }
};

class Evolution final : public Component {
 public:
  std::string name() const override { return "evolution"; }
  bool starts_from_best() const override { return true; }
  bool fits(const AttackState& state) const override { return state.small && state.gradients; }

  void run(AttackState& state) override {
    const std::int64_t generations = state.scaled(kGenerations);
    for (std::int64_t i = 0; i < generations; ++i) {
      const Ledger::Owners owners = state.rows(kChildren);
      if (owners.empty()) return;
      const double way = static_cast<double>(i) / static_cast<double>(generations);
      const double width = state.task.threat.epsilon * (kWidest * (1 - way) + kNarrowest);
      state.judge(children(state, owners, width, i), owners);
    }
  }

 private:
  static constexpr std::int64_t kGenerations = 20, kChildren = 25;
  static constexpr double kWidest = 0.3, kNarrowest = 0.01;

  static at::Tensor children(AttackState& state, const Ledger::Owners& owners, double width, std::int64_t generation) {
    const at::Tensor best = AttackState::rows_of(state.ledger.best_points(), owners),
                     clean = AttackState::rows_of(state.task.samples.inputs, owners);
    const auto seed = [&](std::int64_t child) {
      return derived_seed(state.seed(), "gauntlet.evolution", static_cast<std::uint64_t>(generation * kChildren + child));
    };
    return state.task.threat.project(best + random_moves(state, owners, kChildren, width, seed), clean);
  }
};

class Drift final : public Component {
 public:
  std::string name() const override { return "drift"; }
  bool starts_from_best() const override { return true; }
  // Large images have squares.
  bool fits(const AttackState& state) const override {
    return state.blind && (state.small || state.task.samples.layout().kind != Layout::Kind::kGrid);
  }

  void run(AttackState& state) override {
    const std::int64_t points = searched_share(state, kShare);
    const std::int64_t rounds = std::clamp<std::int64_t>(points / kRound, 1, kMostRounds);
    const std::int64_t generations = std::max<std::int64_t>(1, points / (kChildren * rounds));
    for (std::int64_t round = 0; round < rounds; ++round) wander(state, round, generations);
  }

 private:
  static constexpr std::int64_t kChildren = 5, kRound = 1500, kMostRounds = 8;
  static constexpr double kShare = 0.7, kWidest = 1, kNarrowest = 0.2;

  // From the best points, every other round from anywhere on the surface: other points may lie beyond worse ones.
  static void wander(AttackState& state, std::int64_t round, std::int64_t generations) {
    const AttackTask& task = state.task;
    SearchPoints search(state);
    if (round % 2 == 1) {
      const std::uint64_t seed = derived_seed(state.seed(), "gauntlet.drift start", static_cast<std::uint64_t>(round));
      search.put(draw_points(task.threat, task.samples.inputs, task.samples.ids, seed, /*on_sphere=*/true));
    }
    for (std::int64_t i = 0; i < generations; ++i) {
      const Ledger::Owners owners = state.rows(kChildren);
      if (owners.empty()) return;
      const double way = static_cast<double>(i) / static_cast<double>(generations);
      const double width = task.threat.epsilon * kWidest * std::pow(kNarrowest / kWidest, way);
      const at::Tensor points = moved(state, search, owners, width, round * generations + i);
      state.judge(points, owners);
      search.move(points, state.harm(), owners);
    }
  }

  // Onto the surface, where the whole of epsilon is used; in linf elements are cut off one by one, many at a corner.
  static at::Tensor moved(AttackState& state, const SearchPoints& search, const Ledger::Owners& owners, double width,
                          std::int64_t generation) {
    const ThreatModel& threat = state.task.threat;
    const at::Tensor clean = AttackState::rows_of(state.task.samples.inputs, owners);
    const auto seed = [&](std::int64_t child) {
      return derived_seed(state.seed(), "gauntlet.drift", static_cast<std::uint64_t>(generation * kChildren + child));
    };
    const at::Tensor from = search.at(owners), around = threat.switched(from, clean);
    at::Tensor way = from - around + random_moves(state, owners, kChildren, width, seed);
    way = threat.hold_frozen(way);
    if (threat.norm != Norm::kLinf) {
      const at::Tensor length = way.flatten(1).norm(threat.norm == Norm::kL2 ? 2 : 1, 1);
      way = way * per_row(threat.epsilon / length.clamp_min(std::numeric_limits<float>::min()), way.dim());
    }
    return threat.project(around + way, clean);
  }
};

class Square final : public Component {
 public:
  std::string name() const override { return "square"; }
  bool starts_from_best() const override { return true; }
  bool fits(const AttackState& state) const override {
    return state.task.samples.layout().kind == Layout::Kind::kGrid && !state.small;
  }

  void run(AttackState& state) override {
    // This polishes what walks found; where they are blind, it is the attack.
    const std::int64_t tries = !state.blind ? state.scaled(kPolish) : searched_share(state, kShare);
    SearchPoints search(state);
    for (std::int64_t i = 0; i < tries; ++i) {
      const Ledger::Owners owners = state.rows();
      if (owners.empty()) return;
      const at::Tensor from = search.at(owners);
      const at::Tensor points = proposal(state, from, owners, static_cast<double>(i) / static_cast<double>(tries), i);
      state.judge(points, owners);
      search.move(points, state.harm(), owners);
    }
  }

 private:
  // Walks end far from the worst point on networks trained to be robust: there this finds what counts.
  static constexpr std::int64_t kPolish = 1300;
  static constexpr double kShare = 0.7, kSearched = 0.5, kPolished = 0.1, kLeast = 0.01;

  // A point with one square of every side moved to a corner of the linf ball around the clean image (or by as much as
  // the other balls allow, after projection).
  static at::Tensor proposal(AttackState& state, const at::Tensor& from, const Ledger::Owners& owners, double way,
                             std::int64_t number) {
    const Layout& layout = state.task.samples.layout();
    const at::Tensor clean = AttackState::rows_of(state.task.samples.inputs, owners);
    const at::Tensor ids = AttackState::rows_of(state.task.samples.ids, owners).cpu();
    const double share = (state.blind ? kSearched : kPolished) * std::pow(1 - way, 2) + kLeast;  // of the image's area
    const auto size = std::max<std::int64_t>(1, std::llround(std::sqrt(share * static_cast<double>(layout.side_features()))));
    const std::int64_t h = std::min(size, layout.height), w = std::min(size, layout.width);
    const auto rows = from.size(0);
    std::vector<std::int64_t> corners;  // y, then x, of each row's square
    std::vector<double> moves;          // of each row's sides and channels; 0 for channels of context
    for (std::int64_t row = 0; row < rows; ++row) {
      RandomStream stream(derived_seed(state.seed(), "gauntlet.square", static_cast<std::uint64_t>(number)), "square",
                          static_cast<std::uint64_t>(ids[row].item<std::int64_t>()));
      corners.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(layout.height - h + 1))));
      corners.push_back(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(layout.width - w + 1))));
      for (std::int64_t side = 0; side < layout.sides; ++side) {
        for (std::int64_t channel = 0; channel < layout.channels; ++channel)
          moves.push_back(stream.bits() % 2 == 0 ? state.task.threat.epsilon : -state.task.threat.epsilon);
        moves.insert(moves.end(), static_cast<std::size_t>(layout.context), 0.0);
      }
    }
    // All rows together: on a GPU each square by itself would be as many requests as there are rows.
    const at::Tensor corner = at::tensor(at::ArrayRef<std::int64_t>(corners), at::kLong).to(from.device()).view({rows, 2, 1, 1});
    const at::Tensor y = corner.select(1, 0).unsqueeze(1), x = corner.select(1, 1).unsqueeze(1);  // [rows, 1, 1, 1]
    const at::Tensor down = at::arange(layout.height, y.options()).view({-1, 1}), across = at::arange(layout.width, y.options());
    const at::Tensor inside = ((down >= y) & (down < y + h) & (across >= x) & (across < x + w)).unsqueeze(1);
    const at::Tensor move = at::tensor(at::ArrayRef<double>(moves), at::kDouble)
                                .to(from.options())
                                .view({rows, layout.sides, layout.channels + layout.context, 1, 1});
    const at::Tensor grid = from.reshape({rows, layout.sides, layout.channels + layout.context, layout.height, layout.width});
    const at::Tensor moved = at::where(inside & (move != 0), clean.reshape(grid.sizes()) + move, grid);
    return state.task.threat.project(moved.view(from.sizes()), clean);
  }
};

}  // namespace

std::unique_ptr<Component> make_random() {
  return std::make_unique<RandomPoints>();
}
std::unique_ptr<Component> make_evolution() {
  return std::make_unique<Evolution>();
}
std::unique_ptr<Component> make_drift() {
  return std::make_unique<Drift>();
}
std::unique_ptr<Component> make_square() {
  return std::make_unique<Square>();
}

}  // namespace holdfast::attack::gauntlet

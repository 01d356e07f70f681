// Searches that need no gradient: for explainers and models that have none, and from the best point of those that do.
//     random       points of the ball
//     evolution    Gaussian moves around the best point, narrower with every generation; small samples
//     square       squares of an image moved to a corner of the ball, smaller with time; kept where they harm
// Square search after Andriushchenko et al., "Square Attack", ECCV 2020, with the metric in place of the loss.
#include <algorithm>
#include <cmath>

#include "../draw.h"
#include "component.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::gauntlet {
namespace {

class RandomPoints final : public Component {
 public:
  std::string name() const override { return "random"; }
  bool fits(const Arena&) const override { return true; }

  void run(Arena& arena) override {
    for (std::int64_t i = 0; i < arena.scaled(arena.small ? 200 : 20); ++i) {
      const Ledger::Owners owners = arena.rows();
      if (owners.empty()) return;
      const at::Tensor clean = Arena::rows_of(arena.task.inputs, owners), ids = Arena::rows_of(arena.task.sample_ids, owners);
      const std::uint64_t seed = derived_seed(arena.task.seed, "gauntlet.random", static_cast<std::uint64_t>(i));
      arena.judge(draw_points(arena.task.threat, clean, ids, seed, /*on_sphere=*/i % 2 == 1), owners);
    }
  }
};

class Evolution final : public Component {
 public:
  std::string name() const override { return "evolution"; }
  // On large samples without gradients nothing else is left, but for images.
  bool fits(const Arena& arena) const override {
    return arena.small || (!arena.gradients && arena.task.schema.layout.kind != Layout::Kind::kGrid);
  }

  void run(Arena& arena) override {
    const std::int64_t generations = arena.scaled(kGenerations);
    for (std::int64_t i = 0; i < generations; ++i) {
      const Ledger::Owners owners = arena.rows(kChildren);
      if (owners.empty()) return;
      const double way = static_cast<double>(i) / static_cast<double>(generations);
      const double width = arena.task.threat.epsilon * (kWidest * (1 - way) + kNarrowest);
      arena.judge(children(arena, owners, width, i), owners);
    }
  }

 private:
  static constexpr std::int64_t kGenerations = 20, kChildren = 25;
  static constexpr double kWidest = 0.3, kNarrowest = 0.01;

  static at::Tensor children(Arena& arena, const Ledger::Owners& owners, double width, std::int64_t generation) {
    const at::Tensor best = Arena::rows_of(arena.ledger.best_points(), owners), clean = Arena::rows_of(arena.task.inputs, owners);
    const at::Tensor ids = Arena::rows_of(arena.task.sample_ids, owners).cpu();
    const double n = static_cast<double>(best[0].numel());
    // So that a move is about `width` long in the threat's norm.
    const double deviation = arena.task.threat.norm == Norm::kLinf ? width
                             : arena.task.threat.norm == Norm::kL2 ? width / std::sqrt(n)
                                                                   : width / n;
    std::vector<at::Tensor> moves;
    const std::int64_t running = best.size(0) / kChildren;
    for (std::int64_t child = 0; child < kChildren; ++child) {
      const std::uint64_t seed =
          derived_seed(arena.task.seed, "gauntlet.evolution", static_cast<std::uint64_t>(generation * kChildren + child));
      moves.push_back(random_normal(best.sizes().slice(1), ids.slice(0, child * running, (child + 1) * running), seed, "move"));
    }
    return arena.task.threat.project(best + deviation * at::cat(moves).to(best.options()), clean);
  }
};

class Square final : public Component {
 public:
  std::string name() const override { return "square"; }
  bool fits(const Arena& arena) const override { return arena.task.schema.layout.kind == Layout::Kind::kGrid && !arena.small; }

  void run(Arena& arena) override {
    // With gradients this polishes what walks found; without, it is the attack.
    const std::int64_t tries = arena.scaled(arena.gradients ? 300 : 600);
    for (std::int64_t i = 0; i < tries; ++i) {
      const Ledger::Owners owners = arena.rows();
      if (owners.empty()) return;
      arena.judge(proposal(arena, owners, static_cast<double>(i) / static_cast<double>(tries), i), owners);
    }
  }

 private:
  // The best point with one square of every side moved to a corner of the linf ball around the clean image (or by as much as
  // the other balls allow, after projection).
  static at::Tensor proposal(Arena& arena, const Ledger::Owners& owners, double way, std::int64_t number) {
    const Layout& layout = arena.task.schema.layout;
    const at::Tensor clean = Arena::rows_of(arena.task.inputs, owners);
    at::Tensor points = Arena::rows_of(arena.ledger.best_points(), owners).clone();
    const at::Tensor ids = Arena::rows_of(arena.task.sample_ids, owners).cpu();
    const double share = 0.5 * std::pow(1 - way, 2) + 0.01;  // of the image's area
    const auto size = std::max<std::int64_t>(1, std::llround(std::sqrt(share * static_cast<double>(layout.side_features()))));
    const at::Tensor grid = points.view({-1, layout.sides, layout.channels, layout.height, layout.width});
    const at::Tensor origin = clean.reshape(grid.sizes());
    for (std::int64_t row = 0; row < points.size(0); ++row) {
      RandomStream stream(derived_seed(arena.task.seed, "gauntlet.square", static_cast<std::uint64_t>(number)), "square",
                          static_cast<std::uint64_t>(ids[row].item<std::int64_t>()));
      const std::int64_t h = std::min(size, layout.height), w = std::min(size, layout.width);
      const auto y = static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(layout.height - h + 1)));
      const auto x = static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(layout.width - w + 1)));
      for (std::int64_t side = 0; side < layout.sides; ++side) {
        for (std::int64_t channel = 0; channel < layout.channels; ++channel) {
          const double move = stream.bits() % 2 == 0 ? arena.task.threat.epsilon : -arena.task.threat.epsilon;
          const auto window = [&](const at::Tensor& image) {
            return image[row][side][channel].slice(0, y, y + h).slice(1, x, x + w);
          };
          window(grid).copy_(window(origin) + move);
        }
      }
    }
    return arena.task.threat.project(points, clean);
  }
};

}  // namespace

std::unique_ptr<Component> make_random() {
  return std::make_unique<RandomPoints>();
}
std::unique_ptr<Component> make_evolution() {
  return std::make_unique<Evolution>();
}
std::unique_ptr<Component> make_square() {
  return std::make_unique<Square>();
}

}  // namespace holdfast::gauntlet

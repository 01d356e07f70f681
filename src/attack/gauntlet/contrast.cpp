// contrast: importance near the clean top against the highest importance anywhere else.
//     minimise  log sum_{i in S} q_i  -  log sum_{j in O} a_j
// S is the clean top set, O the k highest features of the present map outside N_w(S), chosen anew at every step (a diverse
// set where the metric's are diverse), and q is what the metric sees of S:
//     top            q_i = a_i
//     near the top   q_i = the largest a within w of i: an S pixel counts as long as anything near it is important
//     top is near    the sum runs over the k highest features inside N_w(S) instead
// A ratio of the very sums that decide the metric. On MNIST (k = 100, w = 1) 120 steps of it reach a lower 1-LENS-precision than
// objectives in softplus of log maps do in 200, and than the share of the map inside N_w(S), which spends itself on features
// that are in no top k.
#include <limits>

#include "component.h"
#include "feature_descent.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/diverse.h"
#include "holdfast/metric/neighborhood.h"

namespace holdfast::gauntlet {
namespace {

constexpr std::int64_t kWalks = 12, kSteps = 20, kLongSteps = 120;
// Elements of the table of windows up to which it is used, where the layout is no grid.
constexpr std::int64_t kLargestTable = 4'000'000;

// The windows of all features as positions, [features, largest window]; short ones are filled up with the feature itself.
at::Tensor window_table(const Schema& schema, std::int64_t radius) {
  const Neighborhood neighborhood(schema, radius);
  const std::int64_t n = schema.layout.features();
  std::vector<std::vector<std::int64_t>> windows;
  std::size_t widest = 1;
  for (std::int64_t i = 0; i < n; ++i) {
    windows.push_back(neighborhood.window(i));
    widest = std::max(widest, windows.back().size());
    if (static_cast<std::int64_t>(widest) * n > kLargestTable) return {};
  }
  at::Tensor table = at::empty({n, static_cast<std::int64_t>(widest)}, at::kLong);
  auto entries = table.accessor<std::int64_t, 2>();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::vector<std::int64_t>& window = windows[static_cast<std::size_t>(i)];
    for (std::size_t j = 0; j < widest; ++j) entries[i][static_cast<std::int64_t>(j)] = j < window.size() ? window[j] : i;
  }
  return table;
}

// For every feature the largest value within the radius of it, and where that is.
class WindowMaximum {
 public:
  WindowMaximum(const Schema& schema, std::int64_t radius) : schema_(schema), radius_(radius) {
    if (radius > 0 && !is_grid()) table_ = window_table(schema, radius);
  }
  // Whether windows are looked at at all; otherwise every feature is its own maximum.
  bool looks() const { return radius_ > 0 && (is_grid() || table_.defined()); }

  std::pair<at::Tensor, at::Tensor> operator()(const at::Tensor& a) const {
    const Layout& layout = schema_.layout;
    if (is_grid()) {
      const at::Tensor grid = a.view({-1, 1, layout.height, layout.width});
      const std::int64_t size = 2 * radius_ + 1;
      auto [value, position] = at::max_pool2d_with_indices(grid, {size, size}, {1, 1}, {radius_, radius_});
      const at::Tensor side = at::arange(layout.sides, position.options()).view({1, -1, 1}) * layout.side_features();
      return {value.view_as(a), (position.view({a.size(0), layout.sides, -1}) + side).view(a.sizes())};
    }
    const at::Tensor table = table_.to(a.device());
    const at::Tensor gathered = a.index_select(1, table.flatten()).view({a.size(0), table.size(0), table.size(1)});
    auto [value, slot] = gathered.max(2);
    return {value, table.unsqueeze(0).expand_as(gathered).gather(2, slot.unsqueeze(2)).squeeze(2)};
  }

 private:
  bool is_grid() const { return schema_.layout.kind == Layout::Kind::kGrid && schema_.neighbors.empty(); }

  const Schema& schema_;
  std::int64_t radius_;
  at::Tensor table_;
};

struct ContrastOptions {
  Aim aim;
  std::int64_t k = 1;
};

class Contrast final : public FeatureDescent {
 public:
  // `top` and `near` [rows, features]: S and N_w(S). `weights`, undefined or of that shape, multiply the features.
  Contrast(const Schema& schema, const ContrastOptions& options, at::Tensor top, at::Tensor near, at::Tensor weights)
      : FeatureDescent(schema.layout),
        schema_(schema),
        options_(options),
        maximum_(schema, options.aim.at == Aim::At::kNearTop ? options.aim.radius : 0),
        top_(std::move(top)),
        near_(std::move(near)),
        weights_(std::move(weights)) {}

 private:
  at::Tensor slope(const at::Tensor& values) override {
    const at::Tensor a = weights_.defined() ? values * weights_ : values;
    const at::Tensor slope = logarithm_slope(inside(a)) - logarithm_slope(outside(a));
    return weights_.defined() ? slope * weights_ : slope;
  }

  std::vector<at::Tensor*> state() override { return {&top_, &near_, &weights_}; }

  // A sum of some of the features' values, each as often as it is counted.
  struct Sum {
    at::Tensor counts, value;
  };
  static at::Tensor logarithm_slope(const Sum& sum) {
    return sum.counts / sum.value.clamp_min(std::numeric_limits<float>::min());
  }

  Sum inside(const at::Tensor& a) const {
    if (options_.aim.at == Aim::At::kTopNear) return highest(a * near_, near_);
    if (!maximum_.looks()) return {top_, (a * top_).sum(1, /*keepdim=*/true)};
    const auto [value, position] = maximum_(a);
    const at::Tensor counts = at::zeros_like(a).scatter_add_(1, position, top_);
    return {counts, (value * top_).sum(1, /*keepdim=*/true)};
  }

  Sum outside(const at::Tensor& a) const {
    const at::Tensor allowed = 1 - near_;
    if (!options_.aim.diversity) return highest(a * allowed, allowed);
    const at::Tensor chosen = diverse(a * allowed) * allowed;
    return {chosen, (a * chosen).sum(1, /*keepdim=*/true)};
  }

  // The k highest of the allowed features.
  Sum highest(const at::Tensor& a, const at::Tensor& allowed) const {
    const auto [value, position] = a.topk(std::min(options_.k, a.size(1)), 1);
    const at::Tensor counts = at::zeros_like(a).scatter_(1, position, 1.0) * allowed;
    return {counts, value.sum(1, /*keepdim=*/true)};
  }

  at::Tensor diverse(const at::Tensor& a) const {
    const Neighborhood apart(schema_, *options_.aim.diversity);
    const at::Tensor values = a.cpu().to(at::kDouble).contiguous();
    at::Tensor chosen = at::zeros_like(values);
    FeatureSet set;
    for (std::int64_t row = 0; row < values.size(0); ++row) {
      const std::span<const double> map(values.data_ptr<double>() + row * values.size(1),
                                        static_cast<std::size_t>(values.size(1)));
      diverse_top_k(map, options_.k, apart, set);
      for (const std::int64_t i : set.members()) chosen.data_ptr<double>()[row * values.size(1) + i] = 1;
    }
    return chosen.to(a.options());
  }

  const Schema& schema_;
  const ContrastOptions options_;
  const WindowMaximum maximum_;
  at::Tensor top_, near_, weights_;
};

class ContrastComponent final : public Component {
 public:
  std::string name() const override { return "contrast"; }
  bool fits(const Arena& arena) const override { return arena.gradients && arena.k < arena.features; }

  void run(Arena& arena) override {
    if (arena.small) {
      for (const double r : {2.0, 8.0, 32.0}) hunt(arena, arena.aim, arena.scaled(kWalks), kSteps, r, r, /*weighted=*/true);
      return;
    }
    const std::int64_t steps = kLongSteps;
    for (std::int64_t i = 0; i < arena.scaled(2); ++i) {
      hunt(arena, arena.aim, 1, steps, i % 2 == 0 ? 1 : 3, 60, /*weighted=*/false);
    }
    // The plain top: it breaks the other metrics' sets too, another way.
    if (arena.aim.at != Aim::At::kTop) hunt(arena, {.at = Aim::At::kTop}, 1, steps / 2, 3, 60, /*weighted=*/false);
  }

 private:
  void hunt(Arena& arena, Aim aim, std::int64_t walks, std::int64_t steps, double from, double to, bool weighted) {
    const Ledger::Owners owners = arena.rows(walks);
    if (owners.empty()) return;
    if (aim.at == Aim::At::kOrder || aim.at == Aim::At::kValues) aim = {.at = Aim::At::kTop};
    const std::int64_t walk = 300 + next_++;
    const at::Tensor u = weighted ? arena.uniform(owners, "gauntlet.contrast", walk) : at::Tensor();
    const bool plain = aim.at == Aim::At::kTop && !aim.diversity;
    Contrast descent(arena.task.schema, {.aim = aim, .k = arena.k}, Arena::rows_of(arena.top, owners),
                     Arena::rows_of(plain ? arena.top : arena.near, owners), weighted ? 0.5 + u : at::Tensor());
    arena.hunt(descent, owners, walk, steps, arena.surrogate(from, to, steps));
  }

  std::int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Component> make_contrast() {
  return std::make_unique<ContrastComponent>();
}

}  // namespace holdfast::gauntlet

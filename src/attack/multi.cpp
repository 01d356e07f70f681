// multi: lowers the gaps around rank k together, each as a goal of its own.
//     goals        h_q(x') = s_i I_i(x') - s_j I_j(x'),   i = rank k-q, j = rank k+1+q of the clean map,   q = 0 .. pairs-1
//     direction    - sum_q a_q grad h_q,   a minimising || sum_q a_q grad h_q ||_2 over the simplex
//     x <- project(x + step * direction / ||direction||_2)
// Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024, name an attack with several objectives under constraints
// in their conclusion and leave it open; the pairs are those of R2ET-mm. The direction is the multiple-gradient descent of
// Désidéri, 2012 (min_norm.h): the one that lowers all goals at once, where one gradient of their sum may raise some.
//
// A goal that is reached (h_q < 0: the two features changed places) is a constraint that holds and leaves the combination, until
// all are reached or it is lost again. Clean signs are held fixed, as in er. A step costs one pullback for each pair.

#include <algorithm>
#include <cmath>

#include "check.h"
#include "feature_maps.h"
#include "gradient_attack.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/top_k.h"
#include "min_norm.h"

namespace holdfast::attack::multi {

const MethodInfo kInfo{
    .name = "multi",
    .summary = "gradient attack that lowers the gaps around rank k all at once, by their shortest common gradient",
    .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024; Désidéri, C. R. Acad. Sci. 350, 2012",
    .options = with_walk_options({{"k", 0, at_least(0), "size of the top that is attacked; 0: the metric's k"},
                                  {"pairs", 4, between(1, 16), "gaps around rank k that are goals, the nearest first"}}),
    .needs = {"gradients of gradients"}};

class CommonDescent final : public Descent {
 public:
  // One cotangent for each goal.
  explicit CommonDescent(std::vector<at::Tensor> goals) : goals_(std::move(goals)) {}

  at::Tensor gradient(Linearization& here, const ExplainTask&) override {
    if (goals_.empty()) return at::zeros_like(here.at().maps);
    std::vector<at::Tensor> gradients, gaps;
    for (const at::Tensor& goal : goals_) {
      gradients.push_back(here.pullback(goal).flatten(1));
      gaps.push_back((goal * here.at().maps).flatten(1).sum(1));
    }
    const at::Tensor all = at::stack(gradients, 1);  // [rows, goals, elements]
    const at::Tensor weights = combine(all, at::stack(gaps, 1));
    return at::bmm(weights.unsqueeze(1), all).view_as(here.at().maps);
  }

  std::int64_t pullbacks() const override { return static_cast<std::int64_t>(goals_.size()); }

  void keep(const at::Tensor& rows) override {
    for (at::Tensor& goal : goals_) goal = goal.index_select(0, rows.to(goal.device()));
  }

 private:
  // [rows, goals]: weights of the shortest combination of each row's gradients that are not reached yet.
  at::Tensor combine(const at::Tensor& all, const at::Tensor& gaps) const {
    const at::Tensor exact = all.to(at::kDouble);
    const at::Tensor products = at::bmm(exact, exact.transpose(1, 2)).cpu().contiguous();
    const at::Tensor open = gaps.to(at::kDouble).cpu().contiguous();
    const std::size_t goals = goals_.size();
    at::Tensor weights = at::zeros({all.size(0), static_cast<std::int64_t>(goals)}, at::kDouble);
    for (std::int64_t row = 0; row < all.size(0); ++row) {
      const auto first = static_cast<std::size_t>(row) * goals;
      weigh({products.data_ptr<double>() + first * goals, goals * goals}, {open.data_ptr<double>() + first, goals},
            {weights.data_ptr<double>() + first, goals});
    }
    return weights.to(all.options());
  }

  static void weigh(std::span<const double> products, std::span<const double> gaps, std::span<double> weights) {
    const std::size_t goals = gaps.size();
    std::vector<std::size_t> chosen;
    const bool all_reached = std::all_of(gaps.begin(), gaps.end(), [](double gap) { return gap < 0; });
    for (std::size_t q = 0; q < goals; ++q) {
      if (all_reached || !(gaps[q] < 0)) chosen.push_back(q);
    }
    std::vector<double> block;
    for (const std::size_t q : chosen) {
      for (const std::size_t r : chosen) block.push_back(products[q * goals + r]);
    }
    const bool finite = std::all_of(block.begin(), block.end(), [](double product) { return std::isfinite(product); });
    // A gradient that is not finite makes the sum so; the walk finds and counts it.
    const std::vector<double> found = finite ? min_norm_weights(block, chosen.size()) : std::vector(chosen.size(), 1.0);
    for (std::size_t i = 0; i < chosen.size(); ++i) weights[chosen[i]] = found[i];
  }

  std::vector<at::Tensor> goals_;
};

class Multi final : public GradientAttack {
 public:
  explicit Multi(const Options& options) : GradientAttack(options), k_(options.integer("k")), pairs_(options.integer("pairs")) {}

  void check(const AttackTask& task) const override {
    GradientAttack::check(task);
    (void)top_count(task, k_, name());
  }

 private:
  std::unique_ptr<Descent> descent(const AttackTask& task, const Explanation& clean) const override {
    const Layout& layout = task.map_schema().layout;
    const std::int64_t k = top_count(task, k_, name()), pairs = std::min({pairs_, k, layout.features() - k});
    const at::Tensor signs = clean.maps.sign();
    std::vector<at::Tensor> goals;
    for (std::int64_t q = 0; q < pairs; ++q) {
      const at::Tensor weights = weigh_features(layout, clean.maps, [&](auto map, auto row) {
        const std::vector<std::int64_t> order = top_k_ranked(map, k + 1 + q);
        row[static_cast<std::size_t>(order[static_cast<std::size_t>(k - 1 - q)])] = 1;
        row[static_cast<std::size_t>(order[static_cast<std::size_t>(k + q)])] = -1;
      });
      goals.push_back(spread_features(layout, weights, clean.maps).to(clean.maps.options()) * signs);
    }
    return std::make_unique<CommonDescent>(std::move(goals));
  }

  std::int64_t k_, pairs_;
};

void add_to(Registry<Attack>& registry) {
  registry.add<Multi>(kInfo);
}

}  // namespace holdfast::attack::multi

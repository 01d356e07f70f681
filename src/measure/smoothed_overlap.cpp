// smoothed_overlap: certified P@k and certified w-LENS-precision of smooth_top(k, sigma, samples), in an l2 ball, for any model
// and explainer.
//
//     m_i(x) = P[i in the top k of the map at x + sigma e]          z_i = Phi^-1(m_i)
// Every x' within r of x has |z_i(x') - z_i(x)| <= r / sigma (Cohen, Rosenfeld, Kolter, "Certified Adversarial Robustness via
// Randomized Smoothing", ICML 2019; Salman et al., NeurIPS 2019). So feature i of the top k of m surely has one of the top k of m
// at x' within w of it when fewer than k features l outside its neighbourhood N_w(i) have
//     upper(z_l) + r / sigma >= max over j in N_w(i) of lower(z_j) - r / sigma
// The value is the number of such i divided by k. w = 0 is the form of Levine et al., 2019; w > 0 is ours.
//
// Bounds are Clopper and Pearson's from `samples` noisy copies, all of a sample's together at level alpha. Which features are on
// top was chosen with other draws: those of smooth_top. Beside the value:
//     abstained           share of the top k that the bounds do not decide even at x itself
//     prediction_radius   the smoothed classifier keeps its class within it (Cohen et al.), from the same copies; -1: undecided
//     prediction          1 where that is at least the radius
//     both                the value where `prediction` is 1, else 0
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/ranges.h>

#include "holdfast/attack/verify.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/noisy_tops.h"
#include "holdfast/measure/measure.h"
#include "holdfast/measure/proportion.h"
#include "holdfast/metric/neighborhood.h"
#include "holdfast/metric/top_k.h"

namespace holdfast::measure::smoothed_overlap {

const MethodInfo kSmoothedOverlapInfo{
    .name = "smoothed_overlap",
    .summary = "certified P@k (w = 0) or w-LENS-precision of smooth_top in an l2 ball: any model and explainer",
    .citation =
        "Levine et al., arXiv:1905.12105, 2019; Cohen et al., Certified Adversarial Robustness via Randomized Smoothing, "
        "ICML 2019",
    .options = {{"k", 8, at_least(1), "size of the top"},
                {"w", 0, at_least(0), "radius of the neighbourhood in which a feature counts as found"},
                {"radius", 0.1, at_least(0), "of the l2 ball around the sample"},
                {"sigma", 0.1, above(0), "deviation of the noise, in the units of the inputs"},
                {"samples", 1000, at_least(1), "noisy copies"},
                {"alpha", 0.001, between(1e-12, 0.5), "probability that anything said about a sample is wrong"}},
    .notes = "The explainer is the one whose top is smoothed: certified is smooth_top(k,sigma,samples,of=EXPLAINER)."};

double normal_quantile(double p) {
  return at::special_ndtri(at::scalar_tensor(p, at::kDouble)).item<double>();
}
double normal_probability(double z) {
  return std::erfc(-z / std::sqrt(2.0)) / 2;
}

// Bounds of z = Phi^-1(m) for each number of copies.
class QuantileBounds {
 public:
  QuantileBounds(std::int64_t copies, double tail) : copies_(copies), tail_(tail) {}

  struct Ends {
    double low = 0, high = 0;
  };
  Ends of(double count) {
    const auto successes = static_cast<std::int64_t>(count);
    const auto [entry, is_new] = known_.try_emplace(successes);
    if (is_new) {
      const ProportionBounds share = proportion_bounds(successes, copies_, tail_);
      entry->second = {normal_quantile(share.low), normal_quantile(share.high)};
    }
    return entry->second;
  }

 private:
  std::int64_t copies_;
  double tail_;
  std::map<std::int64_t, Ends> known_;
};

class SmoothedOverlap final : public Measure {
 public:
  explicit SmoothedOverlap(const Options& options)
      : Measure(options.canonical()),
        tops_{.k = options.integer("k"), .sigma = options.real("sigma"), .copies = options.integer("samples"), .purpose = {}},
        w_(options.integer("w")),
        radius_(options.real("radius")),
        alpha_(options.real("alpha")) {}

  bool higher_is_better() const override { return true; }
  Range range() const override { return {0, 1}; }

  // Where nothing could be certified whatever the copies say, that is said before any work.
  void check(const MeasureTask& task) const override {
    task.explainer.check_task(task.explain_task());
    const std::int64_t features = task.samples.layout().features();
    if (tops_.k >= features) usage_error("{}: the map has {} features; choose k < {}", name(), features, features);
    const Reach reach = reach_of(features);
    if (reach.radius >= radius_) return;
    usage_error("{}: with {} copies nothing is certified beyond radius {:.4g}; radius {:.4g} needs {}", name(), tops_.copies,
                std::max(0.0, reach.radius), radius_, ways_to_reach(reach));
  }

  std::string announcement(const MeasureTask& task) const override {
    const Reach reach = reach_of(task.samples.layout().features());
    return fmt::format(
        "{}: {} noisy copies of each sample; {} of them certify at most radius {:.4g}, and radius {:.4g} needs at least {:.0f}",
        name(), 2 * tops_.copies, tops_.copies, reach.radius, radius_, reach.copies_needed);
  }

  Measurement run(const MeasureTask& task) const override {
    check(task);
    Measurement result{.parts = {{"abstained", {}}, {"prediction_radius", {}}, {"prediction", {}}, {"both", {}}}};
    const auto counts = [&](const char* purpose) {
      NoisyTopsOptions own = tops_;
      own.purpose = purpose;
      ExplainTask explained = task.explain_task();
      explained.memory = task.memory;
      return count_noisy_tops(explained, task.explainer, own);
    };
    if (task.samples.count() == 0) return result;
    const NoisyTops chosen = counts("smooth_top.noise"), held_out = counts("smoothed_overlap.noise");
    const std::int64_t features = chosen.tops.size(1);
    QuantileBounds quantiles(tops_.copies, tail_of(features));
    const Neighborhood neighborhood(*task.samples.schema, w_);
    const double ratio = radius_ * (1 + kBallTolerance) / tops_.sigma;
    for (std::int64_t b = 0; b < task.samples.count(); ++b) {
      const std::span<const double> shares(chosen.tops.const_data_ptr<double>() + b * features,
                                           static_cast<std::size_t>(features));
      const std::vector<std::int64_t> top = top_k_set(shares, tops_.k);
      std::vector<QuantileBounds::Ends> ends;
      for (std::int64_t i = 0; i < features; ++i) ends.push_back(quantiles.of(held_out.tops[b][i].item<double>()));
      const double certified = share_found(top, ends, neighborhood, ratio);
      const auto predicted = chosen.classes[b].argmax().item<std::int64_t>();
      const double reach = tops_.sigma * quantiles.of(held_out.classes[b][predicted].item<double>()).low;
      const bool stays = reach >= radius_ * (1 + kBallTolerance) && reach > 0;
      result.values.push_back(certified);
      result.parts[0].second.push_back(1 - share_found(top, ends, neighborhood, 0));
      result.parts[1].second.push_back(reach > 0 ? reach : -1);
      result.parts[2].second.push_back(stays ? 1 : 0);
      result.parts[3].second.push_back(stays ? certified : 0);
    }
    return result;
  }

 private:
  // What can be certified at most: the bounds of shares that are all or nothing of the copies.
  struct Reach {
    double radius, copies_needed;
  };
  Reach reach_of(std::int64_t features) const {
    const double tail = tail_of(features), share = std::pow(tail, 1 / static_cast<double>(tops_.copies));
    const double needed = std::ceil(std::log(tail) / std::log(normal_probability(radius_ / tops_.sigma)));
    return {tops_.sigma * normal_quantile(share), needed};  // below 0: nothing
  }

  std::string ways_to_reach(const Reach& reach) const {
    constexpr double kMostCopies = 1e6;
    std::vector<std::string> ways;
    if (reach.copies_needed > 0 && reach.copies_needed <= kMostCopies)
      ways.push_back(fmt::format("at least {:.0f} copies", reach.copies_needed));
    if (reach.radius > 0) ways.push_back(fmt::format("a sigma of at least {:.3g}", 1.005 * radius_ * tops_.sigma / reach.radius));
    return ways.empty() ? "more copies and a larger sigma" : fmt::format("{}", fmt::join(ways, " or "));
  }

  // Of one bound: two of each feature and one of the class hold together at level alpha.
  double tail_of(std::int64_t features) const { return alpha_ / (2 * static_cast<double>(features) + 1); }

  double share_found(const std::vector<std::int64_t>& top, const std::vector<QuantileBounds::Ends>& ends,
                     const Neighborhood& neighborhood, double ratio) const {
    std::int64_t found = 0;
    for (const std::int64_t i : top) {
      const std::vector<std::int64_t> window = neighborhood.window(i);
      double best = -std::numeric_limits<double>::infinity();
      for (const std::int64_t j : window) best = std::max(best, ends[static_cast<std::size_t>(j)].low);
      const auto rivals = [&](double upper) { return upper + ratio >= best - ratio; };
      std::int64_t above = std::count_if(ends.begin(), ends.end(), [&](const auto& end) { return rivals(end.high); });
      for (const std::int64_t j : window) above -= rivals(ends[static_cast<std::size_t>(j)].high) ? 1 : 0;
      found += above < tops_.k ? 1 : 0;
    }
    return static_cast<double>(found) / static_cast<double>(tops_.k);
  }

  NoisyTopsOptions tops_;
  std::int64_t w_;
  double radius_, alpha_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<SmoothedOverlap>(kSmoothedOverlapInfo);
}

}  // namespace holdfast::measure::smoothed_overlap

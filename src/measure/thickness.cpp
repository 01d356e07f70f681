// thickness: how long the ranking of the features holds on the way to points around the sample.
//     pairwise   Theta(x, i, j) = E_{x'} int_0^1 1[h(x(t), i, j) >= 0] dt
//     top-k      the mean over i <= k < j, k (n - k) pairs
// where h(x, i, j) = I(x)_i - I(x)_j and x(t) = (1-t) x + t x', with features in the order of the clean map, magnitudes, channels
// summed. form=relaxed drops the indicator: the mean gap itself, in the units of the explained quantity. Chen et al., "Training
// for Stable Explanation for Free", NeurIPS 2024, definitions 3.1 to 3.3.
//
// The paper gives no sample counts. Here x' is one of `endpoints` points, uniform in the l2 ball of radius epsilon unless
// asked otherwise, and t goes through the `points` midpoints of equal parts of [0, 1]. `error` is the standard error over
// the endpoints. The class that is explained stays that of the sample; points where another one is predicted are counted.
//
// All points go through the explainer in batches. A point costs O(n) beside that, and O(n log n) where pairs swapped (gaps.h).

#include <cmath>
#include <numeric>

#include "endpoints.h"
#include "gaps.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"
#include "nan.h"
#include "pair_choice.h"
#include "points.h"

namespace holdfast::measure::thickness {

MethodInfo thickness_info() {
  MethodInfo info{.name = "thickness",
                  .summary = "share of the way to points around the sample on which the top k stay above the others",
                  .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
                  .options = PairChoice::options()};
  const std::vector<OptionSpec> own{
      {"form", "indicator", one_of({"indicator", "relaxed"}), "share of pairs in order, or their mean gap"},
      {"from", "ball", one_of({"ball", "gaussian", "given"}),
       "endpoints: uniform in the l2 ball, Gaussian, or the given ones (--endpoints)"},
      {"epsilon", 0.0, at_least(0), "radius of the ball; 0: the task's (--epsilon)"},
      {"sigma", 0.0, at_least(0), "deviation of Gaussian endpoints; 0: epsilon / sqrt(elements of a sample)"},
      {"endpoints", 64, at_least(1), "endpoints for each sample"},
      {"points", 16, at_least(1), "points on the way to each"}};
  info.options.insert(info.options.end(), own.begin(), own.end());
  return info;
}

// Folded maps, row after row, in memory that is reused.
class FoldedMaps {
 public:
  explicit FoldedMaps(const Layout& layout) : layout_(layout) {}

  void set(const at::Tensor& maps) {
    const at::Tensor plain = maps.to(at::kCPU).contiguous();
    const auto count = static_cast<std::size_t>(plain.numel());
    values_.resize(static_cast<std::size_t>(maps.size(0) * layout_.features()));
    if (plain.scalar_type() == at::kDouble) {
      fold_into(layout_, std::span(plain.const_data_ptr<double>(), count), values_);
    } else {
      const at::Tensor single = plain.to(at::kFloat);
      fold_into(layout_, std::span(single.const_data_ptr<float>(), count), values_);
    }
    all_finite_ = std::isfinite(plain.sum().item<double>());
  }

  // Whether no row needs a closer look.
  bool all_finite() const { return all_finite_; }

  std::span<const double> row(std::int64_t index) const {
    const auto features = static_cast<std::size_t>(layout_.features());
    return std::span(values_).subspan(static_cast<std::size_t>(index) * features, features);
  }

 private:
  const Layout& layout_;
  std::vector<double> values_;
  bool all_finite_ = true;
};

bool finite(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * 0;
  return sum == 0;
}

bool all_zero(std::span<const double> values) {
  for (const double value : values) {
    if (value != 0) return false;
  }
  return true;
}

class Thickness final : public Measure {
 public:
  explicit Thickness(const Options& options)
      : Measure(options.canonical()),
        pairs_(PairChoice::from(options, name())),
        relaxed_(options.word("form") == "relaxed"),
        from_(options.word("from")),
        epsilon_(options.real("epsilon")),
        sigma_(options.real("sigma")),
        endpoints_(options.integer("endpoints")),
        points_(options.integer("points")) {}

  bool higher_is_better() const override { return true; }
  Range range() const override { return relaxed_ ? Range{} : Range{0, 1}; }

  void check(const MeasureTask& task) const override {
    task.explainer.check_task(task.explain_task());
    pairs_.check(task.explainer.map_schema(*task.samples.schema).layout, name());
    if (from_ == "given") return check_endpoints(task, name());
    if (from_ == "gaussian" && sigma_ > 0) return;
    if (radius(task) == 0)
      usage_error("{}: how far the endpoints lie is not given (--epsilon NUMBER, or the option epsilon=0.5, say)", name());
  }

  Measurement run(const MeasureTask& task) const override {
    check(task);
    const std::int64_t samples = task.samples.inputs.size(0);
    const std::int64_t endpoints = endpoint_count(task), per_sample = endpoints * points_;
    FoldedMaps maps(task.explainer.map_schema(*task.samples.schema).layout);
    const Explanation clean = task.explainer.attribute(task.explain_task());
    maps.set(clean.maps);
    std::vector<Gaps> gaps;
    std::vector<bool> ranked;  // whether the clean map ranks anything
    for (std::int64_t b = 0; b < samples; ++b) {
      ranked.push_back(finite(maps.row(b)) && !all_zero(maps.row(b)));
      gaps.push_back(ranked.back() ? gaps_of(maps.row(b)) : Gaps({0}, {1}));  // any pair: its value will be undefined
    }
    const at::Tensor predicted = predicted_class(clean.logits);

    std::vector<double> sums(static_cast<std::size_t>(samples * endpoints), 0.0);  // over the points on the way to each
    std::vector<double> flips(static_cast<std::size_t>(samples), 0.0);
    at::Tensor moves;
    for (const PointBlock& block : point_blocks(samples, per_sample, rows_that_fit(task))) {
      throw_if_interrupted();
      if (block.point == 0) moves = draw(task, block);
      const Explanation there = task.explainer.attribute(task_at(task, block, points_of(task, block, moves)));
      maps.set(there.maps);
      const at::Tensor scales = there.log_scale.to(at::kCPU, at::kDouble).exp();
      const at::Tensor flipped = predicted_class(there.logits).ne(repeated(predicted, block)).cpu();
      const double* scale = scales.const_data_ptr<double>();
      const bool* changed = flipped.const_data_ptr<bool>();
      for (std::int64_t row = 0; row < block.rows(); ++row) {
        const std::int64_t b = block.sample + row / block.points, point = block.point + row % block.points;
        sums[static_cast<std::size_t>(b * endpoints + point / points_)] +=
            maps.all_finite() || finite(maps.row(row)) ? value_of(gaps[static_cast<std::size_t>(b)], maps.row(row), scale[row])
                                                       : kNaN;
        flips[static_cast<std::size_t>(b)] += changed[row];
      }
    }
    return summary(sums, flips, ranked, endpoints);
  }

 private:
  double radius(const MeasureTask& task) const { return epsilon_ > 0 ? epsilon_ : task.epsilon; }

  Gaps gaps_of(std::span<const double> map) const {
    return pairs_.j > 0 ? pair_gap(map, pairs_.i, pairs_.j) : top_k_gaps(map, pairs_.k);
  }

  std::int64_t endpoint_count(const MeasureTask& task) const {
    return from_ == "given" ? endpoints_per_sample(task) : endpoints_;
  }

  // x' - x for the samples of a block: [samples, endpoints, elements].
  at::Tensor draw(const MeasureTask& task, const PointBlock& block) const {
    const auto own = [&](const at::Tensor& tensor) { return tensor.slice(0, block.sample, block.sample + block.samples); };
    const std::int64_t elements = task.samples.layout().inputs();
    if (from_ == "given") {
      const at::Tensor given = own(task.endpoints).to(task.samples.inputs.options()).reshape({block.samples, -1, elements});
      return given - own(task.samples.inputs).reshape({block.samples, 1, elements});
    }
    const at::Tensor ids = own(task.samples.ids);
    const at::Tensor normal = random_normal({endpoints_, elements}, ids, task.seed, "thickness.direction");
    const double n = static_cast<double>(elements);
    if (from_ == "gaussian")
      return (normal * (sigma_ > 0 ? sigma_ : radius(task) / std::sqrt(n))).to(task.samples.inputs.options());
    const at::Tensor share = random_uniform({endpoints_, 1}, ids, task.seed, "thickness.radius").pow(1 / n);
    return (normal * (radius(task) * share / normal.norm(2, 2, /*keepdim=*/true))).to(task.samples.inputs.options());
  }

  // Point p of a sample is number p % points_ on the way to endpoint p / points_.
  at::Tensor points_of(const MeasureTask& task, const PointBlock& block, const at::Tensor& moves) const {
    const at::Tensor clean = task.samples.inputs.slice(0, block.sample, block.sample + block.samples).flatten(1);
    const at::Tensor t = ((at::arange(points_, at::kDouble) + 0.5) / static_cast<double>(points_)).to(moves.options());
    std::vector<std::int64_t> shape = task.samples.inputs.sizes().vec();
    shape[0] = block.rows();
    if (block.points == moves.size(1) * points_) {  // all of them
      return at::addcmul(clean.unsqueeze(1).unsqueeze(2), moves.unsqueeze(2), t.unsqueeze(1)).view(shape);
    }
    const at::Tensor index = at::arange(block.point, block.point + block.points, moves.options().dtype(at::kLong));
    const at::Tensor way = moves.index_select(1, index.floor_divide(points_));
    return at::addcmul(clean.unsqueeze(1), way, t.index_select(0, index.remainder(points_)).unsqueeze(1)).view(shape);
  }

  double value_of(Gaps& gaps, std::span<const double> map, double scale) const {
    return relaxed_ ? gaps.mean_gap(map) * scale : gaps.share_in_order(map);
  }

  Measurement summary(const std::vector<double>& sums, const std::vector<double>& flips, const std::vector<bool>& ranked,
                      std::int64_t endpoints) const {
    Measurement result{.parts = {{"error", {}}, {"label_flips", flips}}};
    const double count = static_cast<double>(endpoints);
    for (std::size_t b = 0; b < ranked.size(); ++b) {
      const std::span<const double> own =
          std::span(sums).subspan(b * static_cast<std::size_t>(endpoints), static_cast<std::size_t>(endpoints));
      // Divided once: endpoints that are all perfect give exactly 1.
      const double mean = std::accumulate(own.begin(), own.end(), 0.0) / (count * static_cast<double>(points_));
      double squares = 0;
      for (const double sum : own) squares += std::pow(sum / static_cast<double>(points_) - mean, 2);
      result.values.push_back(ranked[b] ? mean : kNaN);
      // A single endpoint, or endpoints that were given, are no sample of anything.
      result.parts[0].second.push_back(endpoints > 1 && from_ != "given" ? std::sqrt(squares / (count - 1) / count) : kNaN);
    }
    return result;
  }

  PairChoice pairs_;
  bool relaxed_;
  std::string from_;
  double epsilon_, sigma_;
  std::int64_t endpoints_, points_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<Thickness>(thickness_info());
}

}  // namespace holdfast::measure::thickness

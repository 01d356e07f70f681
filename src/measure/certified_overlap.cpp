// certified_overlap: certified P@k, the share of a map's top k that is proven to stay among the top k at every point of the l2
// ball of `radius`. No attack can bring top_k(k) of the saliency below it; whether the class is kept and what inputs are valid
// does not count, so the truth may be higher. Ours; no paper.
//
//     1 - d / k      d: the most features that can have left at once while the pairs that are proven keep their order
//     (metric/swaps.h)
//
// A pair of a top feature i and another one j is proven where a lower bound of |I_i| - |I_j| over the ball is above 0:
//     intervals     of the gradient of the margin of two classes, to which the probability's is parallel (margin_bounds.h):
//     chains of
//                   linear layers with relu, leaky_relu or softplus
//     mean values   h - radius max over the ball of ||s_i H_i - s_j H_j||_2 (pair_bounds.h), in small balls the tighter: smooth
//                   chains, of the margin, or with more classes of the probability
// Where a network has both, either proves. Ties prove nothing: with a zero gradient all over the ball, no order is proven.
//
// What is certified is the map that people see, in the model's own precision, float32 mostly: a gap below what rounding may do to
// both its features is a tie (bounds/rounding.h), and a unit whose sign rounding may change is one that may switch. Where such a
// tie is at the top set's edge at the sample itself, the set that is seen there is not known either, and d is the most features
// in which any two sets that the proven pairs allow may differ. The ball is as much wider as points of an attack may be off.
//
// switches=M is the threat of --switches M: the ball is for numbers alone, and up to M categories take another level. Every row
// that switches make of a sample has a ball of its own, in which the sample's top is held against the others; the least share
// counts.

#include <algorithm>
#include <numeric>
#include <optional>

#include "bounds/ball_bounds.h"
#include "bounds/pair_bounds.h"
#include "bounds/rounding.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/measure/margin_bounds.h"
#include "holdfast/measure/measure.h"
#include "holdfast/metric/swaps.h"
#include "points.h"
#include "smooth_measure.h"

namespace holdfast::measure::certified_overlap {

MethodInfo certified_overlap_info() {
  return {.name = "certified_overlap",
          .summary = "certified P@k: share of the gradient's top k that provably stays on top in an l2 ball",
          .options = {{"k", 8, at_least(1), "size of the top"},
                      {"radius", 0.1, at_least(0), "of the l2 ball around the sample"},
                      {"switches", -1, at_least(-1),
                       "categories that may take another level, beside a ball for the numbers; -1: the ball moves all columns"},
                      smooth_project_option()},
          .needs = {"two classes and linear layers with relu, leaky_relu or softplus; or a smooth feed-forward network"},
          .notes = "A lower bound of top_k(k) under any attack with saliency; 1 for a linear model at any radius."};
}

// Lower bounds of |I_i| - |I_j|, rounding included, [B, k, n - k]: over the ball, and at the sample itself.
struct Gaps {
  at::Tensor in_ball, here;
};

// The bounds that there are for a model.
class Certifier {
 public:
  Certifier(const MeasureTask& task, const PairChoice& pairs, bool project, bool holds_groups)
      : pairs_(pairs), project_(project) {
    const at::NoGradGuard no_graph;
    if (holds_groups) {
      moving_ = at::ones({task.samples.layout().inputs()}, at::kDouble);
      for (const Group& group : task.samples.schema->groups) moving_.index_fill_(0, at::tensor(group.columns, at::kLong), 0);
    }
    if (!MarginChain::what_prevents(*task.model.network())) margin_.emplace(task.model.network()->to(at::kDouble).to(at::kCPU));
    if (!SmoothChain::what_prevents(task.model)) smooth_.emplace(task.model, task.samples.inputs.slice(0, 0, 1));
    unit_ = unit_roundoff(task.model.dtype());
  }

  // The pairs of each sample's top with the others.
  RankedPairs pairs_of(const MeasureTask& task) const {
    const at::NoGradGuard no_graph;
    return ranked_pairs(pairs_, projected(gradient_at(task), *task.samples.schema));
  }

  // Around the samples of `task`, for pairs that need not be those of their own tops.
  Gaps gaps(const MeasureTask& task, double radius, const RankedPairs& pairs) const {
    const at::NoGradGuard no_graph;
    if (!margin_) return mean_values(task, radius, pairs);
    const Gaps bounds = intervals(task, radius, pairs);
    if (!smooth_) return bounds;
    const Gaps more = mean_values(task, radius, pairs);
    return {at::maximum(bounds.in_ball, more.in_ball), at::maximum(bounds.here, more.here)};
  }

  // Samples whose bounds fit the task's memory.
  std::int64_t samples_at_once(const MeasureTask& task) const {
    const std::int64_t mean_values = smooth_ ? samples_that_fit(*smooth_, task, pairs_) : task.samples.inputs.size(0);
    if (!margin_) return mean_values;
    constexpr std::int64_t kCopies = 6;
    const std::int64_t n = task.samples.layout().features(), doubles = n * n * static_cast<std::int64_t>(sizeof(double));
    if (const std::int64_t all = 2 * margin_->units() * doubles; all > std::max(task.memory, kExplainMemory))
      usage_error("certified_overlap: bounds of all pairs of {} features take {} MiB; they are for fewer features", n, all >> 20);
    return std::min(mean_values, std::max<std::int64_t>(1, task.memory / (kCopies * doubles)));
  }

 private:
  static at::Tensor rows_of(const MeasureTask& task) {
    return task.samples.inputs.detach().to(at::kCPU, at::kDouble).flatten(1).unsqueeze(0);
  }
  SmoothChain::Output output() const {
    return smooth_->classes() == 2 ? SmoothChain::Output::kMargin : SmoothChain::Output::kProbability;
  }
  at::Tensor gradient_at(const MeasureTask& task) const {
    if (margin_) return margin_->bounds(rows_of(task), 0).gradient[0];
    const at::Tensor none = at::zeros({task.samples.count()}, at::kDouble);
    return smooth_->bounds(task.samples.inputs, task.samples.targets, none, output()).gradient.center;
  }

  at::Tensor of_gaps(const at::Tensor& errors, const at::Tensor& sizes, const RankedPairs& pairs, const MeasureTask& task) const {
    return gap_errors(errors, sizes, pairs, project_ ? task.samples.schema.get() : nullptr, unit_);
  }

  at::Tensor projected(const at::Tensor& vectors, const Schema& schema) const {
    return project_ ? projected_gradient(vectors, schema) : vectors;
  }

  Gaps intervals(const MeasureTask& task, double radius, const RankedPairs& pairs) const {
    const at::Tensor x = rows_of(task);
    const MarginBounds ball = margin_->bounds(x, radius, unit_, moving_), point = margin_->bounds(x, 0, unit_);
    const at::Tensor rows = projected(ball.rows[0], *task.samples.schema),
                     gradient = projected(ball.gradient[0], *task.samples.schema);
    const at::Tensor signs = at::where(gradient < 0, -1.0, 1.0);
    const auto lowered = [&](const MarginBounds& over) {
      const at::Tensor errors = rounding_of(margin_->operations(), unit_) * over.products[0];
      return interval_gaps(pairs, rows, over.middle[0], over.half[0], signs) - of_gaps(errors, over.products[0], pairs, task);
    };
    return {lowered(ball), lowered(point)};
  }

  // The ball moves all columns here, which holds less but is no less true.
  Gaps mean_values(const MeasureTask& task, double radius, const RankedPairs& pairs) const {
    const at::Tensor reach = at::full({task.samples.inputs.size(0)}, radius, at::kDouble);
    const BallBounds here = smooth_->bounds(task.samples.inputs, task.samples.targets, at::zeros_like(reach), output(), unit_);
    const BallBounds ball = smooth_->bounds(task.samples.inputs, task.samples.targets, reach, output(), unit_);
    const Enclosure& hessian = ball.hessian;
    const at::Tensor gradient = projected(here.gradient.center, *task.samples.schema);
    const PairTerms over = pair_terms(pairs, gradient, project_ ? projected_hessian(hessian, *task.samples.schema) : hessian);
    const auto slack = [&](const BallBounds& bounds) {
      const at::Tensor sizes = bounds.gradient.center.abs() + bounds.gradient.radius;
      return of_gaps(bounds.rounding, sizes, pairs, task);
    };
    return {at::minimum(over.gap - radius * over.together, over.sum - radius * over.apart) - slack(ball), over.gap - slack(here)};
  }

  PairChoice pairs_;
  bool project_;
  double unit_ = 0;
  at::Tensor moving_;  // [n]; undefined: the ball moves all columns
  std::optional<MarginChain> margin_;
  std::optional<SmoothChain> smooth_;
};

// A row and all that up to `most` switches of groups make of it, [rows, n].
at::Tensor switched_rows(const at::Tensor& row, const std::vector<Group>& groups, std::int64_t most) {
  std::vector<at::Tensor> all{row};
  std::vector<std::pair<std::size_t, std::int64_t>> state{{0, 0}};  // the first group that may switch next, switches so far
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [first, used] = state[i];
    if (used == most) continue;
    for (std::size_t g = first; g < groups.size(); ++g) {
      const at::Tensor columns = at::tensor(groups[g].columns, at::kLong);
      const std::int64_t now = all[i].index_select(0, columns).argmax().item<std::int64_t>();
      for (std::int64_t level = 0; level < columns.numel(); ++level) {
        if (level == now) continue;
        at::Tensor next = all[i].clone();
        next.index_fill_(0, columns, 0);
        next[groups[g].columns[static_cast<std::size_t>(level)]] = 1;
        all.push_back(std::move(next));
        state.emplace_back(g + 1, used + 1);
      }
    }
  }
  return at::stack(all);
}

// How many rows that are.
double count_switched(const std::vector<Group>& groups, std::int64_t most) {
  std::vector<double> ways(static_cast<std::size_t>(most) + 1, 0.0);  // by the number of switches
  ways[0] = 1;
  for (const Group& group : groups) {
    for (std::size_t i = ways.size() - 1; i > 0; --i) ways[i] += ways[i - 1] * static_cast<double>(group.columns.size() - 1);
  }
  return std::accumulate(ways.begin(), ways.end(), 0.0);
}

class CertifiedOverlap final : public Measure {
 public:
  explicit CertifiedOverlap(const Options& options)
      : Measure(options.canonical()),
        pairs_{.k = options.integer("k")},
        radius_(options.real("radius")),
        switches_(options.integer("switches")),
        project_(options.word("project") == "auto") {}

  bool higher_is_better() const override { return true; }
  bool uses_explainer() const override { return false; }
  Range range() const override { return {0, 1}; }

  void check(const MeasureTask& task) const override {
    pairs_.check(task.samples.layout(), name());
    check_one_element_a_feature(task.samples.layout(), name());
    check_switches(*task.samples.schema);
    const std::optional<std::string> bend = SmoothChain::what_prevents(task.model);
    if (!bend) return;
    const std::string model = task.model.name().empty() ? "the model" : task.model.name();
    if (task.model.network() == nullptr) usage_error("{}: there are no bounds for {}, which has {}", name(), model, *bend);
    const std::optional<std::string> link = MarginChain::what_prevents(*task.model.network());
    if (!link) return;
    usage_error(
        "{}: there are bounds for smooth chains, but {} has {}, and for linear layers with relu, leaky_relu or softplus "
        "and two classes, but it has {}",
        name(), model, *bend, *link);
  }

  Measurement run(const MeasureTask& task) const override {
    check(task);
    Measurement result;
    if (task.samples.inputs.size(0) == 0) return result;
    const Certifier certifier(task, pairs_, project_, switches_ >= 0);
    for (const PointBlock& block : point_blocks(task.samples.inputs.size(0), 1, certifier.samples_at_once(task))) {
      throw_if_interrupted();
      const MeasureTask part = part_of(task, block.sample, block.sample + block.samples);
      const RankedPairs pairs = certifier.pairs_of(part);
      const Gaps gaps = certifier.gaps(part, radius_ * (1 + kBallTolerance), pairs);
      for (std::int64_t b = 0; b < block.samples; ++b) {
        const double stays = share_that_stays(gaps.in_ball[b], gaps.here[b]);
        result.values.push_back(switches_ > 0 && stays > 0 ? with_switches(certifier, part, b, pairs, gaps.here[b]) : stays);
      }
    }
    return result;
  }

 private:
  static constexpr double kMostRows = 20000;

  void check_switches(const Schema& schema) const {
    if (switches_ <= 0) return;
    if (switches_ > std::ssize(schema.groups)) {
      usage_error("{}: the schema has {}; choose switches <= {}", name(), counted(std::ssize(schema.groups), "one-hot group"),
                  schema.groups.size());
    }
    if (const double rows = count_switched(schema.groups, switches_); rows > kMostRows)
      usage_error("{}: so many switches make {} rows of each sample, more than {}; choose fewer", name(), rows, kMostRows);
  }

  // The least share over all rows that switches make of sample b.
  double with_switches(const Certifier& certifier, const MeasureTask& part, std::int64_t b, const RankedPairs& pairs,
                       const at::Tensor& here) const {
    const at::Tensor rows = switched_rows(part.samples.inputs[b].detach().cpu(), part.samples.schema->groups, switches_);
    const std::int64_t some = certifier.samples_at_once(part);
    double least = 1;
    for (std::int64_t begin = 0; begin < rows.size(0) && least > 0; begin += some) {
      throw_if_interrupted();
      const std::int64_t count = std::min(some, rows.size(0) - begin);
      MeasureTask task = part_of(part, b, b + 1);
      task.samples.inputs = rows.slice(0, begin, begin + count).to(part.samples.inputs.options());
      task.samples.targets = task.samples.targets.expand({count}).contiguous();
      task.samples.ids = task.samples.ids.expand({count}).contiguous();
      const auto repeated = [&](const at::Tensor& own) { return own.slice(0, b, b + 1).expand({count, -1}).contiguous(); };
      const Gaps gaps = certifier.gaps(task, radius_ * (1 + kBallTolerance), {repeated(pairs.above), repeated(pairs.below)});
      for (std::int64_t i = 0; i < count; ++i) least = std::min(least, share_that_stays(gaps.in_ball[i], here));
    }
    return least;
  }

  // A gap that is no number proves nothing either.
  static double share_that_stays(const at::Tensor& in_ball, const at::Tensor& here) {
    const auto open_pairs = [](const at::Tensor& gaps) { return (gaps > 0).logical_not().to(at::kChar).contiguous(); };
    const at::Tensor open = open_pairs(in_ball), open_here = open_pairs(here);
    const std::int64_t top = open.size(0), others = open.size(1);
    const auto span_of = [](const at::Tensor& pairs) {
      return std::span(pairs.const_data_ptr<std::int8_t>(), static_cast<std::size_t>(pairs.numel()));
    };
    std::int64_t left = most_swaps(span_of(open), top, others);
    if (const std::int64_t unknown = most_swaps(span_of(open_here), top, others); unknown > 0) {
      const at::Tensor either = open.bitwise_or(open_here).contiguous();
      left = std::min(std::min(top, left + unknown), most_swaps_of_any(span_of(either), top, others));
    }
    return static_cast<double>(top - left) / static_cast<double>(top);
  }

  PairChoice pairs_;
  double radius_;
  std::int64_t switches_;
  bool project_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<CertifiedOverlap>(certified_overlap_info());
}

}  // namespace holdfast::measure::certified_overlap

// er: lowers the gaps between the top k features and the others (ERAttack).
//     minimise  sum_{i <= k < j} h(x', i, j),   h(x, i, j) = I(x)_i - I(x)_j,   features in the clean order
//     x <- project(x - step * g / ||g||_2),     g its gradient
// Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024 ("Robust Ranking Explanations", 2023).
//
// The clean ranking and the clean signs are held fixed: with s_i the sign of I(x)_i the objective is sum_i w_i s_i I(x')_i,
//     pairs=all      w = 1/k on the top k, -1/(n-k) on the others: the mean over all pairs
//     pairs=next-k   w = 1/k on the top k, -1/k on the next k: the pairs of the authors' code, whose sum telescopes
// linear in n, never n^2. Channels of a pixel share its weight. Steps are as long as `step_size` in the threat's norm
// (descend.h): the paper's rule for l2, signs of the gradient for linf.
//
// select=last is the paper's rule: stop at the first label flip, return the last preserved iterate. select=worst walks on
// along the same iterates, skips those whose label flipped, and returns the worst of the others. Either way a sample that
// flips at its first step counts as not moved.
//
// Departs from the paper: the gradient of a saturated probability keeps its direction (logit_cotangent.h). Departs from the
// authors' code: all samples at once; the evaluation at x_{t+1} is the next step's gradient, so that an iteration costs one
// forward, one gradient and one double backward.

#include "check.h"
#include "descend.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/top_k.h"
#include "ledger.h"
#include "methods.h"

namespace holdfast {
namespace {

const MethodInfo kInfo{
    .name = "er",
    .summary = "gradient attack that lowers the gaps between the top k features and the others",
    .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
    .options = {{"steps", 100, at_least(1), "iterations"},
                {"step_size", 0.0, at_least(0), "length of a step in the threat's norm; 0: epsilon / steps"},
                {"k", 0, at_least(0), "size of the top that is attacked; 0: the metric's k"},
                {"pairs", "all", one_of({"all", "next-k"}),
                 "gaps to all other features, or to the next k as in the authors' code"}},
    .presets = {{"tabular", {{"steps", std::int64_t{1000}}, {"step_size", 1e-3}}, "the paper's budget for tables"},
                {"cifar10",
                 {{"steps", std::int64_t{100}}, {"step_size", 5e-2}},
                 "the paper's budget for CIFAR-10, in units of normalised inputs: times their deviation for raw ones"},
                {"image",
                 {{"steps", std::int64_t{100}}, {"step_size", 1e-2}},
                 "the paper's budget for other images and for graphs, in units of normalised inputs: times their deviation for "
                 "raw ones"}}};

// w_i of the features of one map.
std::vector<double> pair_weights(std::span<const double> map, std::int64_t k, bool all_pairs) {
  const auto n = static_cast<std::int64_t>(map.size());
  const double inside = 1.0 / static_cast<double>(k);
  std::vector<double> weights(map.size(), 0.0);
  if (k == n) return weights;  // no pairs
  if (all_pairs) {
    std::fill(weights.begin(), weights.end(), -1.0 / static_cast<double>(n - k));
  } else {
    for (const std::int64_t i : top_k_set(map, std::min(2 * k, n))) weights[static_cast<std::size_t>(i)] = -inside;
  }
  for (const std::int64_t i : top_k_set(map, k)) weights[static_cast<std::size_t>(i)] = inside;
  return weights;
}

class Er final : public Attack {
 public:
  explicit Er(const Options& options)
      : Attack(options.canonical()),
        steps_(options.integer("steps")),
        step_size_(options.real("step_size")),
        k_(options.integer("k")),
        all_pairs_(options.word("pairs") == "all") {}

  void check(const AttackTask& task) const override {
    check_task(task);
    check_differentiable(task, name());
    if (k_ == 0 && !task.metric.top_count()) usage_error("{}: {} has no k to take; write er(k=8)", name(), task.metric.name());
    const std::int64_t features = task.schema.layout.features();
    if (k_ > features) usage_error("{}: the map has {} features; choose k <= {}", name(), features, features);
  }

  AttackResult run(const AttackTask& task) const override {
    check(task);
    const std::int64_t passes = task.explainer.evaluations();
    const double step = step_size_ > 0 ? step_size_ : task.threat.epsilon / static_cast<double>(steps_);
    ExplainTask point = explain_at(task, task.inputs);
    point.keep_signs = true;
    std::unique_ptr<Linearization> here = task.explainer.linearize(point);
    Ledger ledger(task, here->at(), task.select);
    ledger.charge(passes);
    at::Tensor clean = task.inputs;
    at::Tensor cotangent = objective(task, here->at().maps);

    for (std::int64_t i = 0; i < steps_ && !ledger.finished(); ++i) {
      throw_if_interrupted();
      at::Tensor gradient = here->pullback(cotangent);
      here.reset();  // one graph at a time
      if (const auto kept = ledger.shrink()) {
        for (at::Tensor* tensor : {&gradient, &cotangent, &clean, &point.inputs, &point.targets, &point.sample_ids}) {
          *tensor = tensor->index_select(0, kept->to(tensor->device()));
        }
      }
      point.inputs = descend(task.threat, point.inputs, gradient, clean, step);
      here = task.explainer.linearize(point);
      ledger.charge(3 * passes);
      ledger.record(point.inputs, here->at());
    }
    return ledger.finish();
  }

 private:
  // w_i s_i for every input element: the objective's cotangent on the maps.
  at::Tensor objective(const AttackTask& task, const at::Tensor& maps) const {
    const Layout& layout = task.schema.layout;
    const std::int64_t rows = maps.size(0), channels = layout.inputs() / layout.features();
    const at::Tensor signed_maps = maps.cpu().to(at::kDouble).contiguous();
    std::vector<double> folded(static_cast<std::size_t>(rows * layout.features()));
    fold_into(layout, std::span<const double>(signed_maps.data_ptr<double>(), static_cast<std::size_t>(signed_maps.numel())),
              folded);
    at::Tensor weights = at::empty({rows, layout.sides, 1, layout.side_features()}, at::kDouble);
    const auto features = static_cast<std::size_t>(layout.features());
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      const std::span<const double> map = std::span(folded).subspan(row * features, features);
      const std::vector<double> own = pair_weights(map, k_ > 0 ? k_ : *task.metric.top_count(), all_pairs_);
      std::copy(own.begin(), own.end(), weights.data_ptr<double>() + row * features);
    }
    weights = weights.expand({rows, layout.sides, channels, layout.side_features()}).reshape(maps.sizes());
    return (weights * signed_maps.sign()).to(maps.options());
  }

  std::int64_t steps_;
  double step_size_;
  std::int64_t k_;
  bool all_pairs_;
};

}  // namespace

void add_er(Registry<Attack>& registry) {
  registry.add<Er>(kInfo);
}

}  // namespace holdfast

// occlusion: how much the explained quantity falls when a part of the input is replaced by a baseline.
//     I_i(x) = mean over the windows w that cover i of F(x) - F(x with w replaced)
// Zeiler, Fergus, "Visualizing and Understanding Convolutional Networks", ECCV 2014. Images: square windows over all channels,
// every `stride` pixels, the last ones cut off at the border (as Captum's Occlusion with all channels in a window). Tables and
// graphs: one column or edge at a time; sequences: one step or token. One-hot groups are replaced whole and by a valid row
// (uniform levels for a zero baseline), and their effect is put at the level that is on, the others being 0; project=none
// replaces single columns.
//
// Needs no gradients of the model and has none itself. Differences of probabilities near 1 are taken between their complements
// and kept in double precision, each sample's largest as its scale.
#include <algorithm>
#include <limits>

#include "baseline.h"
#include "finish.h"
#include "graph.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/batch_rows.h"
#include "holdfast/explain/explainer.h"
#include "parts.h"

namespace holdfast::explain::occlusion {

const MethodInfo kInfo{.name = "occlusion",
                       .summary = "fall of the class's probability when a window, a column or a one-hot group is replaced",
                       .citation = "Zeiler, Fergus, Visualizing and Understanding Convolutional Networks, ECCV 2014",
                       .options = {{"window", 4, at_least(1), "side of the square that is replaced, in pixels; images only"},
                                   {"stride", 2, at_least(1), "pixels between windows; images only"},
                                   baseline_option(),
                                   blur_option(),
                                   target_option(),
                                   project_option()},
                       .notes = "Has no gradient: only attacks without gradients can move it."};

// The quantity in double precision, in a form whose differences are exact to the last digits wherever the softmax saturates.
class Quantity {
 public:
  Quantity(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity)
      : quantity_(logits.size(1) == 1 ? ExplainedQuantity::kLogit : quantity) {
    const at::Tensor rows = logits.to(at::kDouble), column = targets.unsqueeze(1);
    logit_ = rows.gather(1, column).squeeze(1);
    if (quantity_ == ExplainedQuantity::kLogit) return;
    const at::Tensor all = at::logsumexp(rows, 1);
    log_own_ = logit_ - all;
    others_ = (at::logsumexp(rows.scatter(1, column, -std::numeric_limits<double>::infinity()), 1) - all).exp();
  }

  // This one less the other, row by row.
  at::Tensor minus(const Quantity& other) const {
    if (quantity_ == ExplainedQuantity::kLogit) return logit_ - other.logit_;
    if (quantity_ == ExplainedQuantity::kCrossEntropy) return other.log() - log();
    const at::Tensor both_near_one = (others_ < 0.5).logical_and(other.others_ < 0.5);
    return at::where(both_near_one, other.others_ - others_, log_own_.exp() - other.log_own_.exp());
  }

  // Row b for each of `parts` parts.
  Quantity repeated(std::int64_t parts) const {
    Quantity copy = *this;
    for (at::Tensor* tensor : {&copy.logit_, &copy.log_own_, &copy.others_}) {
      if (tensor->defined()) *tensor = tensor->repeat({parts});
    }
    return copy;
  }

 private:
  at::Tensor log() const { return at::where(others_ < 0.5, (-others_).log1p(), log_own_); }

  ExplainedQuantity quantity_;
  at::Tensor logit_, log_own_, others_;  // [rows]: the class's logit, log p_c, 1 - p_c
};

class Occlusion final : public Explainer {
 public:
  explicit Occlusion(const Options& options)
      : Explainer(options.canonical()),
        window_(options.integer("window")),
        stride_(options.integer("stride")),
        quantity_(parse_explained_quantity(options.word("target"))),
        baseline_(options, name()),
        projection_(options, name()) {
    if (stride_ > window_)
      usage_error("{}: stride is {}, window {}; pixels between windows would never be replaced", name(), stride_, window_);
  }

  void check(const Model&) const override {}  // every model gives logits
  void check_task(const ExplainTask& task) const override {
    baseline_.check(task);
    (void)projection_.applies(task);
    check_window(layout_of(task), window_, name());
  }
  bool is_differentiable() const override { return false; }
  std::int64_t evaluations(const Schema& schema) const override {
    return 1 + Parts(schema.layout, projection_.applies(&schema) ? &schema : nullptr, window_, stride_).count();
  }

  Explanation attribute(const ExplainTask& task) const override {
    check_task(task);
    const at::NoGradGuard no_graph;
    const bool groups = projection_.applies(task);
    const Parts parts(layout_of(task), groups ? task.samples.schema.get() : nullptr, window_, stride_);
    const std::int64_t rows = BatchRows(task).most(Pass::kForward), some = even_part(task.samples.inputs.size(0), rows);
    std::vector<at::Tensor> maps, logits;
    for (std::int64_t sample = 0; sample < task.samples.inputs.size(0); sample += some) {
      const Samples samples{task.samples.inputs.slice(0, sample, sample + some),
                            task.samples.targets.slice(0, sample, sample + some)};
      logits.push_back(task_logits(task, samples.inputs));
      maps.push_back(falls(task, samples, logits.back(), baseline_.of(task, groups).at(samples.inputs), parts, rows));
    }
    at::Tensor map = at::cat(maps);
    if (groups) map = map * levels_that_are_on(task.samples.inputs, *task.samples.schema);
    return scaled_explanation(map, task.samples.inputs, at::cat(logits));
  }

 private:
  struct Samples {
    at::Tensor inputs, targets;
  };

  // [n, sample...] double: each element's mean fall over the parts that cover it.
  at::Tensor falls(const ExplainTask& task, const Samples& samples, const at::Tensor& logits, const at::Tensor& baseline,
                   const Parts& parts, std::int64_t rows) const {
    const std::int64_t count = samples.inputs.size(0), some = even_part(parts.count(), std::max<std::int64_t>(1, rows / count));
    const Quantity whole(logits, samples.targets, quantity_);
    at::Tensor fall, cover;
    for (std::int64_t first = 0; first < parts.count(); first += some) {
      throw_if_interrupted();
      const at::Tensor masks = parts.masks(first, std::min(some, parts.count() - first)).to(task.samples.inputs.device());
      const at::Tensor replaced = at::where(masks.unsqueeze(1), baseline.unsqueeze(0), samples.inputs.unsqueeze(0)).flatten(0, 1);
      const std::int64_t here = masks.size(0);
      const Quantity left(task_logits(task, replaced), samples.targets.repeat({here}), quantity_);
      const at::Tensor drops = whole.repeated(here).minus(left).view({here, count});
      const at::Tensor covered = masks.flatten(1).to(at::kDouble);
      const at::Tensor more = at::matmul(drops.t(), covered);
      fall = fall.defined() ? fall + more : more;
      cover = cover.defined() ? cover + covered.sum(0) : covered.sum(0);
    }
    return (fall / cover.clamp_min(1)).view_as(samples.inputs);
  }

  std::int64_t window_, stride_;
  ExplainedQuantity quantity_;
  BaselineOption baseline_;
  Projection projection_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<Occlusion>(kInfo);
}

}  // namespace holdfast::explain::occlusion

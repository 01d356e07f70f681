// occlusion: how much the explained quantity falls when a part of the input is replaced by a baseline.
//     I_i(x) = mean over the windows w that cover i of F(x) - F(x with w replaced)
// Zeiler, Fergus, "Visualizing and Understanding Convolutional Networks", ECCV 2014. Images: square windows over all channels,
// every `stride` pixels, the last ones cut off at the border (as Captum's Occlusion with all channels in a window). Tables and
// graphs: one column or edge at a time. One-hot groups are replaced whole and by a valid row (uniform levels for a zero
// baseline), and their effect is put at the level that is on, the others being 0; project=none replaces single columns.
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

// The parts of a sample that are replaced, one at a time.
class Parts {
 public:
  Parts(const Layout& layout, const Schema* groups, std::int64_t window, std::int64_t stride) : layout_(layout) {
    if (layout.kind == Layout::Kind::kGrid) {
      add_windows(window, stride);
    } else {
      add_columns(groups);
    }
  }

  std::int64_t count() const { return static_cast<std::int64_t>(columns_.size() + windows_.size()); }

  // [count, sample...]: what parts first .. first + count - 1 cover.
  at::Tensor masks(std::int64_t first, std::int64_t count) const {
    std::vector<std::int64_t> shape = layout_.sample_shape();
    shape.insert(shape.begin(), count);
    at::Tensor masks = at::zeros(shape, at::kBool);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto part = static_cast<std::size_t>(first + i);
      if (!windows_.empty()) {
        const Window& window = windows_[part];
        at::Tensor image = masks[i].view({layout_.sides, layout_.channels, layout_.height, layout_.width}).select(0, window.side);
        image.slice(1, window.top, window.top + window.height).slice(2, window.left, window.left + window.width).fill_(true);
      } else {
        for (const std::int64_t column : columns_[part]) masks[i].view({-1})[column] = true;
      }
    }
    return masks;
  }

 private:
  struct Window {
    std::int64_t side, top, left, height, width;
  };

  // There are as many as reach the border; the last may reach over it and is cut.
  void add_windows(std::int64_t window, std::int64_t stride) {
    const auto steps = [&](std::int64_t size) { return size <= window ? 1 : (size - window + stride - 1) / stride + 1; };
    for (std::int64_t side = 0; side < layout_.sides; ++side) {
      for (std::int64_t row = 0; row < steps(layout_.height); ++row) {
        for (std::int64_t column = 0; column < steps(layout_.width); ++column) {
          const std::int64_t top = row * stride, left = column * stride;
          windows_.push_back({side, top, left, std::min(window, layout_.height - top), std::min(window, layout_.width - left)});
        }
      }
    }
  }

  void add_columns(const Schema* groups) {
    std::vector<bool> grouped(static_cast<std::size_t>(layout_.inputs()), false);
    if (groups != nullptr) {
      for (const Group& group : groups->groups) {
        columns_.push_back(group.columns);
        for (const std::int64_t column : group.columns) grouped[static_cast<std::size_t>(column)] = true;
      }
    }
    for (std::int64_t column = 0; column < layout_.inputs(); ++column) {
      if (!grouped[static_cast<std::size_t>(column)]) columns_.push_back({column});
    }
  }

  const Layout layout_;
  std::vector<Window> windows_;
  std::vector<std::vector<std::int64_t>> columns_;
};

// The quantity in double precision, in a form whose differences are exact to the last digits wherever the softmax saturates.
class Quantity {
 public:
  Quantity(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity) : quantity_(quantity) {
    const at::Tensor rows = logits.to(at::kDouble), column = targets.unsqueeze(1);
    logit_ = rows.gather(1, column).squeeze(1);
    if (quantity == ExplainedQuantity::kLogit) return;
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

// [B, sample...]: 1 but for the levels of one-hot groups that are not on.
at::Tensor levels_that_are_on(const at::Tensor& inputs, const Schema& schema) {
  at::Tensor on = at::ones({inputs.size(0), inputs.flatten(1).size(1)}, inputs.options().dtype(at::kDouble));
  for (const Group& group : schema.groups) {
    const at::Tensor columns = at::tensor(group.columns, at::kLong).to(inputs.device());
    const at::Tensor values = inputs.flatten(1).index_select(1, columns);
    const at::Tensor first_largest = at::zeros_like(values, at::kDouble).scatter_(1, values.argmax(1, /*keepdim=*/true), 1);
    on.index_copy_(1, columns, first_largest);
  }
  return on.view_as(inputs);
}

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
    const Layout layout = layout_of(task);
    if (layout.kind == Layout::Kind::kGrid && window_ > std::max(layout.height, layout.width)) {
      usage_error("{}: the window has {} pixels, the image {} x {}; choose window <= {}", name(), window_, layout.height,
                  layout.width, std::max(layout.height, layout.width));
    }
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
    const at::Tensor largest = map.flatten(1).abs().amax(1);
    const at::Tensor scale = at::where(largest > 0, largest, at::ones_like(largest));
    std::vector<std::int64_t> one_a_sample(static_cast<std::size_t>(map.dim()), 1);
    one_a_sample[0] = map.size(0);
    return {.maps = (map / scale.view(one_a_sample)).to(task.samples.inputs.scalar_type()),
            .log_scale = scale.log().to(task.samples.inputs.scalar_type()),
            .logits = at::cat(logits)};
  }

 private:
  struct Samples {
    at::Tensor inputs, targets;
  };

  static Layout layout_of(const ExplainTask& task) {
    return task.samples.schema != nullptr ? task.samples.schema->layout : Layout::guess(task.samples.inputs.sizes().slice(1));
  }

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
    return (fall / cover).view_as(samples.inputs);
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

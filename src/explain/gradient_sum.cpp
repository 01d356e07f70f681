#include "gradient_sum.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "graph.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/batch_rows.h"

namespace holdfast::explain {
namespace {

// Points first .. first + count - 1 of the samples sample .. sample + samples - 1.
struct Block {
  std::int64_t sample = 0, samples = 0, first = 0, count = 0;
};

// All blocks of at most `rows` rows, each sample's one after the other: many samples and few points are better than the reverse,
// since sums over points then run along whole samples.
std::vector<Block> cut(std::int64_t samples, std::int64_t points, std::int64_t rows) {
  const std::int64_t some_samples = even_part(samples, rows);
  const std::int64_t some_points = even_part(points, std::max<std::int64_t>(1, rows / some_samples));
  std::vector<Block> blocks;
  for (std::int64_t sample = 0; sample < samples; sample += some_samples) {
    for (std::int64_t first = 0; first < points; first += some_points) {
      blocks.push_back({sample, std::min(some_samples, samples - sample), first, std::min(some_points, points - first)});
    }
  }
  return blocks;
}

// [n] -> [n, 1, ...] of `dims` dimensions, to go with [n, sample...].
at::Tensor beside(const at::Tensor& per_sample, std::int64_t dims) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(dims), 1);
  shape[0] = per_sample.size(0);
  return per_sample.view(shape);
}

// The gradients of one block.
struct Traced {
  at::Tensor gradients;  // [count, samples, sample...], projected, over exp(scale), and times the weights for a sum of gradients
  at::Tensor times;      // as SummedPoints
  at::Tensor scale;      // [samples]
  at::Tensor logits;     // [count, samples, classes], detached
  at::Tensor all, felt;  // [samples]: sums of squares before and after the projection; undefined where nothing is projected
};

class Tracer {
 public:
  Tracer(const GradientSum& sum, const ExplainTask& task, const PointSet& set)
      : sum_(sum), task_(task), set_(set), weights_(set.weights()), projects_(sum.projection.applies(task)) {}

  std::int64_t points() const { return static_cast<std::int64_t>(weights_.size()); }

  // `inputs` are the block's samples. The scale is `floor` or, where it is larger, the largest of the block's points; `fixed`: it
  // is `floor`. With `create_graph` the gradients can be differentiated by `inputs`.
  Traced trace(const at::Tensor& inputs, const Block& block, const at::Tensor& floor, bool fixed, bool create_graph) const {
    throw_if_interrupted();
    const SummedPoints points = set_.points(inputs, block.sample, block.first, block.count);
    at::Tensor rows = points.at.flatten(0, 1);
    if (!create_graph) rows = rows.detach().requires_grad_();
    const at::Tensor logits = task_logits(task_, rows, create_graph);
    const at::Tensor targets = task_.samples.targets.slice(0, block.sample, block.sample + block.samples).repeat({block.count});
    const LogitCotangent cotangent = logit_cotangent(create_graph ? logits : logits.detach(), targets, sum_.quantity);
    const at::Tensor log_scale = cotangent.log_scale.view({block.count, block.samples});

    Traced traced{.times = points.times, .logits = logits.detach().view({block.count, block.samples, -1})};
    if (fixed) {
      traced.scale = floor;
    } else {
      traced.scale = log_scale.amax(0);
      if (floor.defined()) traced.scale = at::maximum(traced.scale, floor);
    }
    at::Tensor factor = (log_scale - traced.scale).exp();
    if (sum_.summand == Summand::kGradient) factor = factor * block_weights(block, factor);
    const at::Tensor gradient = input_gradient(logits, rows, cotangent.value * factor.view({-1, 1}), create_graph);
    traced.gradients = finish(gradient, block, !create_graph, traced).view_as(points.at);
    return traced;
  }

 private:
  at::Tensor block_weights(const Block& block, const at::Tensor& like) const {
    const auto first = weights_.begin() + block.first;
    return at::tensor(std::vector<double>(first, first + block.count), at::kDouble).to(like.options()).unsqueeze(1);
  }

  at::Tensor finish(const at::Tensor& gradient, const Block& block, bool shares, Traced& traced) const {
    if (!projects_) return gradient;
    at::Tensor projected = sum_.projection.project(gradient, task_);
    const auto squares = [&](const at::Tensor& rows) {
      return rows.flatten(1).square().sum(1).view({block.count, block.samples}).sum(0);
    };
    if (shares) traced.all = squares(gradient), traced.felt = squares(projected);
    return projected;
  }

  const GradientSum& sum_;
  const ExplainTask& task_;
  const PointSet& set_;
  std::vector<double> weights_;
  bool projects_;
};

// What a block adds to the map, [samples, sample...]; `mean` of the gradients over all points, for their variance.
at::Tensor summed(Summand summand, const Traced& traced, std::int64_t points, const at::Tensor& mean) {
  const at::Tensor& gradients = traced.gradients;
  if (summand == Summand::kSquare) return gradients.square().sum(0) / static_cast<double>(points);
  if (summand == Summand::kVariance) return (gradients - mean).square().sum(0) / static_cast<double>(points);
  if (!traced.times.defined()) return gradients.sum(0);
  if (traced.times.size(0) == 1) return gradients.sum(0) * traced.times.select(0, 0);
  return (gradients * traced.times).sum(0);
}

// The map's scale in units of the gradients': squares have twice the logarithm.
double power(Summand summand) {
  return summand == Summand::kGradient ? 1 : 2;
}

// Sums over the blocks of some samples, all kept relative to the largest scale met so far.
class Total {
 public:
  Total(Summand summand, std::int64_t points) : summand_(summand), points_(points) {}

  const at::Tensor& scale() const { return scale_; }
  const at::Tensor& last_logits() const { return last_logits_; }

  void add(const Traced& traced) {
    if (summand_ == Summand::kVariance) {
      // The mean is not known yet. Moments around the first point are as good as the sum of squares, and exactly zero where all
      // gradients are the same.
      const at::Tensor gradients = traced.gradients.to(at::kDouble);
      origin_ = origin_.defined() ? origin_ * beside((scale_ - traced.scale).exp(), origin_.dim()) : gradients[0];
      const at::Tensor centred = gradients - origin_;
      grow(first_, centred.sum(0) / static_cast<double>(points_), 1, traced.scale);
      grow(sum_, centred.square().sum(0) / static_cast<double>(points_), 2, traced.scale);
    } else {
      grow(sum_, summed(summand_, traced, points_, {}), power(summand_), traced.scale);
    }
    if (traced.all.defined()) {
      grow(all_, traced.all, 2, traced.scale);
      grow(felt_, traced.felt, 2, traced.scale);
    }
    scale_ = traced.scale;
    last_logits_ = traced.logits.select(0, -1);
  }

  at::Tensor maps() const {
    return summand_ == Summand::kVariance ? (sum_ - first_.square()).clamp_min(0).to(scale_.scalar_type()) : sum_;
  }
  at::Tensor mean() const { return first_.defined() ? (origin_ + first_).to(scale_.scalar_type()) : at::Tensor(); }
  at::Tensor gauge_share() const {
    if (!all_.defined()) return {};
    return (1 - felt_ / all_.clamp_min(std::numeric_limits<double>::min())).clamp(0, 1);
  }

 private:
  void grow(at::Tensor& sum, const at::Tensor& more, double times, const at::Tensor& scale) const {
    sum = sum.defined() ? sum * beside(((scale_ - scale) * times).exp(), sum.dim()) + more : more;
  }

  Summand summand_;
  std::int64_t points_;
  at::Tensor scale_, sum_, origin_, first_, all_, felt_, last_logits_;
};

at::Tensor joined(const std::vector<at::Tensor>& parts) {
  if (parts.size() == 1 || !parts[0].defined()) return parts[0];
  return at::cat(parts);
}

struct Summed {
  Explanation explanation;  // maps with their signs
  at::Tensor mean;          // of the gradients, for a variance
  at::Tensor scale;         // of the gradients
};

// Logits at the inputs, where no point is the input.
at::Tensor input_logits(const ExplainTask& task, std::int64_t rows) {
  const at::NoGradGuard no_graph;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& some : task.samples.inputs.detach().split(rows)) parts.push_back(task_logits(task, some));
  return joined(parts);
}

// `use` sees every block's trace before it is dropped.
template <class Use>
Summed sum_blocks(const GradientSum& sum, const ExplainTask& task, const PointSet& set, const Tracer& tracer,
                  const std::vector<Block>& blocks, bool create_graph, const Use& use) {
  std::vector<at::Tensor> maps, means, scales, logits, shares;
  std::optional<Total> total;
  for (const Block& block : blocks) {
    if (block.first == 0) total.emplace(sum.summand, tracer.points());
    at::Tensor inputs = task.samples.inputs.slice(0, block.sample, block.sample + block.samples).detach();
    if (create_graph) inputs.requires_grad_();
    Traced traced = tracer.trace(inputs, block, total->scale(), /*fixed=*/false, create_graph);
    {
      const at::NoGradGuard no_graph;
      total->add(traced);
    }
    use(block, inputs, std::move(traced));
    if (block.first + block.count < tracer.points()) continue;
    maps.push_back(total->maps());
    means.push_back(total->mean());
    scales.push_back(total->scale());
    logits.push_back(total->last_logits());
    shares.push_back(total->gauge_share());
  }
  const at::Tensor scale = joined(scales);
  return {
      .explanation = {.maps = joined(maps),
                      .log_scale = scale * power(sum.summand),
                      .logits = set.ends_at_input() ? joined(logits) : input_logits(task, blocks[0].samples * blocks[0].count),
                      .gauge_share = joined(shares)},
      .mean = joined(means),
      .scale = scale};
}

// How a task's points are cut. One point a sample is the batch that was asked for: it goes as it is, and costs no measuring.
class Cutting {
 public:
  Cutting(const ExplainTask& task, std::int64_t points) : samples_(task.samples.inputs.size(0)), points_(points) {
    if (points > 1) rows_.emplace(task);
  }
  std::vector<Block> blocks(Pass pass) const { return cut(samples_, points_, rows_ ? rows_->most(pass) : samples_); }
  bool all_fit(Pass pass) const { return !rows_ || rows_->all_fit(samples_ * points_, pass); }

 private:
  std::int64_t samples_, points_;
  std::optional<BatchRows> rows_;
};

class SumLinearization final : public Linearization {
 public:
  SumLinearization(const GradientSum& sum, const ExplainTask& task, std::shared_ptr<const PointSet> set)
      : sum_(sum), task_(task), set_(std::move(set)), tracer_(sum_, task_, *set_) {
    const Cutting cutting(task_, tracer_.points());
    const std::vector<Block> blocks = cutting.blocks(Pass::kPullback);
    held_ = cutting.all_fit(Pass::kPullback);
    Summed summed;
    if (held_) {
      summed = sum_blocks(sum_, task_, *set_, tracer_, blocks, /*create_graph=*/true,
                          [&](const Block& block, at::Tensor inputs, Traced traced) {
                            parts_.push_back({block, std::move(inputs), std::move(traced)});
                          });
    } else {
      for (const Block& block : blocks) parts_.push_back({block, {}, {}});
      summed = sum_blocks(sum_, task_, *set_, tracer_, cutting.blocks(Pass::kGradient),
                          /*create_graph=*/false, [](auto&&...) {});
    }
    explanation_ = std::move(summed.explanation);
    scale_ = summed.scale;
    mean_ = summed.mean;
    if (sum_.magnitudes && !task_.keep_signs) {
      signs_ = explanation_.maps.sign();
      explanation_.maps = explanation_.maps.abs();
    }
  }

  at::Tensor pullback(const at::Tensor& cotangent) override {
    const at::AutoGradMode with_graph(true);
    const at::Tensor pulled = signs_.defined() ? cotangent * signs_ : cotangent;
    at::Tensor gradient = at::zeros_like(task_.samples.inputs);
    for (const Part& part : parts_) {
      const auto rows = [&](const at::Tensor& tensor) {
        return tensor.defined() ? tensor.slice(0, part.block.sample, part.block.sample + part.block.samples) : tensor;
      };
      at::Tensor inputs = part.inputs;
      Traced traced = part.traced;
      if (held_) {
        // Traced before the largest scale was known.
        traced.gradients = traced.gradients * beside((traced.scale - rows(scale_)).exp(), task_.samples.inputs.dim());
      } else {
        inputs = rows(task_.samples.inputs).detach().requires_grad_();
        traced = tracer_.trace(inputs, part.block, rows(scale_), /*fixed=*/true, /*create_graph=*/true);
      }
      const at::Tensor map = summed(sum_.summand, traced, tracer_.points(), rows(mean_));
      rows(gradient).add_(input_gradient(map, inputs, rows(pulled), /*create_graph=*/false, /*keep_graph=*/held_));
    }
    return gradient;
  }

 private:
  struct Part {
    Block block;
    at::Tensor inputs;
    Traced traced;
  };

  GradientSum sum_;
  ExplainTask task_;
  std::shared_ptr<const PointSet> set_;
  Tracer tracer_;
  bool held_ = false;
  std::vector<Part> parts_;
  at::Tensor scale_, mean_, signs_;
};

}  // namespace

Explanation GradientSum::attribute(const ExplainTask& task, const PointSet& set) const {
  const at::AutoGradMode with_graph(true);
  const Tracer tracer(*this, task, set);
  const std::vector<Block> blocks = Cutting(task, tracer.points()).blocks(Pass::kGradient);
  Explanation explanation = sum_blocks(*this, task, set, tracer, blocks, /*create_graph=*/false, [](auto&&...) {}).explanation;
  if (magnitudes && !task.keep_signs) explanation.maps = explanation.maps.abs();
  return explanation;
}

std::unique_ptr<Linearization> GradientSum::linearize(const ExplainTask& task, std::shared_ptr<const PointSet> set,
                                                      const std::string& name) const {
  if (!task.model.capabilities().double_backward) usage_error("{}: the model cannot be differentiated twice", name);
  const at::AutoGradMode with_graph(true);
  return std::make_unique<SumLinearization>(*this, task, std::move(set));
}

at::Tensor GradientSum::differentiable(const ExplainTask& task, const PointSet& set) const {
  HOLDFAST_CHECK(task.samples.inputs.requires_grad());
  const at::AutoGradMode with_graph(true);
  const Tracer tracer(*this, task, set);
  const Block all{0, task.samples.inputs.size(0), 0, tracer.points()};
  const Traced traced = tracer.trace(task.samples.inputs, all, {}, /*fixed=*/false, /*create_graph=*/true);
  const at::Tensor mean = summand == Summand::kVariance ? traced.gradients.mean(0) : at::Tensor();
  at::Tensor maps = summed(summand, traced, tracer.points(), mean);
  if (magnitudes && !task.keep_signs) maps = maps.abs();
  return maps * beside((traced.scale * power(summand)).exp(), maps.dim());
}

}  // namespace holdfast::explain

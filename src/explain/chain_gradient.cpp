#include "chain_gradient.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "chain_rows.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/linear_chain.h"
#include "softmax_rows.h"

namespace holdfast::explain {
namespace {

// What a batch's rows keep between the map and its pullback.
struct Kept {
  std::vector<float> p, r, log_p_c;  // [rows, classes], and [rows]
  at::Tensor passes;                 // of the chain, block after block
};

class ChainGradient {
 public:
  static std::optional<ChainGradient> of(const ExplainTask& task, const GradientMap& map) {
    const Network* network = task.model.network();
    if (network == nullptr) return std::nullopt;
    const at::Tensor inputs = task.samples.inputs.detach();
    if (!inputs.is_cpu() || !fits_layout(task.model, inputs)) return std::nullopt;
    std::optional<LinearChain> chain = LinearChain::of(*network, task.rule, inputs.contiguous());
    if (!chain || chain->classes() < 2) return std::nullopt;
    at::Tensor targets = task.samples.targets.contiguous();
    if (!targets.is_cpu() || targets.scalar_type() != at::kLong || targets.numel() != inputs.size(0)) return std::nullopt;
    const std::int64_t* classes = targets.const_data_ptr<std::int64_t>();
    const bool known = std::all_of(classes, classes + targets.numel(),
                                   [&](std::int64_t target) { return target >= 0 && target < chain->classes(); });
    if (!known) return std::nullopt;
    return ChainGradient(std::move(*chain), inputs.contiguous(), std::move(targets), task.samples.schema, map);
  }

  Explanation explain() {
    at::Tensor share = map_.project ? at::empty({rows_}, inputs_.options()) : at::Tensor();
    Explanation there = run(false, share.defined() ? share.mutable_data_ptr<float>() : nullptr);
    there.gauge_share = share;
    return there;
  }
  Explanation linearize() { return run(true, nullptr); }

  // The maps are those of linearize(): where they are magnitudes, their gradients' signs are needed.
  at::Tensor pullback(const at::Tensor& cotangent) {
    HOLDFAST_CHECK(cotangent.numel() == inputs_.numel());
    const at::Tensor along = cotangent.detach().to(inputs_.options()).contiguous();
    at::Tensor gradient = at::empty_like(inputs_);
    const std::int64_t n = chain_.inputs(), classes = chain_.classes(), most = chain_.block_rows();
    std::vector<float> direction(static_cast<std::size_t>(most * n)), change(static_cast<std::size_t>(most * classes)),
        back(change);
    const float* from = along.const_data_ptr<float>();
    const float* passes = kept_.passes.const_data_ptr<float>();
    for (std::int64_t begin = 0; begin < rows_; begin += most, passes += chain_.kept(true)) {
      const std::int64_t count = std::min(most, rows_ - begin);
      const float* way = from + begin * n;
      if (map_.magnitudes || map_.project) {
        std::copy(way, way + count * n, direction.begin());
        if (map_.magnitudes) take_signs(begin, count, direction.data());
        if (map_.project) project(count, direction.data(), nullptr);
        way = direction.data();
      }
      chain_.push(way, count, passes, change.data());
      if (map_.quantity == ExplainedQuantity::kLogit) {
        std::fill(back.begin(), back.end(), 0.0f);
      } else {
        const bool probability = map_.quantity == ExplainedQuantity::kProbability;
        softmax_rows::backward({count, classes}, targets() + begin, kept_.p.data() + begin * classes,
                               kept_.r.data() + begin * classes, change.data(), probability ? 1.0f : -1.0f, probability,
                               back.data());
      }
      chain_.pull_again(back.data(), count, passes, gradient.mutable_data_ptr<float>() + begin * n);
    }
    return gradient;
  }

 private:
  ChainGradient(LinearChain chain, at::Tensor inputs, at::Tensor targets, std::shared_ptr<const Schema> schema, GradientMap map)
      : chain_(std::move(chain)),
        inputs_(std::move(inputs)),
        targets_(std::move(targets)),
        schema_(std::move(schema)),
        map_(map),
        rows_(inputs_.size(0)) {}

  // Samples of another shape are refused by the model itself.
  static bool fits_layout(const Model& model, const at::Tensor& inputs) {
    const std::optional<Layout> layout = model.layout();
    if (!layout) return true;
    const std::vector<std::int64_t> shape = layout->sample_shape();
    return inputs.dim() >= 1 && inputs.sizes().slice(1) == at::IntArrayRef(shape);
  }

  const std::int64_t* targets() const { return targets_.const_data_ptr<std::int64_t>(); }

  Explanation run(bool twice, float* gauge_share) {
    const std::int64_t n = chain_.inputs(), classes = chain_.classes(), most = chain_.block_rows();
    Explanation there{.maps = at::empty_like(inputs_),
                      .log_scale = at::zeros({rows_}, inputs_.options()),
                      .logits = at::empty({rows_, classes}, inputs_.options())};
    const std::int64_t own = chain_.kept(twice), blocks = (rows_ + most - 1) / most;
    kept_.passes = at::empty({twice ? blocks * own : own}, inputs_.options());
    const std::int64_t held = twice ? rows_ : most;
    kept_.p.resize(static_cast<std::size_t>(held * classes));
    kept_.r.resize(kept_.p.size());
    kept_.log_p_c.resize(static_cast<std::size_t>(held));
    std::vector<float> cotangent(static_cast<std::size_t>(most * classes));
    if (twice && map_.magnitudes) signs_ = at::empty_like(inputs_);
    for (std::int64_t begin = 0; begin < rows_; begin += most) {
      const std::int64_t count = std::min(most, rows_ - begin), at = twice ? begin : 0;
      float* const passes = kept_.passes.mutable_data_ptr<float>() + (twice ? begin / most * own : 0);
      float* const logits = there.logits.mutable_data_ptr<float>() + begin * classes;
      float* const maps = there.maps.mutable_data_ptr<float>() + begin * n;
      chain_.forward(inputs_.const_data_ptr<float>() + begin * n, count, twice, passes, logits);
      read_logits(begin, count, at, logits, there.log_scale.mutable_data_ptr<float>() + begin, cotangent.data());
      chain_.pull(cotangent.data(), count, twice, passes, maps);
      if (map_.project) project(count, maps, gauge_share != nullptr ? gauge_share + begin : nullptr);
      if (!map_.magnitudes) continue;
      if (twice) std::copy(maps, maps + count * n, signs_.mutable_data_ptr<float>() + begin * n);
      std::transform(maps, maps + count * n, maps, [](float value) { return std::abs(value); });
    }
    return there;
  }

  // As logit_cotangent.h; `at`: where p and r of these rows are kept.
  void read_logits(std::int64_t begin, std::int64_t count, std::int64_t at, const float* logits, float* log_scale,
                   float* cotangent) {
    const std::int64_t classes = chain_.classes();
    const std::int64_t* own = targets() + begin;
    if (map_.quantity == ExplainedQuantity::kLogit) {
      std::fill(cotangent, cotangent + count * classes, 0.0f);
      for (std::int64_t row = 0; row < count; ++row) cotangent[row * classes + own[row]] = 1;
      return;
    }
    const softmax_rows::Shape shape{count, classes};
    const bool probability = map_.quantity == ExplainedQuantity::kProbability;
    float *const p = kept_.p.data() + at * classes, *const r = kept_.r.data() + at * classes,
                 *const log_p_c = kept_.log_p_c.data();
    softmax_rows::forward(shape, logits, own, p, r, log_p_c, log_scale);
    softmax_rows::cotangent(shape, own, r, probability ? 1.0f : -1.0f, cotangent);
    if (!probability) return;
    for (std::int64_t row = 0; row < count; ++row) log_scale[row] += log_p_c[row];
  }

  // project_groups(), row by row in place. `share`, unless null: of each row's squared gradient, what was taken away.
  void project(std::int64_t count, float* rows, float* share) const {
    const std::int64_t n = chain_.inputs();
    for (std::int64_t row = 0; row < count; ++row, rows += n) {
      float all = 0, removed = 0;
      for (std::int64_t i = 0; share != nullptr && i < n; ++i) all += rows[i] * rows[i];
      for (const Group& group : schema_->groups) {
        float sum = 0;
        for (const std::int64_t column : group.columns) sum += rows[column];
        const float mean = sum / static_cast<float>(group.columns.size());
        for (const std::int64_t column : group.columns) rows[column] -= mean;
        removed += sum * mean;
      }
      if (share != nullptr) share[row] = removed / all;
    }
  }

  void take_signs(std::int64_t begin, std::int64_t count, float* direction) const {
    const std::int64_t n = chain_.inputs();
    const float* map = signs_.const_data_ptr<float>() + begin * n;
    for (std::int64_t i = 0; i < count * n; ++i)
      direction[i] = map[i] > 0 ? direction[i] : map[i] < 0 ? -direction[i] : map[i] * direction[i];
  }

  LinearChain chain_;
  at::Tensor inputs_, targets_;
  std::shared_ptr<const Schema> schema_;
  GradientMap map_;
  std::int64_t rows_;
  Kept kept_;
  at::Tensor signs_;
};

class ChainLinearization final : public Linearization {
 public:
  explicit ChainLinearization(ChainGradient gradient) : gradient_(std::move(gradient)) { explanation_ = gradient_.linearize(); }
  at::Tensor pullback(const at::Tensor& cotangent) override { return gradient_.pullback(cotangent); }

 private:
  ChainGradient gradient_;
};

}  // namespace

std::optional<Explanation> explain_chain(const ExplainTask& task, const GradientMap& map) {
  if (std::optional<Explanation> there = explain_chain_rows(task, map)) return there;
  std::optional<ChainGradient> gradient = ChainGradient::of(task, map);
  if (!gradient) return std::nullopt;
  return gradient->explain();
}

std::unique_ptr<Linearization> linearize_chain(const ExplainTask& task, const GradientMap& map) {
  if (std::unique_ptr<Linearization> here = linearize_chain_rows(task, map)) return here;
  std::optional<ChainGradient> gradient = ChainGradient::of(task, map);
  if (!gradient) return nullptr;
  return std::make_unique<ChainLinearization>(std::move(*gradient));
}

}  // namespace holdfast::explain

#include "chain_rows.h"

#include <algorithm>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/core/row_kernels.h"
#include "holdfast/core/row_loops.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/linear_chain.h"

namespace holdfast::explain {
namespace chain_rows {

using namespace row_loops;
#include "chain_rows.kernel.h"

constexpr const char* kText =
#include "chain_rows.kernel.inc"
    ;

template <class Number>
void explain_on_cpu(const void* arguments, std::int64_t block, char* shared) {
  explain_block(*static_cast<const ChainRowsArguments<Number>*>(arguments), block, shared);
}
template <class Number>
void pull_on_cpu(const void* arguments, std::int64_t block, char* shared) {
  pull_block(*static_cast<const ChainRowsArguments<Number>*>(arguments), block, shared);
}

const RowKernel& explain_kernel() {
  static const RowKernel kernel({.text = kText,
                                 .block = "explain_block",
                                 .arguments = "ChainRowsArguments",
                                 .in_float = explain_on_cpu<float>,
                                 .in_double = explain_on_cpu<double>,
                                 .fuses_products = true});
  return kernel;
}
const RowKernel& pull_kernel() {
  static const RowKernel kernel({.text = kText,
                                 .block = "pull_block",
                                 .arguments = "ChainRowsArguments",
                                 .in_float = pull_on_cpu<float>,
                                 .in_double = pull_on_cpu<double>,
                                 .fuses_products = true});
  return kernel;
}

class ChainRows {
 public:
  static std::optional<ChainRows> of(const ExplainTask& task, const GradientMap& map) {
    const Network* network = task.model.network();
    const at::Tensor inputs = task.samples.inputs.detach();
    if (network == nullptr || map.project || inputs.dim() < 2 || inputs.numel() == 0) return std::nullopt;
    if (inputs.is_cpu() && !explain_kernel().runs_on(inputs)) return std::nullopt;
    if (const auto layout = task.model.layout()) {
      const std::vector<std::int64_t> shape = layout->sample_shape();
      if (inputs.sizes().slice(1) != at::IntArrayRef(shape)) return std::nullopt;
    }
    const at::Tensor& targets = task.samples.targets;
    if (targets.device() != inputs.device() || targets.scalar_type() != at::kLong || targets.numel() != inputs.size(0))
      return std::nullopt;
    std::optional<ChainParts> parts = ChainParts::of(*network, task.rule, inputs);
    if (!parts || parts->layers.size() > kMostChainLayers) return std::nullopt;
    ChainRows rows(std::move(*parts), inputs.contiguous(), targets.contiguous(), map);
    if (rows.classes_ < 2 || rows.shared() > RowKernel::kMostShared) return std::nullopt;
    if (!explain_kernel().runs_on(inputs) || !pull_kernel().runs_on(inputs)) return std::nullopt;
    return rows;
  }

  Explanation explain() { return run(/*twice=*/false); }
  Explanation linearize() { return run(/*twice=*/true); }

  // The maps are those of linearize().
  at::Tensor pullback(const at::Tensor& cotangent) const {
    HOLDFAST_CHECK(cotangent.numel() == inputs_.numel());
    const at::Tensor along = cotangent.detach().to(inputs_.options()).contiguous();
    const at::Tensor gradient = at::empty_like(inputs_);
    AT_DISPATCH_FLOATING_TYPES(inputs_.scalar_type(), "pull_chain_rows", [&] {
      ChainRowsArguments<scalar_t> a = arguments<scalar_t>();
      a.direction = along.const_data_ptr<scalar_t>();
      a.signs = signs_.defined() ? signs_.const_data_ptr<scalar_t>() : nullptr;
      a.gradient = gradient.mutable_data_ptr<scalar_t>();
      pull_kernel().run(inputs_, a, blocks(), shared());
    });
    return gradient;
  }

 private:
  ChainRows(ChainParts parts, at::Tensor inputs, at::Tensor targets, GradientMap map)
      : parts_(std::move(parts)), inputs_(std::move(inputs)), targets_(std::move(targets)), map_(map), rows_(inputs_.size(0)) {
    widest_ = inputs_.numel() / rows_;
    for (const ChainParts::Layer& layer : parts_.layers) {
      widest_ = std::max(widest_, layer.weight.size(0));
      classes_ = layer.weight.size(0);
      if (layer.bend != chain::Bend::kNone) hidden_ += layer.weight.size(0);
      bends_ |= layer.bend == chain::Bend::kSoftplus;
    }
  }

  std::int64_t blocks() const { return (rows_ + kBlockRows - 1) / kBlockRows; }
  std::int64_t shared() const {
    return kBlockRows * (2 * widest_ + 2 * hidden_) * static_cast<std::int64_t>(inputs_.element_size());
  }

  template <class Number>
  static Number* pointer(const at::Tensor& tensor) {
    return tensor.defined() ? tensor.mutable_data_ptr<Number>() : nullptr;
  }

  template <class Number>
  ChainRowsArguments<Number> arguments() const {
    ChainRowsArguments<Number> a{};
    for (const ChainParts::Layer& layer : parts_.layers) {
      a.layers[a.layer_count++] = {.weight = layer.weight.const_data_ptr<Number>(),
                                   .bias = layer.bias.defined() ? layer.bias.const_data_ptr<Number>() : nullptr,
                                   .ins = static_cast<int>(layer.weight.size(1)),
                                   .outs = static_cast<int>(layer.weight.size(0)),
                                   .bend = static_cast<int>(layer.bend),
                                   .slope = static_cast<Number>(layer.slope),
                                   .beta = static_cast<Number>(layer.beta)};
    }
    if (parts_.scale.defined()) {
      a.scale = parts_.scale.const_data_ptr<Number>();
      a.scale_step = parts_.scale.numel() > 1 ? 1 : 0;
      a.shift = parts_.shift.const_data_ptr<Number>();
      a.shift_step = parts_.shift.numel() > 1 ? 1 : 0;
    }
    a.points = inputs_.const_data_ptr<Number>();
    a.targets = targets_.const_data_ptr<std::int64_t>();
    a.slopes = pointer<Number>(slopes_);
    a.bends = pointer<Number>(curves_);
    a.p = pointer<Number>(p_);
    a.r = pointer<Number>(r_);
    a.rows = rows_;
    a.hidden = static_cast<int>(hidden_);
    a.widest = static_cast<int>(widest_);
    a.quantity = map_.quantity == ExplainedQuantity::kProbability ? kExplainProbability
                 : map_.quantity == ExplainedQuantity::kLogit     ? kExplainLogit
                                                                  : kExplainCrossEntropy;
    return a;
  }

  Explanation run(bool twice) {
    const auto options = inputs_.options();
    if (twice) {
      slopes_ = at::empty({hidden_, rows_}, options);
      if (bends_) curves_ = at::empty({hidden_, rows_}, options);
      p_ = at::empty({classes_, rows_}, options);
      r_ = at::empty({classes_, rows_}, options);
    }
    Explanation there{.maps = at::empty_like(inputs_),
                      .log_scale = at::empty({rows_}, options),
                      .logits = at::empty({rows_, classes_}, options)};
    AT_DISPATCH_FLOATING_TYPES(inputs_.scalar_type(), "explain_chain_rows", [&] {
      ChainRowsArguments<scalar_t> a = arguments<scalar_t>();
      a.logits = pointer<scalar_t>(there.logits);
      a.maps = pointer<scalar_t>(there.maps);
      a.log_scale = pointer<scalar_t>(there.log_scale);
      explain_kernel().run(inputs_, a, blocks(), shared());
    });
    if (!map_.magnitudes) return there;
    if (twice) signs_ = there.maps;
    there.maps = there.maps.abs();
    return there;
  }

  ChainParts parts_;
  at::Tensor inputs_, targets_;
  GradientMap map_;
  std::int64_t rows_, widest_ = 0, hidden_ = 0, classes_ = 0;
  bool bends_ = false;
  at::Tensor slopes_, curves_, p_, r_, signs_;
};

class RowsLinearization final : public Linearization {
 public:
  explicit RowsLinearization(ChainRows rows) : rows_(std::move(rows)) { explanation_ = rows_.linearize(); }
  at::Tensor pullback(const at::Tensor& cotangent) override { return rows_.pullback(cotangent); }

 private:
  ChainRows rows_;
};

}  // namespace chain_rows

std::optional<Explanation> explain_chain_rows(const ExplainTask& task, const GradientMap& map) {
  std::optional<chain_rows::ChainRows> rows = chain_rows::ChainRows::of(task, map);
  if (!rows) return std::nullopt;
  return rows->explain();
}

std::unique_ptr<Linearization> linearize_chain_rows(const ExplainTask& task, const GradientMap& map) {
  std::optional<chain_rows::ChainRows> rows = chain_rows::ChainRows::of(task, map);
  if (!rows) return nullptr;
  return std::make_unique<chain_rows::RowsLinearization>(std::move(*rows));
}

}  // namespace holdfast::explain

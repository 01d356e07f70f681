#include "holdfast/model/changed_rows.h"

#include "holdfast/core/error.h"
#include "loops.h"

namespace holdfast::model {

std::optional<ChangedRows> ChangedRows::of(const LinearChain& chain) {
  if (chain.layers_.size() != 2 || chain.classes() != 2) return std::nullopt;
  const chain::Layer &first = chain.layers_.front(), &last = chain.layers_.back();
  ChangedRows result;
  result.loops_ = chain.loops_;
  result.ins_ = first.ins;
  result.units_ = (first.outs + chain::kUnits - 1) / chain::kUnits * chain::kUnits;
  result.bend_ = first.bend;
  result.slope_ = first.slope;
  result.beta_ = first.beta;
  const auto units = static_cast<std::size_t>(result.units_), ins = static_cast<std::size_t>(first.ins);
  result.columns_.resize(ins * units);
  result.bias_.resize(units);
  result.output_.resize(units);
  result.scratch_.resize(2 * units);
  for (std::size_t u = 0; u < static_cast<std::size_t>(first.outs); ++u) {
    float bias = first.bias == nullptr ? 0.0f : first.bias[u];
    for (std::size_t i = 0; i < ins; ++i) {
      const float weight = first.weight[u * ins + i];
      if (!chain.shift_.empty()) bias += weight * chain.shift_[i];
      result.columns_[i * units + u] = chain.scale_.empty() ? weight : weight * chain.scale_[i];
    }
    result.bias_[u] = bias;
    result.output_[u] = last.weight[static_cast<std::size_t>(last.ins) + u] - last.weight[u];
  }
  return result;
}

chain::Shallow ChangedRows::network() const {
  return {.columns = columns_.data(),
          .bias = bias_.data(),
          .output = output_.data(),
          .ins = ins_,
          .units = units_,
          .bend = bend_,
          .slope = slope_,
          .beta = beta_};
}

void ChangedRows::differences(const float* row, const std::vector<Change>& changes, const std::vector<std::int64_t>& ends,
                              float* difference, float* slopes) {
  loops_->differ(network(), row, changes.data(), ends.data(), std::ssize(ends), scratch_.data(), difference, slopes);
}

void ChangedRows::gather(const float* cotangent, const float* slopes, std::int64_t count, float* hidden) const {
  loops_->gather(network(), cotangent, slopes, count, hidden);
}

float ChangedRows::to_input(const float* hidden, std::int64_t column) const {
  return loops_->to_input(network(), hidden, column);
}

}  // namespace holdfast::model

#include "feature_descent.h"

#include <limits>

#include "../feature_maps.h"
#include "holdfast/core/torch.h"
#include "slopes.h"

namespace holdfast::attack::gauntlet {

at::Tensor fold_features(const Layout& layout, const at::Tensor& maps) {
  const std::int64_t channels = layout.inputs() / layout.features();
  const at::Tensor magnitudes = maps.abs();
  if (!layout.is_plain()) {
    const at::Tensor own = at::tensor(layout.element_features(), at::kLong).to(maps.device());
    return at::zeros({maps.size(0), layout.features()}, maps.options())
        .index_add(1, own.clamp_min(0), magnitudes.flatten(1) * (own >= 0));
  }
  if (channels == 1) return magnitudes.reshape({maps.size(0), layout.features()});
  return magnitudes.reshape({maps.size(0), layout.sides, channels, layout.side_features()}).sum(2).flatten(1);
}

at::Tensor FeatureDescent::gradient(Linearization& here, const ExplainTask&) {
  const at::NoGradGuard no_graph;
  const at::Tensor& maps = here.at().maps;
  const bool one_element_each = layout_.is_plain() && layout_.inputs() == layout_.features();
  if (has_rows() && one_element_each && maps.is_cpu() && maps.scalar_type() == at::kFloat)
    return here.pullback(cotangent_by_rows(maps.contiguous()));
  const at::Tensor features = fold_features(layout_, maps);
  const at::Tensor largest = features.amax(1, /*keepdim=*/true).clamp_min(std::numeric_limits<float>::min());
  return here.pullback(maps.sign() * spread_features(layout_, slope(features / largest), maps));
}

at::Tensor FeatureDescent::cotangent_by_rows(const at::Tensor& maps) {
  at::Tensor cotangent = at::empty_like(maps);
  const auto n = static_cast<std::size_t>(layout_.features());
  std::vector<float> values(n);
  const float* map = maps.const_data_ptr<float>();
  float* slope = cotangent.mutable_data_ptr<float>();
  for (std::int64_t row = 0; row < maps.size(0); ++row, map += n, slope += n) {
    const std::span<const float> own(map, n);
    slopes::scale(own, values.data());
    slope_of_row(row, values, slope);
    slopes::take_signs(own, slope);
  }
  return cotangent;
}

void FeatureDescent::keep(const at::Tensor& rows) {
  for (at::Tensor* tensor : state()) {
    if (tensor->defined()) *tensor = tensor->index_select(0, rows.to(tensor->device()));
  }
}

}  // namespace holdfast::attack::gauntlet

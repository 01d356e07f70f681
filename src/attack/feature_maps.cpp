#include "feature_maps.h"

#include "holdfast/core/torch.h"

namespace holdfast::attack {

at::Tensor weigh_features(const Layout& layout, const at::Tensor& maps,
                          const std::function<void(std::span<const double> map, std::span<double> weights)>& weigh) {
  const at::Tensor plain = maps.detach().cpu().to(at::kDouble).contiguous();
  const std::int64_t rows = plain.size(0);
  const auto features = static_cast<std::size_t>(layout.features());
  std::vector<double> folded(static_cast<std::size_t>(rows) * features);
  fold_into(layout, std::span<const double>(plain.data_ptr<double>(), static_cast<std::size_t>(plain.numel())), folded);
  at::Tensor weights = at::zeros({rows, layout.features()}, at::kDouble);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    weigh(std::span<const double>(folded).subspan(row * features, features),
          std::span<double>(weights.data_ptr<double>() + row * features, features));
  }
  return weights;
}

at::Tensor spread_features(const Layout& layout, const at::Tensor& features, const at::Tensor& maps) {
  const std::int64_t rows = features.size(0), channels = layout.inputs() / layout.features();
  if (!layout.is_plain()) {
    const at::Tensor own = at::tensor(layout.element_features(), at::kLong).to(features.device());
    return (features.index_select(1, own.clamp_min(0)) * (own >= 0)).to(features.scalar_type()).reshape(maps.sizes());
  }
  return features.reshape({rows, layout.sides, 1, layout.side_features()})
      .expand({rows, layout.sides, channels, layout.side_features()})
      .reshape(maps.sizes());
}

at::Tensor per_row(const at::Tensor& numbers, std::int64_t dim) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(dim), 1);
  shape[0] = numbers.size(0);
  return numbers.view(shape);
}

}  // namespace holdfast::attack

#include "window_maximum.h"

#include <algorithm>
#include <vector>

#include "holdfast/core/torch.h"
#include "holdfast/metric/neighborhood.h"

namespace holdfast::attack::gauntlet {
namespace {

// Elements of the table of windows up to which it is used, where the layout is no grid.
constexpr std::int64_t kLargestTable = 4'000'000;

// The windows of all features as positions, [features, largest window]; short ones are filled up with the feature itself.
at::Tensor window_table(const Schema& schema, std::int64_t radius) {
  const Neighborhood neighborhood(schema, radius);
  const std::int64_t n = schema.layout.features();
  std::vector<std::vector<std::int64_t>> windows;
  std::size_t widest = 1;
  for (std::int64_t i = 0; i < n; ++i) {
    windows.push_back(neighborhood.window(i));
    widest = std::max(widest, windows.back().size());
    if (static_cast<std::int64_t>(widest) * n > kLargestTable) return {};
  }
  at::Tensor table = at::empty({n, static_cast<std::int64_t>(widest)}, at::kLong);
  auto entries = table.accessor<std::int64_t, 2>();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::vector<std::int64_t>& window = windows[static_cast<std::size_t>(i)];
    for (std::size_t j = 0; j < widest; ++j) entries[i][static_cast<std::int64_t>(j)] = j < window.size() ? window[j] : i;
  }
  return table;
}

}  // namespace

WindowMaximum::WindowMaximum(const Schema& schema, std::int64_t radius) : schema_(schema), radius_(radius) {
  if (radius > 0 && !is_grid()) table_ = window_table(schema, radius);
}

bool WindowMaximum::is_grid() const {
  return schema_.layout.kind == Layout::Kind::kGrid && schema_.neighbors.empty();
}

bool WindowMaximum::looks() const {
  return radius_ > 0 && (is_grid() || table_.defined());
}

std::pair<at::Tensor, at::Tensor> WindowMaximum::operator()(const at::Tensor& a) const {
  if (!looks()) return {a, at::arange(a.size(1), a.options().dtype(at::kLong)).expand_as(a)};
  const Layout& layout = schema_.layout;
  if (is_grid()) {
    const at::Tensor grid = a.view({-1, 1, layout.height, layout.width});
    const std::int64_t size = 2 * radius_ + 1;
    const auto [value, position] = at::max_pool2d_with_indices(grid, {size, size}, {1, 1}, {radius_, radius_});
    const at::Tensor side = at::arange(layout.sides, position.options()).view({1, -1, 1}) * layout.side_features();
    return {value.view_as(a), (position.view({a.size(0), layout.sides, -1}) + side).view(a.sizes())};
  }
  const at::Tensor table = table_.to(a.device());
  const at::Tensor gathered = a.index_select(1, table.flatten()).view({a.size(0), table.size(0), table.size(1)});
  const auto [value, slot] = gathered.max(2);
  return {value, table.unsqueeze(0).expand_as(gathered).gather(2, slot.unsqueeze(2)).squeeze(2)};
}

}  // namespace holdfast::attack::gauntlet

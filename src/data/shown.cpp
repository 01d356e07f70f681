#include "holdfast/data/shown.h"

#include "holdfast/core/torch.h"

namespace holdfast::data {

Layout shown_layout(const Layout& layout) {
  if (layout.kind == Layout::Kind::kTokens) return Layout::vector(layout.length);
  return layout.with_context(0);
}

Schema shown_schema(const Schema& schema) {
  if (schema.layout.context == 0) return schema;
  Schema shown = schema;
  shown.layout = shown_layout(schema.layout);
  if (!shown.features.empty()) shown.features.resize(static_cast<std::size_t>(shown.layout.inputs()));
  return shown;
}

at::Tensor without_context(const at::Tensor& rows, const Layout& layout) {
  if (layout.context == 0 || rows.flatten(1).size(1) != layout.inputs()) return rows;
  const std::int64_t dim = layout.is_sequence() ? 2 : 1;
  return rows.slice(dim, 0, rows.size(dim) - layout.context).contiguous();
}

at::Tensor shown_maps(const at::Tensor& maps, const Layout& layout) {
  const at::Tensor own = without_context(maps, layout);
  return layout.kind == Layout::Kind::kTokens && own.dim() == 3 ? own.abs().sum(2) : own;
}

}  // namespace holdfast::data

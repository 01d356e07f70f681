#include "parts.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::explain {

Parts::Parts(const Layout& layout, const Schema* groups, std::int64_t window, std::int64_t stride) : layout_(layout) {
  if (layout.kind == Layout::Kind::kGrid) {
    add_windows(window, stride);
  } else if (!layout.is_sequence()) {
    add_columns(groups);
  } else {
    add_features();
  }
}

at::Tensor Parts::masks(std::int64_t first, std::int64_t count) const {
  std::vector<std::int64_t> shape = layout_.sample_shape();
  shape.insert(shape.begin(), count);
  at::Tensor masks = at::zeros(shape, at::kBool);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto part = static_cast<std::size_t>(first + i);
    if (!windows_.empty()) {
      const Window& window = windows_[part];
      at::Tensor image = masks[i]
                             .view({layout_.sides, layout_.channels + layout_.context, layout_.height, layout_.width})
                             .select(0, window.side);
      image.slice(0, 0, layout_.channels)
          .slice(1, window.top, window.top + window.height)
          .slice(2, window.left, window.left + window.width)
          .fill_(true);
    } else {
      for (const std::int64_t column : columns_[part]) masks[i].view({-1})[column] = true;
    }
  }
  return masks;
}

// There are as many as reach the border; the last may reach over it and is cut.
void Parts::add_windows(std::int64_t window, std::int64_t stride) {
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

void Parts::add_columns(const Schema* groups) {
  std::vector<bool> grouped(static_cast<std::size_t>(layout_.inputs()), false);
  if (groups != nullptr) {
    for (const Group& group : groups->groups) {
      columns_.push_back(group.columns);
      for (const std::int64_t column : group.columns) grouped[static_cast<std::size_t>(column)] = true;
    }
  }
  for (std::int64_t column = 0; column < layout_.features(); ++column) {
    if (!grouped[static_cast<std::size_t>(column)]) columns_.push_back({column});
  }
}

// A step, a token or a column at a time, never context.
void Parts::add_features() {
  columns_.resize(static_cast<std::size_t>(layout_.features()));
  const std::vector<std::int64_t> feature = layout_.element_features();
  for (std::size_t i = 0; i < feature.size(); ++i) {
    if (feature[i] >= 0) columns_[static_cast<std::size_t>(feature[i])].push_back(static_cast<std::int64_t>(i));
  }
}

Layout layout_of(const ExplainTask& task) {
  return task.samples.schema != nullptr ? task.samples.schema->layout : Layout::guess(task.samples.inputs.sizes().slice(1));
}

void check_window(const Layout& layout, std::int64_t window, const std::string& explainer) {
  const std::int64_t longer = std::max(layout.height, layout.width);
  if (layout.kind == Layout::Kind::kGrid && window > longer) {
    usage_error("{}: the window has {} pixels, the image {} x {}; choose window <= {}", explainer, window, layout.height,
                layout.width, longer);
  }
}

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

Explanation scaled_explanation(const at::Tensor& map, const at::Tensor& inputs, const at::Tensor& logits) {
  const at::Tensor largest = map.flatten(1).abs().amax(1);
  const at::Tensor scale = at::where(largest > 0, largest, at::ones_like(largest));
  std::vector<std::int64_t> one_a_sample(static_cast<std::size_t>(map.dim()), 1);
  one_a_sample[0] = map.size(0);
  return {.maps = (map / scale.view(one_a_sample)).to(inputs.scalar_type()),
          .log_scale = scale.log().to(inputs.scalar_type()),
          .logits = logits};
}

}  // namespace holdfast::explain

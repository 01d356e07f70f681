// The parts of a sample that explainers without gradients replace: windows of an image, columns or one-hot groups of a table,
// edges of a graph, steps, tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/explain/explainer.h"

namespace holdfast::explain {

class Parts {
 public:
  // `groups`: the schema whose one-hot groups are replaced whole, or null. Windows of images have `window` pixels a side,
  // `stride` pixels apart.
  Parts(const Layout& layout, const Schema* groups, std::int64_t window, std::int64_t stride);

  std::int64_t count() const { return static_cast<std::int64_t>(columns_.size() + windows_.size()); }
  // [count, sample...]: what parts first .. first + count - 1 cover. Context is never covered.
  at::Tensor masks(std::int64_t first, std::int64_t count) const;

 private:
  struct Window {
    std::int64_t side, top, left, height, width;
  };
  void add_windows(std::int64_t window, std::int64_t stride);
  void add_columns(const Schema* groups);
  void add_features();

  const Layout layout_;
  std::vector<Window> windows_;
  std::vector<std::vector<std::int64_t>> columns_;
};

// The layout of a task's samples: the schema's, else what their shape says.
Layout layout_of(const ExplainTask& task);

// Throws kUsage when a window is larger than the image.
void check_window(const Layout& layout, std::int64_t window, const std::string& explainer);

// [B, sample...]: 1 but for the levels of one-hot groups that are not on.
at::Tensor levels_that_are_on(const at::Tensor& inputs, const Schema& schema);

// Maps in double precision as an explanation: each sample's largest magnitude is its scale.
Explanation scaled_explanation(const at::Tensor& map, const at::Tensor& inputs, const at::Tensor& logits);

}  // namespace holdfast::explain

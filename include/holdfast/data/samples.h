// The samples under study: the one bundle that explain, attack, measure and everything after them pass along.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/schema.h"

namespace holdfast::data {

struct Samples {
  at::Tensor inputs;        // [B, sample...]
  at::Tensor targets = {};  // [B] int64, the classes to explain; undefined: the predicted ones
  at::Tensor labels = {};   // [B] int64, the true classes; undefined where they are unknown
  at::Tensor ids = {};      // [B] int64, the position in the dataset: names each sample's random stream
  // What is known about the features; null only where an explainer is asked directly: the shape says everything then.
  std::shared_ptr<const Schema> schema = {};
  at::Tensor baseline = {};  // [sample...], for explainers whose baseline is `given`; undefined otherwise
  at::Tensor background =
      {};  // [N, sample...], rows of the data to compare with or to resample from; undefined where there are none

  std::int64_t count() const { return inputs.size(0); }
  const Layout& layout() const { return schema->layout; }

  // The samples begin <= i < end; baseline, background and schema are shared.
  Samples slice(std::int64_t begin, std::int64_t end) const;
  // The samples at these positions, [n] int64.
  Samples select(const at::Tensor& positions) const;
  // Moves the same samples elsewhere: `points` has the shape of the inputs.
  Samples moved_to(const at::Tensor& points) const;
  // Inputs, baseline and background on the device and in the type of `like`, contiguous; targets on its device.
  Samples to(const at::TensorOptions& like) const;
};

// Which elements of a sample are context, [sample...] bool; undefined where the layout has none.
at::Tensor context_elements(const Layout& layout);
// The rows [B, sample...] with the context of others of that shape, or of one broadcast over them.
at::Tensor with_context_of(const at::Tensor& others, const at::Tensor& rows, const Layout& layout);

// A shared copy, for Samples::schema.
std::shared_ptr<const Schema> share_schema(const Schema& schema);

// Rows of a dataset with labels, positions and background; no targets.
Samples samples_of(const Dataset& dataset, const std::vector<std::int64_t>& rows);

// Rows that explainers may compare with and measures may resample from: the first kBackgroundRows of the training part that are
// finite, of all rows where there is no training part. They do not depend on the samples that are studied. Undefined where
// none is finite.
inline constexpr std::int64_t kBackgroundRows = 256;
at::Tensor background_rows(const Dataset& dataset);

}  // namespace holdfast::data

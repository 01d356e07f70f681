// A model and an explainer over many samples, cut into tiles that run side by side.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "holdfast/core/progress.h"
#include "holdfast/core/stages.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::experiment {

struct TileOptions {
  std::int64_t size = 0;  // 0: default_tile(layout, device)
  int threads = 0;        // 0: one for each core
};

// Samples in a tile when nothing was asked for: a property of the layout alone, so that results do not depend on the machine.
std::int64_t default_tile(const Layout& layout, const at::Device& device);

// Logits of many inputs, tile by tile: [B, classes].
at::Tensor predict(const Model& model, const at::Tensor& inputs, const Layout& layout, const TileOptions& tiles);

// As Explanation, for all samples, on the CPU; delta and gauge_share undefined where the explainer has none.
struct ExplainedBatch {
  at::Tensor maps, log_scale, logits, targets, delta, gauge_share;
};

// The task's samples may lie on any device and may lack targets. Throws kUsage or kInput before any work when the parts do not
// fit each other. `first_logits`, [classes], are those of the first sample by itself, where they are known: that saves a pass.
ExplainedBatch explain_all(const Explainer& explainer, const ExplainTask& task, const TileOptions& tiles,
                           Progress* progress = nullptr, const at::Tensor& first_logits = {});

// The maps in true units: maps * exp(log_scale).
at::Tensor scaled_maps(const at::Tensor& maps, const at::Tensor& log_scale);

}  // namespace holdfast::experiment

// A model and an explainer over many samples, cut into tiles that run side by side.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "holdfast/core/progress.h"
#include "holdfast/explain/explainer.h"

namespace holdfast {

struct TileOptions {
  std::int64_t size = 0;  // 0: default_tile(layout)
  int threads = 0;        // 0: one for each core
};

// Samples in a tile when nothing was asked for: a property of the layout alone, so that results do not depend on the machine.
std::int64_t default_tile(const Layout& layout);

// Logits of many inputs, tile by tile: [B, classes].
at::Tensor predict(const Model& model, const at::Tensor& inputs, const Layout& layout, const TileOptions& tiles);

struct ExplainJob {
  const Model& model;
  const Explainer& explainer;
  const Schema& schema;
  at::Tensor inputs;      // [B, sample...], any device
  at::Tensor targets;     // [B] int64; undefined: the predicted classes
  at::Tensor sample_ids;  // [B] int64
  std::uint64_t seed = 0;
  at::Tensor baseline = {}, background = {};  // for explainers that need them: see ExplainTask
  at::Tensor first_logits = {};               // [classes] of the first sample by itself, where they are known: saves a pass
};

// As Explanation, for all samples, on the CPU; delta and gauge_share undefined where the explainer has none.
struct ExplainedBatch {
  at::Tensor maps, log_scale, logits, targets, delta, gauge_share;
};

// Throws, before any work, what the explainer has to say against the job.
void check_explain(const ExplainJob& job);

// Throws kUsage or kInput before any work when the parts do not fit each other.
ExplainedBatch explain_all(const ExplainJob& job, const TileOptions& tiles, Progress* progress = nullptr);

// The maps in true units: maps * exp(log_scale).
at::Tensor scaled_maps(const at::Tensor& maps, const at::Tensor& log_scale);

}  // namespace holdfast

// A cell: one model, explainer, attack, metric and threat model over many samples, cut into tiles that run side by side.
// `attack` runs one cell, `audit` a grid of them. A finished tile can be kept in a TileStore, from which an interrupted
// cell continues.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/attack.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/progress.h"
#include "holdfast/experiment/explain_all.h"
#include "holdfast/metric/levels.h"

namespace holdfast {

struct CellTask {
  const Model& model;
  const Explainer& explainer;
  const Attack& attack;
  const Metric& metric;
  const ThreatModel& threat;
  const Schema& schema;
  at::Tensor inputs;      // [B, sample...] on the CPU
  at::Tensor targets;     // [B] int64; undefined: the predicted classes
  at::Tensor sample_ids;  // [B] int64
  std::uint64_t seed = 0;
  at::Tensor baseline = {}, background = {};  // for explainers that need them: see ExplainTask
  at::Tensor start = {};                      // [B, sample...]: see AttackTask
  Select select = Select::kWorst;
  bool trace = false;
};

struct CellResult {
  at::Tensor targets;                      // [B] int64
  at::Tensor perturbed;                    // [B, sample...]
  at::Tensor original_maps, moved_maps;    // [B, sample...]
  at::Tensor original_scale, moved_scale;  // [B]: log of the maps' scale
  at::Tensor logits, moved_logits;         // [B, classes]
  std::vector<SampleOutcome> samples;
  std::vector<ComponentCost> components;  // of an ensemble, all tiles together
  Verification verified;                  // of run_cell's results
};

// Where finished tiles lie: one safetensors file each in `folder`.
class TileStore {
 public:
  explicit TileStore(std::string folder);
  bool has(std::int64_t tile) const;
  CellResult load(std::int64_t tile) const;
  void save(std::int64_t tile, const CellResult& result) const;  // atomic

 private:
  std::string path(std::int64_t tile) const;
  std::string folder_;
};

// Throws kUsage before any work when the parts do not fit each other. Every result was verified.
void check_cell(const CellTask& task);
CellResult run_cell(const CellTask& task, const TileOptions& tiles, Progress* progress = nullptr,
                    const TileStore* store = nullptr);

// Folded maps for metrics.
MapBatch fold_maps(const at::Tensor& maps, const Schema& schema);

}  // namespace holdfast

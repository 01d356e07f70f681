// One attack on the explanations of many samples, cut into tiles that run side by side. A finished tile can be kept in a
// TileStore, from which an interrupted cell continues. Grids of cells are in grid.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/attack.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/communicator.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/stages.h"
#include "holdfast/experiment/explain_all.h"
#include "holdfast/metric/levels.h"

namespace holdfast::experiment {

struct CellResult {
  at::Tensor targets;                          // [B] int64
  at::Tensor perturbed;                        // [B, sample...]
  at::Tensor original_maps, perturbed_maps;    // [B, sample...]
  at::Tensor original_scale, perturbed_scale;  // [B]: log of the maps' scale
  at::Tensor logits, perturbed_logits;         // [B, classes]
  std::vector<SampleOutcome> samples;
  std::vector<ComponentCost> components;  // what the parts of an ensemble cost, all tiles together
  Verification verified;
};

// Where finished tiles lie: one safetensors file each in `folder`.
class TileStore {
 public:
  explicit TileStore(std::string folder);
  bool has(std::int64_t tile) const;
  CellResult load(std::int64_t tile) const;
  void save(std::int64_t tile, const CellResult& result) const;  // atomic
  const std::string& folder() const { return folder_; }

 private:
  std::string path(std::int64_t tile) const;
  std::string folder_;
};

// Throws kUsage or kInput before any work when the parts do not fit each other: the one check of an attack on its way. The task's
// samples may lie on any device and may lack targets.
void check_cell(const Attack& attack, const AttackTask& task);
// Runs a task that was checked. Every result is verified, those of stored tiles too.
CellResult run_cell(const Attack& attack, const AttackTask& task, const TileOptions& tiles, Progress* progress = nullptr,
                    const TileStore* store = nullptr);

// The same with the help of other ranks, which all call this with one store. Rank 0 gets the whole result. The others get what
// the next cell may need of it, the perturbed inputs and the outcomes: verifying and judging is rank 0's.
CellResult run_cell_together(Communicator& ranks, const Attack& attack, const AttackTask& task, const TileOptions& tiles,
                             Progress* progress, const TileStore& store);

// Folded maps for metrics; they refer to the schema of the inputs, or to its table where maps have one value for each feature of
// it.
MapBatch fold_maps(const at::Tensor& maps, const Schema& of_inputs);

}  // namespace holdfast::experiment

// Many points around each sample, explained in batches that fit the task's memory.
//
//     for (const PointBlock& block : point_blocks(samples, per_sample, rows_that_fit(task))) {
//       throw_if_interrupted();
//       const at::Tensor inputs = ...;                                                        // [block.rows(), sample...]
//       const Explanation there = task.explainer.attribute(task_at(task, block, inputs));     // sample after sample
//     }
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/explain/batch_rows.h"
#include "holdfast/measure/measure.h"

namespace holdfast::measure {

// Points `point` .. `point + points - 1` of samples `sample` .. `sample + samples - 1`: all points of several samples, or some
// points of one.
struct PointBlock {
  std::int64_t sample = 0, samples = 0;
  std::int64_t point = 0, points = 0;
  std::int64_t rows() const { return samples * points; }
};

// All of them, in order, no more than `rows` in a block.
std::vector<PointBlock> point_blocks(std::int64_t samples, std::int64_t per_sample, std::int64_t rows);

// Samples that one pass may take (batch_rows.h).
std::int64_t rows_that_fit(const MeasureTask& task, Pass pass = Pass::kGradient);

// The explainer's task at the points of a block: `inputs` [rows, sample...], sample after sample; class and random stream of a
// point are those of its sample, so that an explainer with noise meets the same noise at every point.
ExplainTask task_at(const MeasureTask& task, const PointBlock& block, const at::Tensor& inputs);

// The block's rows of a tensor with one row a sample, each repeated for its points.
at::Tensor repeated(const at::Tensor& per_sample, const PointBlock& block);

// The task of samples begin <= b < end alone.
MeasureTask part_of(const MeasureTask& task, std::int64_t begin, std::int64_t end);
// Adds the part's values [B] double to a column.
void append(std::vector<double>& column, const at::Tensor& values);

}  // namespace holdfast::measure

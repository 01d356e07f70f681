#include "points.h"

#include <algorithm>

#include "holdfast/core/torch.h"
#include "holdfast/explain/batch_rows.h"

namespace holdfast::measure {
namespace {

// A dense layer's weights may be larger than all activations of a few rows, and are read once a batch: with 128 rows instead
// of 16 the passes of a network with 3 million weights take a seventh less.
constexpr std::int64_t kRowsForWeights = 128;

}  // namespace

std::vector<PointBlock> point_blocks(std::int64_t samples, std::int64_t per_sample, std::int64_t rows) {
  std::vector<PointBlock> blocks;
  if (samples == 0 || per_sample == 0) return blocks;
  const std::int64_t whole = even_part(samples, std::max<std::int64_t>(1, rows / per_sample));  // samples in a block
  const std::int64_t some = even_part(per_sample, rows);
  for (std::int64_t sample = 0; sample < samples; sample += whole) {
    for (std::int64_t point = 0; point < per_sample; point += some) {
      blocks.push_back({.sample = sample,
                        .samples = std::min(whole, samples - sample),
                        .point = point,
                        .points = std::min(some, per_sample - point)});
    }
  }
  return blocks;
}

std::int64_t rows_that_fit(const MeasureTask& task, Pass pass) {
  if (task.samples.inputs.size(0) == 0) return 1;
  const BatchRows rows(task.explain_task());
  return rows.all_fit(kRowsForWeights, pass) ? std::max(kRowsForWeights, rows.most(pass)) : rows.most(pass);
}

ExplainTask task_at(const MeasureTask& task, const PointBlock& block, const at::Tensor& inputs) {
  ExplainTask points = task.explain_task();
  points.samples.inputs = inputs;
  points.samples.targets = repeated(task.samples.targets, block);
  points.samples.ids = repeated(task.samples.ids, block);
  return points;
}

at::Tensor repeated(const at::Tensor& per_sample, const PointBlock& block) {
  return per_sample.slice(0, block.sample, block.sample + block.samples).repeat_interleave(block.points, 0);
}

MeasureTask part_of(const MeasureTask& task, std::int64_t begin, std::int64_t end) {
  MeasureTask part = task;
  part.samples = task.samples.slice(begin, end);
  if (part.endpoints.defined()) part.endpoints = part.endpoints.slice(0, begin, end);
  return part;
}

void append(std::vector<double>& column, const at::Tensor& values) {
  const at::Tensor plain = values.contiguous();
  column.insert(column.end(), plain.const_data_ptr<double>(), plain.const_data_ptr<double>() + plain.numel());
}

}  // namespace holdfast::measure

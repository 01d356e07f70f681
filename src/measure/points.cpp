#include "points.h"

#include <algorithm>

#include "holdfast/core/torch.h"

namespace holdfast {
namespace {

// Small batches pay for dispatch, large ones for memory: on small networks the best batch is one whose values stay in cache.
constexpr std::int64_t kCacheBytes = std::int64_t{4} << 20;
constexpr std::int64_t kEnoughRows = 256;  // dispatch is paid for by then
// What a pass holds beside the values themselves: their gradients, and work space.
constexpr std::int64_t kPassFactor = 3;
// Values of an opaque model beside its input, in inputs: nothing is known of them.
constexpr std::int64_t kOpaqueFactor = 64;

// Bytes of all values of one sample's forward pass.
std::int64_t bytes_of_values(const MeasureTask& task) {
  const at::Tensor sample = task.inputs.slice(0, 0, 1);
  const Network* network = task.model.network();
  if (network == nullptr) return kOpaqueFactor * static_cast<std::int64_t>(sample.nbytes());
  const at::NoGradGuard no_graph;
  std::int64_t bytes = 0;
  for (const at::Tensor& value : network->run(sample, {.keep_values = true}).values)
    bytes += static_cast<std::int64_t>(value.nbytes());
  return bytes;
}

}  // namespace

std::vector<PointBlock> point_blocks(std::int64_t samples, std::int64_t per_sample, std::int64_t rows) {
  std::vector<PointBlock> blocks;
  const std::int64_t whole = std::max<std::int64_t>(1, rows / std::max<std::int64_t>(1, per_sample));  // samples in a block
  for (std::int64_t sample = 0; sample < samples; sample += whole) {
    for (std::int64_t point = 0; point < per_sample; point += rows) {
      blocks.push_back({.sample = sample,
                        .samples = std::min(whole, samples - sample),
                        .point = point,
                        .points = std::min(rows, per_sample - point)});
    }
  }
  return blocks;
}

std::int64_t rows_that_fit(const MeasureTask& task) {
  if (task.inputs.size(0) == 0) return 1;
  const std::int64_t bytes = std::max<std::int64_t>(1, kPassFactor * bytes_of_values(task));
  const std::int64_t fast = std::max(kEnoughRows, kCacheBytes / bytes);
  return std::clamp<std::int64_t>(task.memory / bytes, 1, fast);
}

ExplainTask task_at(const MeasureTask& task, const PointBlock& block, const at::Tensor& inputs) {
  ExplainTask points = task.explain_task();
  points.inputs = inputs;
  points.targets = repeated(task.targets, block);
  points.sample_ids = repeated(task.sample_ids, block);
  return points;
}

at::Tensor repeated(const at::Tensor& per_sample, const PointBlock& block) {
  return per_sample.slice(0, block.sample, block.sample + block.samples).repeat_interleave(block.points, 0);
}

}  // namespace holdfast

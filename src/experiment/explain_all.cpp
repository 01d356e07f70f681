#include "holdfast/experiment/explain_all.h"

#include <array>

#include "holdfast/core/large_tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/finite.h"
#include "model_tiles.h"

namespace holdfast::experiment {
namespace {

ExplainedBatch explain_tile(const Explainer& explainer, const ExplainTask& task, const Tile& tile) {
  ExplainTask part = task;
  part.samples = samples_for(task.samples, tile, task.model);
  const Explanation explanation = explainer.attribute(part);
  check_finite(explanation, part.samples.ids, task.model, explainer);
  const auto kept = [](const at::Tensor& tensor) { return tensor.defined() ? to_cpu(tensor) : tensor; };
  return {.maps = to_cpu(explanation.maps),
          .log_scale = to_cpu(explanation.log_scale),
          .logits = to_cpu(explanation.logits),
          .targets = to_cpu(part.samples.targets),
          .delta = kept(explanation.delta),
          .gauge_share = kept(explanation.gauge_share)};
}

// Holds the first sample's logits by itself against those it has in its tile.
void check_first(const ExplainTask& task, const at::Tensor& known, const ExplainedBatch& part, const Tile& tile) {
  const at::NoGradGuard no_grad;
  const at::Tensor batch =
      inputs_for(task.samples.inputs, {.begin = 0, .end = std::min<std::int64_t>(tile.size(), 3)}, task.model);
  const at::Tensor alone = to_cpu(known.defined() ? known : task.model.logits(batch.slice(0, 0, 1))[0]);
  check_same_logits(task.model, alone, part.logits[0]);
  check_among_extremes(task.model, batch, task.samples.layout(), alone);
}

constexpr std::array kFields{&ExplainedBatch::maps,    &ExplainedBatch::log_scale, &ExplainedBatch::logits,
                             &ExplainedBatch::targets, &ExplainedBatch::delta,     &ExplainedBatch::gauge_share};

}  // namespace

// Small samples are limited by dispatch and want large tiles; large ones by memory. A GPU is filled by more of them. What does
// not fit its memory is cut further inside a tile, so that a tile does not depend on the card.
std::int64_t default_tile(const Layout& layout, const at::Device& device) {
  const std::int64_t inputs = layout.inputs();
  if (inputs <= 512) return device.is_cpu() ? 256 : 4096;
  if (inputs <= 8192) return device.is_cpu() ? 32 : 1024;
  return device.is_cpu() ? 8 : 64;
}

at::Tensor predict(const Model& model, const at::Tensor& inputs, const Layout& layout, const TileOptions& tiles) {
  const std::int64_t samples = inputs.size(0);
  const std::int64_t size = tile_size(tiles, layout, model);
  JoinedRows logits;
  run_tiles(
      model, samples, size, tiles.threads,
      [&](const Tile& tile) {
        const at::NoGradGuard no_grad;
        return to_cpu(model.logits(inputs_for(inputs, tile, model)));
      },
      [&](const Tile& tile, const at::Tensor& part) { logits.add(part, tile.begin, samples); });
  return logits.whole();
}

ExplainedBatch explain_all(const Explainer& explainer, const ExplainTask& task, const TileOptions& tiles, Progress* progress,
                           const at::Tensor& first_logits) {
  explainer.check_task(task);
  ExplainTask whole_task = task;
  whole_task.samples = prepared(task.samples, task.model);
  const std::int64_t samples = task.samples.count();
  const std::int64_t size = tile_size(tiles, task.samples.layout(), task.model);
  std::array<JoinedRows, kFields.size()> joined;
  run_tiles(
      task.model, samples, size, tiles.threads,
      [&](const Tile& tile) {
        ExplainedBatch part = explain_tile(explainer, whole_task, tile);
        if (tile.begin == 0) check_first(whole_task, first_logits, part, tile);
        return part;
      },
      [&](const Tile& tile, const ExplainedBatch& part) {
        for (std::size_t i = 0; i < kFields.size(); ++i) joined[i].add(part.*kFields[i], tile.begin, samples);
        if (progress != nullptr) progress->advance(tile.size());
      });
  ExplainedBatch whole;
  for (std::size_t i = 0; i < kFields.size(); ++i) whole.*kFields[i] = joined[i].whole();
  check_maps(whole.maps, explainer.name(), task.model.name());
  return whole;
}

at::Tensor scaled_maps(const at::Tensor& maps, const at::Tensor& log_scale) {
  return large_change(maps, maps.scalar_type(), [&](std::int64_t begin, const at::Tensor& part) {
    std::vector<std::int64_t> one_a_sample(static_cast<std::size_t>(maps.dim()), 1);
    one_a_sample[0] = part.size(0);
    return part * log_scale.slice(0, begin, begin + part.size(0)).to(maps.scalar_type()).exp().view(one_a_sample);
  });
}

}  // namespace holdfast::experiment

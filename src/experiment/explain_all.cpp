#include "holdfast/experiment/explain_all.h"

#include "holdfast/core/torch.h"
#include "holdfast/explain/finite.h"
#include "model_tiles.h"

namespace holdfast {
namespace {

// Logits of the first sample by itself, for holding the first tile's against.
at::Tensor first_alone(const ExplainJob& job) {
  if (job.first_logits.defined()) return to_cpu(job.first_logits);
  const at::NoGradGuard no_grad;
  return to_cpu(job.model.logits(inputs_for(job.inputs, {.begin = 0, .end = 1}, job.model))[0]);
}

ExplainedBatch explain_tile(const ExplainJob& job, const Reference& reference, const Tile& tile) {
  const at::Tensor inputs = inputs_for(job.inputs, tile, job.model);
  const at::Tensor classes = targets_for(job.targets, tile, job.model, inputs);
  const Explanation explanation = job.explainer.attribute({.model = job.model,
                                                           .inputs = inputs,
                                                           .targets = classes,
                                                           .sample_ids = rows(job.sample_ids, tile),
                                                           .seed = job.seed,
                                                           .schema = &job.schema,
                                                           .baseline = reference.baseline,
                                                           .background = reference.background});
  check_finite(explanation, rows(job.sample_ids, tile), job.model, job.explainer);
  const auto kept = [](const at::Tensor& tensor) { return tensor.defined() ? to_cpu(tensor) : tensor; };
  return {.maps = to_cpu(explanation.maps),
          .log_scale = to_cpu(explanation.log_scale),
          .logits = to_cpu(explanation.logits),
          .targets = to_cpu(classes),
          .delta = kept(explanation.delta),
          .gauge_share = kept(explanation.gauge_share)};
}

void check_first(const ExplainJob& job, const at::Tensor& alone, const ExplainedBatch& part, const Tile& tile) {
  check_same_logits(job.model, alone, part.logits[0]);
  check_among_extremes(job.model, inputs_for(job.inputs, {.begin = 0, .end = std::min<std::int64_t>(tile.size(), 3)}, job.model),
                       alone);
}

ExplainedBatch join(const std::vector<ExplainedBatch>& parts) {
  if (parts.size() == 1) return parts[0];
  ExplainedBatch whole;
  for (at::Tensor ExplainedBatch::*field : {&ExplainedBatch::maps, &ExplainedBatch::log_scale, &ExplainedBatch::logits,
                                            &ExplainedBatch::targets, &ExplainedBatch::delta, &ExplainedBatch::gauge_share}) {
    std::vector<at::Tensor> tensors;
    for (const ExplainedBatch& part : parts) {
      if ((part.*field).defined()) tensors.push_back(part.*field);
    }
    if (!tensors.empty()) whole.*field = at::cat(tensors);
  }
  return whole;
}

}  // namespace

std::int64_t default_tile(const Layout& layout) {
  // Small samples are limited by dispatch and want large tiles; large ones by memory.
  const std::int64_t inputs = layout.inputs();
  if (inputs <= 512) return 256;
  if (inputs <= 8192) return 32;
  return 8;
}

at::Tensor predict(const Model& model, const at::Tensor& inputs, const Layout& layout, const TileOptions& tiles) {
  const std::int64_t samples = inputs.size(0);
  const std::int64_t size = tile_size(tiles, layout);
  std::vector<at::Tensor> parts(static_cast<std::size_t>(tile_count(samples, size)));
  for_each_tile(samples, size, threads_for(model, tiles.threads), [&](const Tile& tile) {
    const at::NoGradGuard no_grad;
    parts[static_cast<std::size_t>(tile.index)] = to_cpu(model.logits(inputs_for(inputs, tile, model)));
  });
  return at::cat(parts);
}

void check_explain(const ExplainJob& job) {
  job.explainer.check_task({.model = job.model,
                            .inputs = job.inputs,
                            .targets = job.targets,
                            .sample_ids = job.sample_ids,
                            .schema = &job.schema,
                            .baseline = job.baseline,
                            .background = job.background});
}

ExplainedBatch explain_all(const ExplainJob& job, const TileOptions& tiles, Progress* progress) {
  check_explain(job);
  const Reference reference = reference_for(job.baseline, job.background, job.model);
  const at::Tensor alone = first_alone(job);
  const std::int64_t samples = job.inputs.size(0);
  const std::int64_t size = tile_size(tiles, job.schema.layout);
  std::vector<ExplainedBatch> parts(static_cast<std::size_t>(tile_count(samples, size)));
  for_each_tile(samples, size, threads_for(job.model, tiles.threads), [&](const Tile& tile) {
    ExplainedBatch& part = parts[static_cast<std::size_t>(tile.index)];
    part = explain_tile(job, reference, tile);
    if (tile.index == 0) check_first(job, alone, part, tile);
    if (progress != nullptr) progress->advance(tile.size());
  });
  ExplainedBatch whole = join(parts);
  check_maps(whole.maps, job.explainer.name(), job.model.name());
  return whole;
}

at::Tensor scaled_maps(const at::Tensor& maps, const at::Tensor& log_scale) {
  std::vector<std::int64_t> one_a_sample(static_cast<std::size_t>(maps.dim()), 1);
  one_a_sample[0] = maps.size(0);
  return maps * log_scale.to(maps.scalar_type()).exp().view(one_a_sample);
}

}  // namespace holdfast

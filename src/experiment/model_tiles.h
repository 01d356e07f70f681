// Tiles of samples on their way to a model and back.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/tiles.h"
#include "holdfast/experiment/explain_all.h"

namespace holdfast::experiment {

// Side by side only when the model allows it; a device runs one tile at a time.
int threads_for(const Model& model, int threads);
std::int64_t tile_size(const TileOptions& tiles, const Layout& layout);

at::Tensor rows(const at::Tensor& tensor, const Tile& tile);
// On the model's device, in its precision.
at::Tensor inputs_for(const at::Tensor& inputs, const Tile& tile, const Model& model);
// Baseline and background on the model's device and in its precision: done once, before samples are cut into tiles.
Samples prepared(Samples samples, const Model& model);
// The samples of a tile for the model: on its device, in its precision, with the predicted classes where no targets are given.
Samples samples_for(const Samples& samples, const Tile& tile, const Model& model);

// For checks before any work: which class is explained decides nothing there, and predicting it would be work.
Samples with_any_targets(Samples samples);

at::Tensor to_cpu(const at::Tensor& tensor);

// A map that is zero everywhere ranks nothing and cannot be moved: as a result it would pass for perfectly robust. Warns of
// some, throws kInput when all are.
void check_maps(const at::Tensor& maps, const std::string& explainer, const std::string& model);

// What a sample gets must not depend on the samples beside it, or results would depend on the tile. Throws kInput.
void check_samples_apart(const Model& model, const at::Tensor& inputs);
// A model that branches on its whole batch treats samples that are alike in the same way: this puts the first of `batch`, whose
// logits are given, among rows that hold nothing but the batch's smallest and largest value. A Network does to each sample what
// it does to one; others are tried, unless they were before (Capabilities::known_apart).
void check_among_extremes(const Model& model, const at::Tensor& batch, const at::Tensor& logits);
// Compares logits that are there already: a sample's own, [classes], by itself and among others.
void check_same_logits(const Model& model, const at::Tensor& alone, const at::Tensor& among_others);

}  // namespace holdfast::experiment

// How far a prediction moves when some features of a sample are replaced by those of another row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/data/samples.h"
#include "holdfast/model/model.h"

namespace holdfast::measure {

// Elements of samples that belong to features of their folded maps: one list of features a sample; a feature takes all its
// channels along, and a column of a one-hot group the whole group. [B, sample...] bool.
at::Tensor elements_of_features(const Schema& schema, std::span<const std::vector<std::int64_t>> features);

// |p_c(x) - p_c(x with `elements` taken from `rows`)|, c the sample's target: [B] double. `clean` is p_c(x), [B] double; `rows`
// and `elements` have the inputs' shape.
at::Tensor effect_of_replacing(const Model& model, const Samples& samples, const at::Tensor& clean, const at::Tensor& elements,
                               const at::Tensor& rows);

// Probability of each sample's target, [B] double.
at::Tensor target_probability(const Model& model, const at::Tensor& inputs, const at::Tensor& targets);

}  // namespace holdfast::measure

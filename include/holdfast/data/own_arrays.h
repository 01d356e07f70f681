// Datasets of arrays that lie in memory: what `npy` makes of its files, and what Python gives.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/splits.h"

namespace holdfast::data {

// `inputs` [N, sample...] float32; `labels` [N] classes from 0; classes without names are called by their numbers. Split by class
// with the seed. Not validated, and without name and digest.
Dataset dataset_of_arrays(const at::Tensor& inputs, const at::Tensor& labels, Schema schema, std::uint64_t seed,
                          const SplitShares& shares);

}  // namespace holdfast::data

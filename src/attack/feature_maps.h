// Between maps of input elements and maps of features, for objectives that weigh features.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <ATen/core/Tensor.h>

#include "holdfast/data/layout.h"

namespace holdfast::attack {

// Weights of the features of each row's folded map, [rows, features] in double on the CPU; `weigh(map, weights)` fills a row
// that is zero.
at::Tensor weigh_features(const Layout& layout, const at::Tensor& maps,
                          const std::function<void(std::span<const double> map, std::span<double> weights)>& weigh);

// One number a feature for each row, [rows, features], as one number an input element, of the shape of `maps`: the channels of
// a pixel share its number. Type and device stay those of `features`.
at::Tensor spread_features(const Layout& layout, const at::Tensor& features, const at::Tensor& maps);

// The same number of each row for all its elements: [rows] -> [rows, 1, ...], to be used with a tensor of rank `dim`.
at::Tensor per_row(const at::Tensor& numbers, std::int64_t dim);

}  // namespace holdfast::attack

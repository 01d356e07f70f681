// Numbers that stand in the file: weights, sizes and options.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "holdfast/core/raw_array.h"

namespace holdfast::model::onnx {

using Integers = std::vector<std::int64_t>;

bool is_floating(ElementType type);
// Whole numbers of 32 or 64 bits; nothing of another type.
std::optional<Integers> integers_in(const RawArray& array);
// The one number of an array; nothing where there are several, or of another type.
std::optional<double> only_number(const RawArray& array);
bool all_finite_floats(const RawArray& array);

}  // namespace holdfast::model::onnx

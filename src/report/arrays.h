// Numbers out of the arrays of a run folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/raw_array.h"
#include "holdfast/data/schema.h"

namespace holdfast::report {

// Float32 and float64 arrays as doubles. Throws kInput for other types.
std::vector<double> to_doubles(const RawArray& array, const std::string& where);

// The sample-th of the arrays stacked in `array` [W, ...].
RawArray slice_of(const RawArray& array, std::int64_t sample);

// "39": an input's value with four digits, in the units from before the encoding where the schema knows them.
std::string value_text(const Schema& schema, std::int64_t feature, double value);

}  // namespace holdfast::report

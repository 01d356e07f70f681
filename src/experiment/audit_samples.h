// What an audit writes of single samples: the lines of samples.csv, and the arrays of the worst few of a row.
#pragma once

#include <cstdint>
#include <string>

#include "audit_grid.h"
#include "holdfast/metric/levels.h"

namespace holdfast {

std::string samples_header();
std::string sample_lines(const GridRow& row, const CellResult& result, const Levels& levels);

// A row with its maps folded.
struct FoldedRow {
  const GridRow& row;
  const CellResult& result;
  const Assessment& assessment;
  const MapBatch &clean, &moved;
};

// Inputs and maps of the `count` worst samples, worst first, and samples.json that describes them.
void write_arrays(const std::string& folder, const FoldedRow& folded, std::int64_t count);

}  // namespace holdfast

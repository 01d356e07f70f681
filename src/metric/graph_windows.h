// Windows of the edges of a complete graph: an edge's window is every edge that shares a node with it.
#pragma once

#include <cstdint>
#include <span>

namespace holdfast {

// sums[(i, j)] = values over all edges at node i or node j, of one side. Each sum adds its values in ascending order of the
// edges, as grid_windows.h does and for its reason.
void edge_window_sums(std::span<const double> values, std::int64_t nodes, std::span<double> sums);

}  // namespace holdfast

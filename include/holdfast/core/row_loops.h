// What files *.kernel.h are written in, as plain C++ on the CPU (row_kernels.h).
#pragma once

#include <cmath>
#include <cstdint>

#define HOLDFAST_EACH(i, count) for (int i = 0; i < static_cast<int>(count); ++i)
#define HOLDFAST_WAIT

namespace holdfast::row_loops {

using Index = std::int64_t;
using std::cos, std::exp, std::fabs, std::isfinite, std::isinf, std::log, std::log1p, std::nextafter, std::pow, std::sin,
    std::sqrt;

}  // namespace holdfast::row_loops

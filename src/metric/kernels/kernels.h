// The inner loops of selection and of bit sets. Each exists for every x86-64 and for AVX2, chosen once at run time; both give
// the same results, and tests hold them against plain loops.
#pragma once

#include <cstdint>
#include <span>

namespace holdfast::metric::kernels {

// The upper halves of the values' bits, which order values >= 0 as the values themselves do up to a millionth, and the largest of
// them. Values are not empty; those below 0 have halves below 0.
std::int32_t upper_halves(std::span<const double> values, std::int32_t* halves);
// Counts the values above `limit`.
std::int64_t count_above(std::span<const std::int32_t> halves, std::int32_t limit);
std::int64_t count_above(std::span<const double> values, double limit);
// Copies the values whose halves are in (low, high] to `kept`, in order, and says how many there are; `kept` has room for them.
std::int64_t keep_between(std::span<const double> values, const std::int32_t* halves, std::int32_t low, std::int32_t high,
                          double* kept);
// For rows of `width` values each: bit i of a row's words is whether its value i is >= limit. (width + 63) / 64 words a row.
void bits_at_least(std::span<const double> values, std::size_t width, double limit, std::uint64_t* words);
// Counts the bits that are set in both.
std::int64_t count_bits(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);
// The number of pairs in the wrong order, values[i] > values[j] for i < j; all with all. At most 32768 values.
std::int64_t count_exchanges(std::span<const std::int16_t> values);

// Whether the machine takes the AVX2 versions.
bool has_avx2();
// The versions for every machine: the reference of the others.
namespace plain {
std::int32_t upper_halves(std::span<const double> values, std::int32_t* halves);
std::int64_t count_above(std::span<const std::int32_t> halves, std::int32_t limit);
std::int64_t count_above(std::span<const double> values, double limit);
std::int64_t keep_between(std::span<const double> values, const std::int32_t* halves, std::int32_t low, std::int32_t high,
                          double* kept);
void bits_at_least(std::span<const double> values, std::size_t width, double limit, std::uint64_t* words);
std::int64_t count_bits(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);
std::int64_t count_exchanges(std::span<const std::int16_t> values);
}  // namespace plain

}  // namespace holdfast::metric::kernels

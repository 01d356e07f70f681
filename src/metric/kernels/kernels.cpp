#include "kernels.h"

#include <algorithm>
#include <bit>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#define HOLDFAST_AVX2 __attribute__((target("avx2,popcnt,bmi")))
#endif

namespace holdfast::metric::kernels {

namespace plain {

std::int32_t upper_halves(std::span<const double> values, std::int32_t* halves) {
  std::int32_t largest = std::numeric_limits<std::int32_t>::min();
  for (std::size_t i = 0; i < values.size(); ++i) {
    halves[i] = static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(values[i]) >> 32);
    largest = std::max(largest, halves[i]);
  }
  return largest;
}

std::int64_t count_above(std::span<const std::int32_t> values, std::int32_t limit) {
  std::int64_t count = 0;
  for (const std::int32_t value : values) count += value > limit;
  return count;
}

std::int64_t count_above(std::span<const double> values, double limit) {
  std::int64_t count = 0;
  for (const double value : values) count += value > limit;
  return count;
}

std::int64_t keep_between(std::span<const double> values, const std::int32_t* halves, std::int32_t low, std::int32_t high,
                          double* kept) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (halves[i] > low && halves[i] <= high) kept[count++] = values[i];
  }
  return count;
}

void bits_at_least(std::span<const double> values, std::size_t width, double limit, std::uint64_t* words) {
  for (const double* row = values.data(); row < values.data() + values.size(); row += width) {
    for (std::size_t start = 0; start < width; start += 64, ++words) {
      const std::size_t count = std::min<std::size_t>(64, width - start);
      std::uint64_t word = 0;
      for (std::size_t i = 0; i < count; ++i) word |= std::uint64_t{row[start + i] >= limit} << i;
      *words = word;
    }
  }
}

std::int64_t count_bits(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += std::popcount(a[i] & b[i]);
  return count;
}

std::int64_t count_exchanges(std::span<const std::int16_t> values) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i + 1; j < values.size(); ++j) count += values[i] > values[j];
  }
  return count;
}

}  // namespace plain

#if defined(__x86_64__)
namespace fast {

HOLDFAST_AVX2 std::int32_t upper_halves(std::span<const double> values, std::int32_t* halves) {
  __m256i largest = _mm256_set1_epi32(std::numeric_limits<std::int32_t>::min());
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    const __m256 a = _mm256_castpd_ps(_mm256_loadu_pd(values.data() + i));
    const __m256 b = _mm256_castpd_ps(_mm256_loadu_pd(values.data() + i + 4));
    const __m256i mixed = _mm256_castps_si256(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
    const __m256i upper = _mm256_permute4x64_epi64(mixed, _MM_SHUFFLE(3, 1, 2, 0));  // in order again
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(halves + i), upper);
    largest = _mm256_max_epi32(largest, upper);
  }
  alignas(32) std::int32_t parts[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), largest);
  std::int32_t result = *std::max_element(parts, parts + 8);
  if (i < values.size()) result = std::max(result, plain::upper_halves(values.subspan(i), halves + i));
  return result;
}

HOLDFAST_AVX2 std::int64_t count_above(std::span<const std::int32_t> values, std::int32_t limit) {
  const __m256i limits = _mm256_set1_epi32(limit);
  __m256i a = _mm256_setzero_si256(), b = a;  // a comparison that holds is -1
  std::size_t i = 0;
  for (; i + 16 <= values.size(); i += 16) {
    const auto* from = reinterpret_cast<const __m256i*>(values.data() + i);
    a = _mm256_sub_epi32(a, _mm256_cmpgt_epi32(_mm256_loadu_si256(from), limits));
    b = _mm256_sub_epi32(b, _mm256_cmpgt_epi32(_mm256_loadu_si256(from + 1), limits));
  }
  alignas(32) std::int32_t parts[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), _mm256_add_epi32(a, b));
  std::int64_t count = 0;
  for (const std::int32_t part : parts) count += part;
  return count + plain::count_above(values.subspan(i), limit);
}

HOLDFAST_AVX2 std::int64_t count_above(std::span<const double> values, double limit) {
  const __m256d limits = _mm256_set1_pd(limit);
  __m256i a = _mm256_setzero_si256(), b = a;  // a comparison that holds is -1
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    a = _mm256_sub_epi64(a, _mm256_castpd_si256(_mm256_cmp_pd(_mm256_loadu_pd(values.data() + i), limits, _CMP_GT_OQ)));
    b = _mm256_sub_epi64(b, _mm256_castpd_si256(_mm256_cmp_pd(_mm256_loadu_pd(values.data() + i + 4), limits, _CMP_GT_OQ)));
  }
  if (i + 4 <= values.size()) {
    a = _mm256_sub_epi64(a, _mm256_castpd_si256(_mm256_cmp_pd(_mm256_loadu_pd(values.data() + i), limits, _CMP_GT_OQ)));
    i += 4;
  }
  alignas(32) std::int64_t parts[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), _mm256_add_epi64(a, b));
  std::int64_t count = parts[0] + parts[1] + parts[2] + parts[3];
  for (; i < values.size(); ++i) count += values[i] > limit;
  return count;
}

// Says which of eight halves are in (low, high], as bits.
HOLDFAST_AVX2 inline unsigned inside_bits(const std::int32_t* halves, __m256i low, __m256i high) {
  const __m256i eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves));
  const __m256i inside = _mm256_andnot_si256(_mm256_cmpgt_epi32(eight, high), _mm256_cmpgt_epi32(eight, low));
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(inside)));
}

HOLDFAST_AVX2 std::int64_t keep_between(std::span<const double> values, const std::int32_t* halves, std::int32_t low,
                                        std::int32_t high, double* kept) {
  const __m256i lows = _mm256_set1_epi32(low), highs = _mm256_set1_epi32(high);
  std::int64_t count = 0;
  std::size_t i = 0;
  for (; i + 16 <= values.size(); i += 16) {
    unsigned set = inside_bits(halves + i, lows, highs) | inside_bits(halves + i + 8, lows, highs) << 8;
    for (; set != 0; set &= set - 1) kept[count++] = values[i + static_cast<std::size_t>(std::countr_zero(set))];
  }
  return count + plain::keep_between(values.subspan(i), halves + i, low, high, kept + count);
}

HOLDFAST_AVX2 void bits_at_least(std::span<const double> values, std::size_t width, double limit, std::uint64_t* words) {
  const __m256d limits = _mm256_set1_pd(limit);
  for (const double* row = values.data(); row < values.data() + values.size(); row += width) {
    for (std::size_t start = 0; start < width; start += 64, ++words) {
      const std::size_t count = std::min<std::size_t>(64, width - start);
      std::uint64_t word = 0;
      std::size_t i = 0;
      for (; i + 4 <= count; i += 4) {
        const int bits = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(row + start + i), limits, _CMP_GE_OQ));
        word |= static_cast<std::uint64_t>(bits) << i;
      }
      for (; i < count; ++i) word |= std::uint64_t{row[start + i] >= limit} << i;
      *words = word;
    }
  }
}

HOLDFAST_AVX2 std::int64_t count_bits(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += std::popcount(a[i] & b[i]);
  return count;
}

HOLDFAST_AVX2 std::int64_t count_exchanges(std::span<const std::int16_t> values) {
  constexpr std::size_t kRows = 4;  // compared with each vector of others, so that it is loaded once for all of them
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i total = _mm256_setzero_si256();
  std::int64_t count = 0;
  std::size_t i = 0;
  for (; i + kRows <= values.size(); i += kRows) {
    __m256i own[kRows], below[kRows];  // -1 for each that is below; 16 bits last for the sizes allowed
    for (std::size_t row = 0; row < kRows; ++row) {
      own[row] = _mm256_set1_epi16(values[i + row]);
      below[row] = _mm256_setzero_si256();
    }
    std::size_t j = i + kRows;
    for (; j + 16 <= values.size(); j += 16) {
      const __m256i others = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values.data() + j));
      for (std::size_t row = 0; row < kRows; ++row)
        below[row] = _mm256_add_epi16(below[row], _mm256_cmpgt_epi16(own[row], others));
    }
    for (std::size_t row = 0; row < kRows; ++row) total = _mm256_sub_epi32(total, _mm256_madd_epi16(below[row], ones));
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t other = row + 1; other < kRows; ++other) count += values[i + row] > values[i + other];
      for (std::size_t other = j; other < values.size(); ++other) count += values[i + row] > values[other];
    }
  }
  alignas(32) std::int32_t parts[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), total);
  for (const std::int32_t part : parts) count += part;
  return count + plain::count_exchanges(values.subspan(i));
}

}  // namespace fast

const bool kFast = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi");
#else
namespace fast = plain;
const bool kFast = false;
#endif

bool has_avx2() {
  return kFast;
}

std::int32_t upper_halves(std::span<const double> values, std::int32_t* halves) {
  return kFast ? fast::upper_halves(values, halves) : plain::upper_halves(values, halves);
}
std::int64_t count_above(std::span<const std::int32_t> values, std::int32_t limit) {
  return kFast ? fast::count_above(values, limit) : plain::count_above(values, limit);
}
std::int64_t count_above(std::span<const double> values, double limit) {
  return kFast ? fast::count_above(values, limit) : plain::count_above(values, limit);
}
std::int64_t keep_between(std::span<const double> values, const std::int32_t* halves, std::int32_t low, std::int32_t high,
                          double* kept) {
  return kFast ? fast::keep_between(values, halves, low, high, kept) : plain::keep_between(values, halves, low, high, kept);
}
void bits_at_least(std::span<const double> values, std::size_t width, double limit, std::uint64_t* words) {
  kFast ? fast::bits_at_least(values, width, limit, words) : plain::bits_at_least(values, width, limit, words);
}
std::int64_t count_bits(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  return kFast ? fast::count_bits(a, b) : plain::count_bits(a, b);
}
std::int64_t count_exchanges(std::span<const std::int16_t> values) {
  return kFast ? fast::count_exchanges(values) : plain::count_exchanges(values);
}

}  // namespace holdfast::metric::kernels

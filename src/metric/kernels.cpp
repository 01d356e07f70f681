#include "kernels.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#define HOLDFAST_AVX2 __attribute__((target("avx2,popcnt,bmi")))
#endif

namespace holdfast::kernels {

namespace plain {

double largest(std::span<const double> values) {
  // Four at a time: one running maximum would wait for itself at every step.
  double parts[4] = {values[0], values[0], values[0], values[0]};
  std::size_t i = 0;
  for (; i + 4 <= values.size(); i += 4) {
    for (std::size_t j = 0; j < 4; ++j) parts[j] = values[i + j] > parts[j] ? values[i + j] : parts[j];
  }
  for (; i < values.size(); ++i) parts[0] = std::max(parts[0], values[i]);
  return std::max(std::max(parts[0], parts[1]), std::max(parts[2], parts[3]));
}

std::int64_t count_above(std::span<const double> values, double limit) {
  std::int64_t count = 0;
  for (const double value : values) count += value > limit;
  return count;
}

std::int64_t keep_between(std::span<const double> values, double low, double high, double* kept) {
  std::int64_t count = 0;
  for (const double value : values) {
    if (value > low && value <= high) kept[count++] = value;
  }
  return count;
}

void bits_at_least(std::span<const double> values, double limit, std::uint64_t* words) {
  for (std::size_t start = 0; start < values.size(); start += 64, ++words) {
    const std::size_t count = std::min<std::size_t>(64, values.size() - start);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < count; ++i) word |= std::uint64_t{values[start + i] >= limit} << i;
    *words = word;
  }
}

std::int64_t count_bits(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += std::popcount(a[i] & b[i]);
  return count;
}

}  // namespace plain

#if defined(__x86_64__)
namespace fast {

HOLDFAST_AVX2 double largest(std::span<const double> values) {
  if (values.size() < 8) return plain::largest(values);
  __m256d a = _mm256_loadu_pd(values.data()), b = a;
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    a = _mm256_max_pd(a, _mm256_loadu_pd(values.data() + i));
    b = _mm256_max_pd(b, _mm256_loadu_pd(values.data() + i + 4));
  }
  alignas(32) double parts[4];
  _mm256_store_pd(parts, _mm256_max_pd(a, b));
  double result = *std::max_element(parts, parts + 4);
  for (; i < values.size(); ++i) result = std::max(result, values[i]);
  return result;
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

// For each set of four lanes, as bits, the permutation (of halves of doubles) that moves them to the front.
struct PackTable {
  alignas(32) std::int32_t lanes[16][8] = {};
  constexpr PackTable() {
    for (int set = 0; set < 16; ++set) {
      int next = 0;
      for (int lane = 0; lane < 4; ++lane) {
        if ((set >> lane & 1) == 0) continue;
        lanes[set][next++] = 2 * lane;
        lanes[set][next++] = 2 * lane + 1;
      }
    }
  }
};
constexpr PackTable kPack;

HOLDFAST_AVX2 std::int64_t keep_between(std::span<const double> values, double low, double high, double* kept) {
  const __m256d lows = _mm256_set1_pd(low), highs = _mm256_set1_pd(high);
  std::int64_t count = 0;
  std::size_t i = 0;
  for (; i + 4 <= values.size(); i += 4) {
    const __m256d four = _mm256_loadu_pd(values.data() + i);
    const __m256d inside = _mm256_and_pd(_mm256_cmp_pd(four, lows, _CMP_GT_OQ), _mm256_cmp_pd(four, highs, _CMP_LE_OQ));
    const int set = _mm256_movemask_pd(inside);
    const __m256i order = _mm256_load_si256(reinterpret_cast<const __m256i*>(kPack.lanes[set]));
    // Branches on the set would be mispredicted at every candidate.
    _mm256_storeu_pd(kept + count, _mm256_castsi256_pd(_mm256_permutevar8x32_epi32(_mm256_castpd_si256(four), order)));
    count += std::popcount(static_cast<unsigned>(set));
  }
  return count + plain::keep_between(values.subspan(i), low, high, kept + count);
}

HOLDFAST_AVX2 void bits_at_least(std::span<const double> values, double limit, std::uint64_t* words) {
  const __m256d limits = _mm256_set1_pd(limit);
  for (std::size_t start = 0; start < values.size(); start += 64, ++words) {
    const std::size_t count = std::min<std::size_t>(64, values.size() - start);
    const double* from = values.data() + start;
    std::uint64_t word = 0;
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4) {
      const int bits = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(from + i), limits, _CMP_GE_OQ));
      word |= static_cast<std::uint64_t>(bits) << i;
    }
    for (; i < count; ++i) word |= std::uint64_t{from[i] >= limit} << i;
    *words = word;
  }
}

HOLDFAST_AVX2 std::int64_t count_bits(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += std::popcount(a[i] & b[i]);
  return count;
}

}  // namespace fast

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi");
  return has;
}
#else
namespace fast = plain;
bool has_avx2() {
  return false;
}
#endif

double largest(std::span<const double> values) {
  return has_avx2() ? fast::largest(values) : plain::largest(values);
}
std::int64_t count_above(std::span<const double> values, double limit) {
  return has_avx2() ? fast::count_above(values, limit) : plain::count_above(values, limit);
}
std::int64_t keep_between(std::span<const double> values, double low, double high, double* kept) {
  return has_avx2() ? fast::keep_between(values, low, high, kept) : plain::keep_between(values, low, high, kept);
}
void bits_at_least(std::span<const double> values, double limit, std::uint64_t* words) {
  has_avx2() ? fast::bits_at_least(values, limit, words) : plain::bits_at_least(values, limit, words);
}
std::int64_t count_bits(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  return has_avx2() ? fast::count_bits(a, b) : plain::count_bits(a, b);
}

}  // namespace holdfast::kernels

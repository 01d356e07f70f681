// The loops of a chain for AVX2 and FMA.
#include "loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#include "transpose.h"

namespace holdfast::model::chain {

struct Avx2 {
  using Vector = __m256;
  static constexpr std::int64_t kWidth = 8, kTile = 6;
  static HOLDFAST_INLINE Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static HOLDFAST_INLINE void store(Vector a, float* to) { _mm256_storeu_ps(to, a); }
  static HOLDFAST_INLINE Vector all(float a) { return _mm256_set1_ps(a); }
  static HOLDFAST_INLINE Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static HOLDFAST_INLINE Vector subtract(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
  static HOLDFAST_INLINE Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static HOLDFAST_INLINE Vector divide(Vector a, Vector b) { return _mm256_div_ps(a, b); }
  static HOLDFAST_INLINE Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  // The first where it is a number that is greater, or lesser; else the second.
  static HOLDFAST_INLINE Vector greater(Vector a, Vector b) { return _mm256_max_ps(b, a); }
  static HOLDFAST_INLINE Vector lesser(Vector a, Vector b) { return _mm256_min_ps(b, a); }
  static HOLDFAST_INLINE Vector round(Vector a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // x > 0, or no number: a; else b.
  static HOLDFAST_INLINE Vector where_positive(Vector x, Vector a, Vector b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NLE_UQ));
  }
  // 2^n for a whole number n from -126 to 127.
  static HOLDFAST_INLINE Vector power_of_two(Vector n) {
    const __m256i bits = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23));
  }
  static HOLDFAST_INLINE void transpose(const float* from, std::int64_t from_row, float* to, std::int64_t to_row) {
    transpose_square(from, from_row, to, to_row);
  }
};

}  // namespace holdfast::model::chain

#include "lane_loops.h"

namespace holdfast::model::chain {

const Loops* avx2_loops() {
  static constexpr Loops kLoops = LaneLoops<Avx2>::table();
  return &kLoops;
}

}  // namespace holdfast::model::chain
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else
namespace holdfast::model::chain {
const Loops* avx2_loops() {
  return nullptr;
}
}  // namespace holdfast::model::chain
#endif

// The loops of a chain for AVX-512.
#include "loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")
#endif
#include "transpose.h"

namespace holdfast::model::chain {

// GCC 12 takes the plain forms of some operations for uses of values that were never set; with a mask that is full they are the
// same.
struct Avx512 {
  using Vector = __m512;
  static constexpr __mmask16 kFull = 0xffff;
  static constexpr std::int64_t kWidth = 16, kTile = 8;
  static HOLDFAST_INLINE Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static HOLDFAST_INLINE void store(Vector a, float* to) { _mm512_storeu_ps(to, a); }
  static HOLDFAST_INLINE Vector all(float a) { return _mm512_set1_ps(a); }
  static HOLDFAST_INLINE Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static HOLDFAST_INLINE Vector subtract(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  static HOLDFAST_INLINE Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static HOLDFAST_INLINE Vector divide(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  static HOLDFAST_INLINE Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  // The first where it is a number that is greater, or lesser; else the second.
  static HOLDFAST_INLINE Vector greater(Vector a, Vector b) { return _mm512_maskz_max_ps(kFull, b, a); }
  static HOLDFAST_INLINE Vector lesser(Vector a, Vector b) { return _mm512_maskz_min_ps(kFull, b, a); }
  static HOLDFAST_INLINE Vector round(Vector a) {
    return _mm512_maskz_roundscale_ps(kFull, a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // x > 0, or no number: a; else b.
  static HOLDFAST_INLINE Vector where_positive(Vector x, Vector a, Vector b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLE_UQ), b, a);
  }
  // 2^n for a whole number n from -126 to 127.
  static HOLDFAST_INLINE Vector power_of_two(Vector n) {
    const __m512i bits = _mm512_add_epi32(_mm512_maskz_cvtps_epi32(kFull, n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kFull, bits, 23));
  }
  static HOLDFAST_INLINE void transpose(const float* from, std::int64_t from_row, float* to, std::int64_t to_row) {
    transpose_square(from, from_row, to, to_row);
  }
};

}  // namespace holdfast::model::chain

#include "lane_loops.h"

namespace holdfast::model::chain {

const Loops* avx512_loops() {
  static constexpr Loops kLoops = LaneLoops<Avx512>::table();
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
const Loops* avx512_loops() {
  return nullptr;
}
}  // namespace holdfast::model::chain
#endif

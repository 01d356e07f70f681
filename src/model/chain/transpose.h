// Squares of eight rows of eight numbers, turned over. For files compiled for AVX2 or more; see lane_loops.h.
#pragma once

#include <cstdint>

#include <immintrin.h>

#define HOLDFAST_INLINE inline __attribute__((always_inline))

namespace holdfast::model::chain {

static HOLDFAST_INLINE void transpose_square(const float* from, std::int64_t from_row, float* to, std::int64_t to_row) {
  __m256 r[8], s[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_row);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    s[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m256 *a = s + 4 * i, *b = a + 2;
    r[4 * i] = _mm256_shuffle_ps(a[0], b[0], _MM_SHUFFLE(1, 0, 1, 0));
    r[4 * i + 1] = _mm256_shuffle_ps(a[0], b[0], _MM_SHUFFLE(3, 2, 3, 2));
    r[4 * i + 2] = _mm256_shuffle_ps(a[1], b[1], _MM_SHUFFLE(1, 0, 1, 0));
    r[4 * i + 3] = _mm256_shuffle_ps(a[1], b[1], _MM_SHUFFLE(3, 2, 3, 2));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_row, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_row, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

}  // namespace holdfast::model::chain

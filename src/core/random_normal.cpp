// Box-Muller on eight pairs at a time. The logarithm, sine and cosine are Cephes' single-precision polynomials (Moshier,
// netlib.org): a library call for each number would cost ten times the random words themselves.
#include <cmath>
#include <cstring>
#include <numbers>

#include "holdfast/core/error.h"
#include "holdfast/core/random_words.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace holdfast {
namespace {

constexpr std::size_t kAtOnce = 16;

// The definition; 1 - u lies in (0, 1].
void pairs_plain(const std::uint32_t* words, float* numbers, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 2) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - double{uniform_of(words[i])}));
    const double angle = 2.0 * std::numbers::pi * double{uniform_of(words[i + 1])};
    numbers[i] = static_cast<float>(radius * std::cos(angle));
    numbers[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

#if defined(__x86_64__)
#define HOLDFAST_AVX2 __attribute__((target("avx2,fma")))

HOLDFAST_AVX2 inline __m256 all(float value) {
  return _mm256_set1_ps(value);
}

// Computes c[0] x^(n-1) + ... + c[n-1].
template <std::size_t n>
HOLDFAST_AVX2 inline __m256 polynomial(__m256 x, const float (&c)[n]) {
  __m256 sum = all(c[0]);
  for (std::size_t i = 1; i < n; ++i) sum = _mm256_fmadd_ps(sum, x, all(c[i]));
  return sum;
}

HOLDFAST_AVX2 inline __m256 uniforms(__m256i words) {
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(words, 8)), all(0x1p-24F));
}

// Computes the logarithm of normal numbers in (0, 1].
HOLDFAST_AVX2 inline __m256 logarithm(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  __m256 exponent = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(126)));
  __m256 m = _mm256_castsi256_ps(
      _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFF)), _mm256_set1_epi32(0x3F000000)));  // [0.5, 1)
  const __m256 small = _mm256_cmp_ps(m, all(0.707106781F), _CMP_LT_OQ);
  exponent = _mm256_sub_ps(exponent, _mm256_and_ps(small, all(1)));
  m = _mm256_sub_ps(_mm256_add_ps(m, _mm256_and_ps(small, m)), all(1));
  static constexpr float kSeries[] = {7.0376836292e-2F,  -1.1514610310e-1F, 1.1676998740e-1F,
                                      -1.2420140846e-1F, 1.4249322787e-1F,  -1.6668057665e-1F,
                                      2.0000714765e-1F,  -2.4999993993e-1F, 3.3333331174e-1F};
  const __m256 square = _mm256_mul_ps(m, m);
  __m256 y = _mm256_mul_ps(_mm256_mul_ps(polynomial(m, kSeries), m), square);
  y = _mm256_fmadd_ps(exponent, all(-2.12194440e-4F), y);  // log 2 in two parts
  y = _mm256_fmadd_ps(square, all(-0.5F), y);
  return _mm256_fmadd_ps(exponent, all(0.693359375F), _mm256_add_ps(m, y));
}

HOLDFAST_AVX2 inline __m256 sign_of_second_bit(__m256i numbers) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_and_si256(numbers, _mm256_set1_epi32(2)), 30));
}

struct Turn {
  __m256 cosine, sine;
};

// Computes sine and cosine of 2 pi u. The nearest quarter turn is taken off exactly; swaps and signs put its effect back.
HOLDFAST_AVX2 inline Turn turn(__m256 u) {
  const __m256 quarters = _mm256_mul_ps(u, all(4));
  const __m256i nearest = _mm256_cvtps_epi32(quarters);
  const __m256 angle = _mm256_mul_ps(_mm256_sub_ps(quarters, _mm256_cvtepi32_ps(nearest)), all(1.57079632679F));
  const __m256 square = _mm256_mul_ps(angle, angle);
  static constexpr float kCosine[] = {2.443315711809948e-5F, -1.388731625493765e-3F, 4.166664568298827e-2F};
  static constexpr float kSine[] = {-1.9515295891e-4F, 8.3321608736e-3F, -1.6666654611e-1F};
  const __m256 c =
      _mm256_fmadd_ps(_mm256_mul_ps(polynomial(square, kCosine), square), square, _mm256_fmadd_ps(square, all(-0.5F), all(1)));
  const __m256 s = _mm256_fmadd_ps(_mm256_mul_ps(polynomial(square, kSine), square), angle, angle);
  const __m256 odd = _mm256_castsi256_ps(_mm256_slli_epi32(nearest, 31));  // the sign bit chooses
  return {_mm256_xor_ps(_mm256_blendv_ps(c, s, odd), sign_of_second_bit(_mm256_add_epi32(nearest, _mm256_set1_epi32(1)))),
          _mm256_xor_ps(_mm256_blendv_ps(s, c, odd), sign_of_second_bit(nearest))};
}

HOLDFAST_AVX2 void pairs_avx2(const std::uint32_t* words, float* numbers) {
  const auto* in = reinterpret_cast<const __m256i*>(words);
  const __m256 a = _mm256_castsi256_ps(_mm256_loadu_si256(in)), b = _mm256_castsi256_ps(_mm256_loadu_si256(in + 1));
  // First and second words of the pairs; unpacking puts results back in the order of the words.
  const __m256 first = uniforms(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)));
  const __m256 second = uniforms(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD)));
  const __m256 radius = _mm256_sqrt_ps(_mm256_mul_ps(logarithm(_mm256_sub_ps(all(1), first)), all(-2)));
  const Turn angle = turn(second);
  const __m256 even = _mm256_mul_ps(radius, angle.cosine), odd = _mm256_mul_ps(radius, angle.sine);
  _mm256_storeu_ps(numbers, _mm256_unpacklo_ps(even, odd));
  _mm256_storeu_ps(numbers + 8, _mm256_unpackhi_ps(even, odd));
}

const bool kHasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif

}  // namespace

void normal_of(std::span<const std::uint32_t> words, std::span<float> numbers) {
  HOLDFAST_CHECK(words.size() == numbers.size() && words.size() % 2 == 0);
  std::size_t done = 0;
#if defined(__x86_64__)
  if (kHasAvx2) {
    for (; done + kAtOnce <= words.size(); done += kAtOnce) pairs_avx2(words.data() + done, numbers.data() + done);
    if (done == words.size()) return;
    // A row's end goes the same way: a number must not depend on where it stands.
    std::uint32_t rest[kAtOnce] = {};
    float made[kAtOnce];
    std::memcpy(rest, words.data() + done, (words.size() - done) * sizeof(std::uint32_t));
    pairs_avx2(rest, made);
    std::memcpy(numbers.data() + done, made, (words.size() - done) * sizeof(float));
    return;
  }
#endif
  pairs_plain(words.data() + done, numbers.data() + done, words.size() - done);
}

}  // namespace holdfast

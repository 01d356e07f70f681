#include "holdfast/core/random_words.h"

#include <cstring>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "philox.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace holdfast {
namespace {

using Key = std::array<std::uint32_t, 2>;

constexpr std::size_t kBlock = 4, kLanes = 8, kAtOnce = kLanes * kBlock;

// The words of kLanes blocks, from number `block` of stream `index` on.
void lanes_plain(std::uint64_t block, std::uint64_t index, Key key, std::uint32_t* words) {
  for (std::size_t i = 0; i < kLanes; ++i, ++block) {
    const auto made = philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                                  static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)},
                                 key);
    std::memcpy(words + kBlock * i, made.data(), sizeof made);
  }
}

#if defined(__x86_64__)
#define HOLDFAST_AVX2 __attribute__((target("avx2")))

struct Products {
  __m256i low, high;
};

// Both halves of eight 32-bit products: the instruction multiplies every other lane.
HOLDFAST_AVX2 inline Products multiply(__m256i values, __m256i factor) {
  const __m256i even = _mm256_mul_epu32(values, factor), odd = _mm256_mul_epu32(_mm256_srli_epi64(values, 32), factor);
  return {_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA), _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA)};
}

HOLDFAST_AVX2 inline __m256i all(std::uint32_t word) {
  return _mm256_set1_epi32(static_cast<int>(word));
}

// One generator a lane, all four words of its state in registers of their own.
HOLDFAST_AVX2 void lanes_avx2(std::uint64_t block, std::uint64_t index, Key key, std::uint32_t* words) {
  const __m256i left = all(philox::kLeft), right = all(philox::kRight);
  __m256i a = _mm256_add_epi32(all(static_cast<std::uint32_t>(block)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256i b = all(static_cast<std::uint32_t>(block >> 32));
  __m256i c = all(static_cast<std::uint32_t>(index)), d = all(static_cast<std::uint32_t>(index >> 32));
  for (int round = 0; round < philox::kRounds; ++round) {
    const Products of_a = multiply(a, left), of_c = multiply(c, right);
    a = _mm256_xor_si256(of_c.high, _mm256_xor_si256(b, all(key[0])));
    b = of_c.low;
    c = _mm256_xor_si256(of_a.high, _mm256_xor_si256(d, all(key[1])));
    d = of_a.low;
    key[0] += philox::kKeyStep[0];
    key[1] += philox::kKeyStep[1];
  }
  // From a lane's words in four registers to blocks one after the other.
  const __m256i ab_low = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b);
  const __m256i cd_low = _mm256_unpacklo_epi32(c, d), cd_high = _mm256_unpackhi_epi32(c, d);
  const __m256i blocks_04 = _mm256_unpacklo_epi64(ab_low, cd_low), blocks_15 = _mm256_unpackhi_epi64(ab_low, cd_low);
  const __m256i blocks_26 = _mm256_unpacklo_epi64(ab_high, cd_high), blocks_37 = _mm256_unpackhi_epi64(ab_high, cd_high);
  auto* out = reinterpret_cast<__m256i*>(words);
  _mm256_storeu_si256(out, _mm256_permute2x128_si256(blocks_04, blocks_15, 0x20));
  _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(blocks_26, blocks_37, 0x20));
  _mm256_storeu_si256(out + 2, _mm256_permute2x128_si256(blocks_04, blocks_15, 0x31));
  _mm256_storeu_si256(out + 3, _mm256_permute2x128_si256(blocks_26, blocks_37, 0x31));
}

const bool kHasAvx2 = __builtin_cpu_supports("avx2");
#endif

void lanes(std::uint64_t block, std::uint64_t index, Key key, std::uint32_t* words) {
#if defined(__x86_64__)
  // Lanes count in 32 bits: a carry into the next word is left to the other one.
  if (kHasAvx2 && static_cast<std::uint32_t>(block) <= UINT32_MAX - kLanes) return lanes_avx2(block, index, key, words);
#endif
  lanes_plain(block, index, key, words);
}

}  // namespace

StreamWords::StreamWords(std::uint64_t seed, std::string_view purpose) : key_(philox::stream_key(seed, purpose)) {}

void StreamWords::fill(std::uint64_t index, std::uint64_t first, std::span<std::uint32_t> words) const {
  HOLDFAST_CHECK(first % kBlock == 0);
  std::uint64_t block = first / kBlock;
  std::size_t done = 0;
  for (; done + kAtOnce <= words.size(); done += kAtOnce, block += kLanes) lanes(block, index, key_, words.data() + done);
  if (done == words.size()) return;
  std::uint32_t rest[kAtOnce];
  lanes(block, index, key_, rest);
  std::memcpy(words.data() + done, rest, (words.size() - done) * sizeof(std::uint32_t));
}

void uniform_of(std::span<const std::uint32_t> words, float* numbers) {
  for (std::size_t i = 0; i < words.size(); ++i) numbers[i] = uniform_of(words[i]);
}

}  // namespace holdfast

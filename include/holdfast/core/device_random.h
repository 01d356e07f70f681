// The random streams of rng.h as tensor operations, so that a GPU fills its own arrays: Philox in 64-bit integers, a few hundred
// small operations for any number of words, and nothing that waits for the device. Words and uniform numbers have the same bits
// as on the CPU; what is made of them by logarithms and cosines agrees to rounding.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace holdfast {

// The key of the streams (seed, purpose), for those who run Philox themselves.
std::array<std::uint32_t, 2> stream_key(std::uint64_t seed, std::string_view purpose);

// The first `words` words of the streams (seed, purpose, ids[b]): [B, words], int64 in [0, 2^32), where `ids` is.
at::Tensor stream_words(const at::Tensor& ids, std::int64_t words, std::uint64_t seed, std::string_view purpose);

// Words as RandomStream reads them, in double: uniform in [0, 1) one for one, normal numbers from pairs (an even number of
// words).
at::Tensor uniform_from(const at::Tensor& words);
at::Tensor normal_from(const at::Tensor& words);

}  // namespace holdfast

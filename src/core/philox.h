// Constants of Philox 4x32-10 (rng.h), for those who run it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace holdfast::philox {

inline constexpr int kRounds = 10;
inline constexpr std::uint32_t kLeft = 0xD2511F53U, kRight = 0xCD9E8D57U;
inline constexpr std::array<std::uint32_t, 2> kKeyStep{0x9E3779B9U, 0xBB67AE85U};

// The key of the streams of a seed and purpose; a stream's index is the second half of its counter.
std::array<std::uint32_t, 2> stream_key(std::uint64_t seed, std::string_view purpose);

}  // namespace holdfast::philox

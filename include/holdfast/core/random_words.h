// Many words of a random stream at once: what RandomStream::bits() gives one after the other, with several blocks of the
// generator side by side. For filling arrays; the numbers are the same.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace holdfast {

// The streams of one seed and purpose.
class StreamWords {
 public:
  StreamWords(std::uint64_t seed, std::string_view purpose);
  // Words of stream `index` from number `first` on; `first` is a multiple of 4.
  void fill(std::uint64_t index, std::uint64_t first, std::span<std::uint32_t> words) const;

 private:
  std::array<std::uint32_t, 2> key_;
};

// Standard normal numbers made from pairs of words as RandomStream::normal() makes them, in single precision: they agree with its
// to 1e-6. words.size() is even and numbers.size() the same.
void normal_of(std::span<const std::uint32_t> words, std::span<float> numbers);

// A word as RandomStream::uniform() reads it: in [0, 1), 24 bits.
inline float uniform_of(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24F;
}
// Does the same for many words, into as many numbers.
void uniform_of(std::span<const std::uint32_t> words, float* numbers);

}  // namespace holdfast

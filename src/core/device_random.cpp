#include "holdfast/core/device_random.h"

#include <numbers>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "philox.h"

namespace holdfast {
namespace {

constexpr std::int64_t kWord = 0xFFFFFFFF;

// Both halves of the product of 32-bit numbers. The product may take the 64th bit, the sign's: the mask removes what the shift
// spreads of it.
struct Halves {
  at::Tensor high, low;
};
Halves multiply(const at::Tensor& words, std::uint32_t factor) {
  const at::Tensor product = words * static_cast<std::int64_t>(factor);
  return {product.bitwise_right_shift(32).bitwise_and_(kWord), product.bitwise_and(kWord)};
}

}  // namespace

std::array<std::uint32_t, 2> stream_key(std::uint64_t seed, std::string_view purpose) {
  return philox::stream_key(seed, purpose);
}

at::Tensor stream_words(const at::Tensor& ids, std::int64_t words, std::uint64_t seed, std::string_view purpose) {
  HOLDFAST_CHECK(ids.dim() == 1 && ids.scalar_type() == at::kLong && words > 0);
  const at::NoGradGuard no_graph;
  const std::int64_t blocks = (words + 3) / 4;
  const std::vector<std::int64_t> shape{ids.size(0), blocks};
  std::array<std::uint32_t, 2> key = philox::stream_key(seed, purpose);
  const at::Tensor count = at::arange(blocks, ids.options()).unsqueeze(0), index = ids.unsqueeze(1);
  at::Tensor a = count.bitwise_and(kWord).expand(shape), b = count.bitwise_right_shift(32).expand(shape);
  at::Tensor c = index.bitwise_and(kWord).expand(shape), d = index.bitwise_right_shift(32).bitwise_and_(kWord).expand(shape);
  for (int round = 0; round < philox::kRounds; ++round) {
    const Halves left = multiply(a, philox::kLeft), right = multiply(c, philox::kRight);
    a = right.high.bitwise_xor(b).bitwise_xor_(static_cast<std::int64_t>(key[0]));
    b = right.low;
    c = left.high.bitwise_xor(d).bitwise_xor_(static_cast<std::int64_t>(key[1]));
    d = left.low;
    key[0] += philox::kKeyStep[0];
    key[1] += philox::kKeyStep[1];
  }
  return at::stack({a, b, c, d}, 2).view({ids.size(0), 4 * blocks}).slice(1, 0, words);
}

at::Tensor uniform_from(const at::Tensor& words) {
  return words.bitwise_right_shift(8).to(at::kDouble).mul_(0x1p-24);
}

at::Tensor normal_from(const at::Tensor& words) {
  HOLDFAST_CHECK(words.size(1) % 2 == 0);
  const at::Tensor pairs = uniform_from(words).unflatten(1, {-1, 2});
  const at::Tensor radius = (1 - pairs.select(2, 0)).log_().mul_(-2).sqrt_();
  const at::Tensor angle = pairs.select(2, 1) * (2 * std::numbers::pi);
  return at::stack({radius * angle.cos(), radius * angle.sin()}, 2).flatten(1);
}

}  // namespace holdfast

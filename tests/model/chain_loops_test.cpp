// The loops of both instruction sets against each other, bit by bit, and against sums in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "../../src/model/chain/loops.h"
#include "holdfast/core/rng.h"

namespace holdfast::model::chain {
namespace {

constexpr std::int64_t kInputs = 13, kFirst = 9, kSecond = 17, kClasses = 3, kHidden = kFirst + kSecond;

std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> result;
  RandomStream stream(seed, "test");
  for (std::int64_t i = 0; i < count; ++i) result.push_back(static_cast<float>(stream.normal()));
  return result;
}

// Two hidden layers, leaky relu and softplus.
struct Passes {
  std::vector<float> logits, map, change, again;
};

Passes run(const Loops& loops, std::int64_t rows) {
  const std::vector<float> w[] = {numbers(kFirst * kInputs, 1), numbers(kSecond * kFirst, 2), numbers(kClasses * kSecond, 3)};
  const std::vector<float> b[] = {numbers(kFirst, 4), numbers(kSecond, 5), numbers(kClasses, 6)};
  const std::vector<float> scale = numbers(kInputs, 7), shift = numbers(kInputs, 8), points = numbers(rows * kInputs, 9),
                           direction = numbers(rows * kInputs, 10), cotangent = numbers(rows * kClasses, 11);
  const Layer layers[] = {{w[0].data(), b[0].data(), kInputs, kFirst, Bend::kLeaky, 0.1f, 0},
                          {w[1].data(), b[1].data(), kFirst, kSecond, Bend::kSoftplus, 0.2f, 3},
                          {w[2].data(), b[2].data(), kSecond, kClasses, Bend::kNone, 0, 0}};
  const auto size = [&](std::int64_t units) { return static_cast<std::size_t>(units * loops.rows); };
  std::vector<float> one(size(kSecond)), other(size(kSecond)), curved(size(kHidden)), kept(size(2 * kHidden));
  const Chain chain{layers, 3, scale.data(), shift.data(), true, kHidden, one.data(), other.data(), curved.data()};
  Passes passes;
  for (auto* result : {&passes.map, &passes.again}) result->resize(points.size());
  for (auto* result : {&passes.logits, &passes.change}) result->resize(cotangent.size());
  for (std::int64_t begin = 0; begin < rows; begin += loops.rows) {
    const std::int64_t count = std::min(loops.rows, rows - begin), n = begin * kInputs, c = begin * kClasses;
    loops.forward(chain, points.data() + n, count, true, kept.data(), passes.logits.data() + c);
    loops.pull(chain, cotangent.data() + c, count, true, kept.data(), passes.map.data() + n);
    loops.push(chain, direction.data() + n, count, kept.data(), passes.change.data() + c);
    loops.pull_again(chain, cotangent.data() + c, count, kept.data(), passes.again.data() + n);
  }
  return passes;
}

bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

TEST(ChainLoops, BothInstructionSetsGiveTheSameBits) {
  if (!has_avx2() || !has_avx512()) GTEST_SKIP() << "this processor has not both";
  for (const std::int64_t rows : {1, 7, 16, 32, 33, 75}) {
    const Passes narrow = run(*avx2_loops(), rows), wide = run(*avx512_loops(), rows);
    EXPECT_EQ(narrow.logits, wide.logits) << rows << " rows";
    EXPECT_EQ(narrow.map, wide.map) << rows << " rows";
    EXPECT_EQ(narrow.change, wide.change) << rows << " rows";
    EXPECT_EQ(narrow.again, wide.again) << rows << " rows";
  }
}

TEST(ChainLoops, ARowIsTheSameInEveryBlock) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const Passes many = run(*avx2_loops(), 41);
  const Passes few = run(*avx2_loops(), 5);
  EXPECT_TRUE(std::equal(few.logits.begin(), few.logits.end(), many.logits.begin()));
  EXPECT_TRUE(std::equal(few.map.begin(), few.map.end(), many.map.begin()));
  EXPECT_TRUE(std::equal(few.again.begin(), few.again.end(), many.again.begin()));
}

// An activation alone, from far below zero to far above it, in the widths that surrogates have.
TEST(ChainLoops, SoftplusAndItsSlopesAreThoseOfTheFormula) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  const Loops& loops = *avx2_loops();
  const float weight = 1, last = 1;
  for (const float beta : {0.5f, 3.0f, 3000.0f}) {
    const Layer layers[] = {{&weight, nullptr, 1, 1, Bend::kSoftplus, 0, beta}, {&last, nullptr, 1, 1, Bend::kNone, 0, 0}};
    std::vector<float> one(static_cast<std::size_t>(loops.rows)), other(one), curved(one), kept(2 * one.size());
    const Chain chain{layers, 2, nullptr, nullptr, true, 1, one.data(), other.data(), curved.data()};
    for (double x = -60; x <= 60; x += 0.37) {
      const float point = static_cast<float>(x / beta), unit = 1;
      const double y = static_cast<double>(beta) * static_cast<double>(point);
      float value = 0, slope = 0, bend = 0, change = 0;
      const float none = 0;
      loops.forward(chain, &point, 1, true, kept.data(), &value);
      loops.pull(chain, &unit, 1, true, kept.data(), &slope);
      loops.push(chain, &unit, 1, kept.data(), &change);
      loops.pull_again(chain, &none, 1, kept.data(), &bend);
      const double s = 1 / (1 + std::exp(-y)),
                   soft = (std::max(y, 0.0) + std::log1p(std::exp(-std::abs(y)))) / static_cast<double>(beta);
      const double rounding = 3e-7 + 1.5e-7 * std::abs(y);  // y itself is rounded, and goes into an exponent
      EXPECT_NEAR(value, soft, rounding * soft) << y;
      EXPECT_NEAR(slope, s, rounding * s) << y;
      EXPECT_FLOAT_EQ(change, slope);
      const double curvature = static_cast<double>(beta) * s / (1 + std::exp(y));
      EXPECT_NEAR(bend, curvature, 3 * rounding * curvature) << y;
    }
  }
}

}  // namespace
}  // namespace holdfast::model::chain

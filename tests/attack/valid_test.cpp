// Rounding to valid rows, without torch.
#include "../../src/attack/valid.h"

#include <cmath>

#include <gtest/gtest.h>

namespace holdfast::attack::rows {
namespace {

// Elements 0-2 and 3-5 are one-hot groups, 6 any number of [0, 1], 7 a multiple of 0.1, 8 a number of {-1, -0.5, 0, 0.5, 1}.
ValidRows table() {
  ValidRows rows{.groups = {{0, 1, 2}, {3, 4, 5}}};
  rows.low = {0, 0, 0, 0, 0, 0, 0, 0, -1};
  rows.high = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  rows.step = {0, 0, 0, 0, 0, 0, 0, 0.1, 0.5};
  return rows;
}

const std::vector<float> kClean{1, 0, 0, 0, 1, 0, 0.25f, 0.3f, 0.5f};

std::vector<float> rounded(const ThreatModel& threat, const std::vector<float>& clean, std::vector<float> point) {
  round_to_valid(threat, {1, static_cast<std::int64_t>(clean.size())}, clean.data(), point.data());
  return point;
}

// The definition, in a loop: empty when the row is valid and inside the ball.
std::string wrong_with(const ThreatModel& threat, const std::vector<float>& clean, const std::vector<float>& row) {
  const ValidRows& valid = *threat.valid;
  std::vector<bool> grouped(row.size(), false);
  for (const auto& group : valid.groups) {
    int ones = 0, others = 0, moved = 0;
    for (const std::int64_t column : group) {
      const auto at = static_cast<std::size_t>(column);
      grouped[at] = true;
      ones += row[at] == 1;
      others += row[at] != 1 && row[at] != 0;
      moved += row[at] != clean[at];
    }
    if (moved > 0 && (ones != 1 || others != 0)) return "a group without one level";
  }
  double sum = 0, squares = 0, largest = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double value = row[i], move = std::abs(value - static_cast<double>(clean[i]));
    sum += move;
    squares += move * move;
    largest = std::max(largest, move);
    if (threat.is_frozen(static_cast<std::int64_t>(i)) && move != 0) return "a frozen element moved";
    if (grouped[i] || move == 0) continue;
    if (value < valid.low[i] - 1e-6 || value > valid.high[i] + 1e-6) return "out of range";
    if (threat.box && (value < threat.box->first - 1e-6 || value > threat.box->second + 1e-6)) return "out of the box";
    const double step = valid.step[i];
    if (step > 0 && std::abs(std::remainder(value - valid.low[i], step)) > 1e-6) return "off the grid";
  }
  const double size = threat.norm == Norm::kL1 ? sum : threat.norm == Norm::kLinf ? largest : std::sqrt(squares);
  return size > threat.epsilon * (1 + 1e-6) ? "outside the ball" : "";
}

TEST(ValidRows, ALevelSwitchesWhereTheBallReaches) {
  const ValidRows valid = table();
  std::vector<float> point = kClean;
  point[0] = 0.3f;
  point[2] = 0.6f;
  const std::vector<float> near = rounded({.epsilon = 1.3, .valid = valid}, kClean, point);
  EXPECT_EQ(near, kClean) << "a switch costs sqrt 2";
  const std::vector<float> far = rounded({.epsilon = 1.5, .valid = valid}, kClean, point);
  EXPECT_EQ(std::vector(far.begin(), far.begin() + 3), (std::vector<float>{0, 0, 1}));
  EXPECT_EQ(rounded({.norm = Norm::kL1, .epsilon = 1.9, .valid = valid}, kClean, point), kClean) << "2 in l1";
  EXPECT_EQ(rounded({.norm = Norm::kL1, .epsilon = 2, .valid = valid}, kClean, point), far);
  EXPECT_EQ(rounded({.norm = Norm::kLinf, .epsilon = 1, .valid = valid}, kClean, point), far) << "1 in linf";
}

TEST(ValidRows, TheStrongestWishIsGrantedFirst) {
  const ValidRows valid = table();
  std::vector<float> point = kClean;
  point[0] = 0.4f;
  point[1] = 0.5f;  // by 0.1
  point[4] = 0.2f;
  point[3] = 0.7f;  // by 0.5
  const std::vector<float> one = rounded({.epsilon = 1.5, .valid = valid}, kClean, point);
  EXPECT_EQ(std::vector(one.begin(), one.begin() + 6), (std::vector<float>{1, 0, 0, 1, 0, 0})) << "room for one";
  const std::vector<float> two = rounded({.epsilon = 2, .valid = valid}, kClean, point);
  EXPECT_EQ(std::vector(two.begin(), two.begin() + 6), (std::vector<float>{0, 1, 0, 1, 0, 0}));
}

TEST(ValidRows, NumbersGoToTheirGridTowardsTheCleanValueWhereTheBallWouldBeLeft) {
  const ValidRows valid = table();
  std::vector<float> point = kClean;
  point[7] = 0.47f;
  EXPECT_FLOAT_EQ(rounded({.epsilon = 1, .valid = valid}, kClean, point)[7], 0.5f) << "the nearest";
  EXPECT_FLOAT_EQ(rounded({.epsilon = 0.19, .valid = valid}, kClean, point)[7], 0.4f) << "0.5 is out of reach";
  EXPECT_FLOAT_EQ(rounded({.epsilon = 0.09, .valid = valid}, kClean, point)[7], 0.3f);
  point = kClean;
  point[6] = 2;
  point[8] = 9;
  const std::vector<float> far = rounded({.epsilon = 5, .valid = valid}, kClean, point);
  EXPECT_EQ(far[6], 1);
  EXPECT_EQ(far[8], 1) << "ranges end";
  EXPECT_EQ(rounded({.epsilon = 5, .box = {{-1, 0.75}}, .valid = valid}, kClean, point)[8], 0.5f) << "and so does the box";
  point[8] = -0.8f;
  EXPECT_EQ(rounded({.epsilon = 5, .valid = valid, .non_negative = true}, kClean, point)[8], 0.5f) << "no option is broken";
}

TEST(ValidRows, FrozenElementsAndLevelsStay) {
  const ValidRows valid = table();
  const auto only = [](std::size_t element) {
    std::vector<bool> frozen(9, false);
    frozen[element] = true;
    return frozen;
  };
  const std::vector<float> point{0, 1, 0, 0, 1, 0, 0.9f, 0.3f, 0.5f};
  EXPECT_EQ(rounded({.epsilon = 9, .frozen = only(0), .valid = valid}, kClean, point)[0], 1);
  EXPECT_EQ(rounded({.epsilon = 9, .frozen = only(1), .valid = valid}, kClean, point)[0], 1);
  EXPECT_EQ(rounded({.epsilon = 9, .frozen = only(6), .valid = valid}, kClean, point)[6], 0.25f);
  EXPECT_EQ(rounded({.epsilon = 9, .frozen = only(6), .valid = valid}, kClean, point)[1], 1);
}

// Rows of a test set may lie outside the ranges of the training set: what stays is as good as it was.
TEST(ValidRows, ACleanValueThatIsNotValidMayStay) {
  const ValidRows valid = table();
  std::vector<float> clean = kClean;
  clean[6] = 1.3f;
  clean[7] = 0.34f;
  clean[3] = 0.5f;
  clean[4] = 0.5f;
  EXPECT_EQ(rounded({.epsilon = 2, .valid = valid}, clean, clean), clean);
  std::vector<float> point = clean;
  point[7] = 0.36f;
  EXPECT_FLOAT_EQ(rounded({.epsilon = 2, .valid = valid}, clean, point)[7], 0.4f);
  EXPECT_FLOAT_EQ(rounded({.epsilon = 0.03, .valid = valid}, clean, point)[7], 0.34f) << "no grid point in reach";
}

ThreatModel random_threat(RandomStream& stream, const ValidRows& valid) {
  constexpr Norm kNorms[] = {Norm::kL2, Norm::kLinf, Norm::kL1};
  ThreatModel threat{.norm = kNorms[stream.below(3)], .epsilon = std::pow(10.0, stream.uniform(-2, 0.7)), .valid = valid};
  if (stream.below(3) == 0) threat.box = {-0.7, 1.0};
  return threat;
}

std::vector<float> random_row(RandomStream& stream) {
  std::vector<float> row(9, 0.0f);
  row[stream.below(3)] = 1;
  row[3 + stream.below(3)] = 1;
  row[6] = static_cast<float>(stream.uniform());
  row[7] = static_cast<float>(0.1 * static_cast<double>(stream.below(11)));
  row[8] = static_cast<float>(-0.5 + 0.5 * static_cast<double>(stream.below(4)));
  return row;
}

TEST(ValidRows, EveryPointRoundsToAValidRowInTheBallWhichStays) {
  const ValidRows valid = table();
  int moved = 0, switched = 0;
  for (std::uint64_t trial = 0; trial < 5000; ++trial) {
    RandomStream stream(trial, "valid rows");
    const ThreatModel threat = random_threat(stream, valid);
    const std::vector<float> clean = random_row(stream);
    std::vector<float> point = clean;
    for (float& element : point) element += static_cast<float>(threat.epsilon * stream.normal());
    const std::vector<float> row = rounded(threat, clean, point);
    ASSERT_EQ(wrong_with(threat, clean, row), "") << "trial " << trial;
    EXPECT_EQ(rounded(threat, clean, row), row) << "trial " << trial;
    moved += row != clean;
    switched += row[0] != clean[0] || row[3] != clean[3];
  }
  EXPECT_GT(moved, 3000);
  EXPECT_GT(switched, 300);
}

TEST(ValidRows, DrawnRowsAreValidAndReachAllLevels) {
  const ValidRows valid = table();
  const ThreatModel threat{.epsilon = 2.5, .valid = valid};
  std::array<int, 6> taken{};
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    RandomStream stream(trial, "drawn rows");
    std::vector<float> row(9);
    const auto move = [&](std::int64_t count, double radius) {
      std::vector<double> all(static_cast<std::size_t>(count));
      for (double& element : all) element = radius * stream.uniform(-1, 1) / std::sqrt(static_cast<double>(count));
      return all;
    };
    draw_valid(threat, 9, kClean.data(), stream, move, row.data());
    row = rounded(threat, kClean, row);
    ASSERT_EQ(wrong_with(threat, kClean, row), "");
    for (std::size_t i = 0; i < 6; ++i) taken[i] += row[i] == 1;
  }
  for (const int count : taken)
    EXPECT_GT(count, 300) << "even chances: a quarter each for the two others, half for the clean one";
}

}  // namespace
}  // namespace holdfast::attack::rows

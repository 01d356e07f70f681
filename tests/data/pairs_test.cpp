#include <map>
#include <set>

#include "holdfast/core/torch.h"
#include "support/datasets.h"
#include "support/errors.h"

namespace holdfast::data {
namespace {

// Rows of `dataset` by their bytes, so that a side of a pair can be found again. Rows that appear twice map to several.
std::multimap<std::string, std::int64_t> rows_by_bytes(const Dataset& dataset) {
  std::multimap<std::string, std::int64_t> rows;
  const std::size_t bytes = static_cast<std::size_t>(dataset.inputs[0].numel()) * sizeof(float);
  for (std::int64_t i = 0; i < dataset.inputs.size(0); ++i) {
    rows.emplace(std::string(static_cast<const char*>(dataset.inputs[i].const_data_ptr()), bytes), i);
  }
  return rows;
}

bool has(const std::vector<std::int64_t>& part, std::int64_t row) {
  return std::binary_search(part.begin(), part.end(), row);
}

class PairsOfSynthetic : public ::testing::Test {
 protected:
  Dataset one_ = load_dataset("synthetic"), pairs_ = load_dataset("pairs(of=synthetic,count=600)");
  std::multimap<std::string, std::int64_t> rows_ = rows_by_bytes(one_);

  std::int64_t row_of(std::int64_t pair, std::int64_t side) const {
    const at::Tensor row = pairs_.inputs[pair][side].contiguous();
    return rows_
        .find(std::string(static_cast<const char*>(row.const_data_ptr()), static_cast<std::size_t>(row.numel()) * sizeof(float)))
        ->second;
  }
};

TEST_F(PairsOfSynthetic, LabelOneMeansTheSameClassAndHalfHaveIt) {
  ASSERT_EQ(pairs_.inputs.sizes(), at::IntArrayRef({600, 2, 19}));
  EXPECT_EQ(pairs_.labels.sum().item<std::int64_t>(), 300);
  for (std::int64_t i = 0; i < 600; ++i) {
    const bool same = one_.labels[row_of(i, 0)].equal(one_.labels[row_of(i, 1)]);
    EXPECT_EQ(pairs_.labels[i].item<std::int64_t>(), same ? 1 : 0);
  }
}

TEST_F(PairsOfSynthetic, BothSidesComeFromTheSamePartAndNoPairAppearsTwice) {
  std::set<std::set<std::int64_t>> seen;
  const std::pair<const std::vector<std::int64_t>*, const std::vector<std::int64_t>*> parts[] = {
      {&pairs_.train, &one_.train}, {&pairs_.validation, &one_.validation}, {&pairs_.test, &one_.test}};
  for (const auto& [of_pairs, of_one] : parts) {
    for (const std::int64_t i : *of_pairs) {
      EXPECT_TRUE(has(*of_one, row_of(i, 0)) && has(*of_one, row_of(i, 1)));
      const std::set<std::int64_t> pair = {row_of(i, 0), row_of(i, 1)};
      EXPECT_EQ(pair.size(), 2U);
      EXPECT_TRUE(seen.insert(pair).second);
    }
  }
  EXPECT_EQ(pairs_.train.size(), 360U);
  EXPECT_EQ(pairs_.test.size(), 120U);
}

TEST_F(PairsOfSynthetic, TheSchemaHasEverythingTwice) {
  EXPECT_EQ(pairs_.schema.layout, Layout::vector(19, 2));
  ASSERT_EQ(pairs_.schema.groups.size(), 2U);
  EXPECT_EQ(pairs_.schema.groups[0].name, "first category");
  EXPECT_EQ(pairs_.schema.groups[1].columns, std::vector<std::int64_t>({35, 36, 37}));
  EXPECT_EQ(pairs_.schema.feature_name(19), "second linear_0");
  EXPECT_EQ(pairs_.schema.classes, std::vector<std::string>({"different", "same"}));
}

TEST_F(PairsOfSynthetic, AreTheSameForASeed) {
  EXPECT_TRUE(at::equal(load_dataset("pairs(of=synthetic,count=600)").inputs, pairs_.inputs));
  EXPECT_FALSE(at::equal(load_dataset("pairs(of=synthetic,count=600)", {.seed = 1}).inputs, pairs_.inputs));
}

TEST(Pairs, OfGraphsJoinATrainingGraphWithOneOfThePart) {
  SKIP_WITHOUT("adhd");
  const Dataset one = load_dataset("adhd"), pairs = load_dataset("pairs(of=adhd,count=200)");
  EXPECT_EQ(pairs.schema.layout, Layout::graph(190, 2));
  const auto rows = rows_by_bytes(one);
  const auto in_part = [&](const at::Tensor& side, const std::vector<std::int64_t>& part) {
    const at::Tensor row = side.contiguous();
    const auto [first, last] = rows.equal_range(
        std::string(static_cast<const char*>(row.const_data_ptr()), static_cast<std::size_t>(row.numel()) * sizeof(float)));
    return std::any_of(first, last, [&](const auto& entry) { return has(part, entry.second); });
  };
  for (const std::int64_t i : pairs.test)
    EXPECT_TRUE(in_part(pairs.inputs[i][0], one.train) && in_part(pairs.inputs[i][1], one.test));
  for (const std::int64_t i : pairs.train)
    EXPECT_TRUE(in_part(pairs.inputs[i][0], one.train) && in_part(pairs.inputs[i][1], one.train));
}

TEST(Pairs, OnlySomeClasses) {
  EXPECT_ERROR(load_dataset("pairs(of=synthetic,classes=1)"), kInput, "no two samples of one class and of different classes");
  EXPECT_ERROR(load_dataset("pairs(of=synthetic,classes=0 2)"), kUsage, "class 2 is not in 0 to 1 of synthetic");
  EXPECT_ERROR(load_dataset("pairs(of=synthetic,classes=a)"), kUsage, "expected numbers with spaces");
  EXPECT_ERROR(load_dataset("pairs(of=pairs)"), kUsage, "pairs of pairs");
  EXPECT_ERROR(load_dataset("pairs(of=mnits)"), kUsage, "unknown dataset 'mnits'");
}

}  // namespace
}  // namespace holdfast::data

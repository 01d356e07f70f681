#include "holdfast/experiment/gate.h"

#include <vector>

#include <gtest/gtest.h>

#include "support/errors.h"

namespace holdfast::experiment {
namespace {

TEST(Gate, ParsesMetricFieldComparisonAndLimit) {
  const Gate gate = parse_gate("top_k( k = 8 ).low >= 0.6");
  EXPECT_EQ(gate.metric, "top_k(k=8)");
  EXPECT_EQ(gate.field, "low");
  EXPECT_EQ(gate.comparison, ">=");
  EXPECT_DOUBLE_EQ(gate.limit, 0.6);
  EXPECT_EQ(parse_gate("top_k<1").field, "mean");
  EXPECT_EQ(parse_gate("top_k<1").metric, parse_gate("top_k(k=8)>0").metric);
}

TEST(Gate, RefusesWhatCouldNeverFail) {
  EXPECT_ERROR(parse_gate("top_k(k=8)"), kUsage, "METRIC>=NUMBER");
  EXPECT_ERROR(parse_gate("top_q(k=8)>=0.5"), kUsage, "did you mean 'top_k'?");
  EXPECT_ERROR(parse_gate("top_k(k=8)>=high"), kUsage, "'high' is not a number");
  EXPECT_ERROR(parse_gate("top_k(k=8).mode>=0.5"), kUsage, "unknown field 'mode'");
  EXPECT_ERROR(parse_gate("top_k(k=8)>=1.5"), kUsage, "mean of top_k(k=8) lies between 0 and 1, so 1.5 is out of its reach");
  EXPECT_ERROR(parse_gate("top_k(k=8)>=-0.1"), kUsage, "lies between 0 and 1");
  EXPECT_ERROR(parse_gate("kendall.low>=-2"), kUsage, "low of kendall lies between -1 and 1");
  EXPECT_ERROR(parse_gate("kendall.specific>=1.01"), kUsage, "is 1 at most");
  EXPECT_NO_THROW(parse_gate("kendall.adjusted>=-3"));
  EXPECT_EQ(parse_gate("top_k(k=8).lift>=0.1").field, "lift");
  EXPECT_NO_THROW(parse_gate("kendall.lift>=-1.5"));
  EXPECT_ERROR(parse_gate("top_k(k=8).lift>=1.1"), kUsage, "lift of top_k(k=8) lies between -1 and 1");
  EXPECT_NO_THROW(parse_gate("top_k(k=8).effective_sets>=30"));
  EXPECT_ERROR(parse_gate("top_k(k=8).effective_sets>=0.5"), kUsage, "effective_sets of top_k(k=8) is 1 at least");
  EXPECT_ERROR(parse_gate("top_k(k=8).own_advantage>=1.5"), kUsage, "is 1 at most");
  EXPECT_ERROR(parse_gate("kendall.own_advantage>0"), kUsage, "kendall compares whole maps and has no own_advantage");
  EXPECT_NO_THROW(parse_gate("l2<=40"));
  EXPECT_NO_THROW(parse_gate("curvature<=40"));
}

TEST(Gate, AnUndefinedValueMeetsNothing) {
  EXPECT_FALSE(parse_gate("top_k>=0").met_by(std::nullopt));
  EXPECT_FALSE(parse_gate("top_k<=1").met_by(std::nan("")));
}

TEST(Gate, ComparesAsWritten) {
  EXPECT_TRUE(parse_gate("top_k>=0.5").met_by(0.5));
  EXPECT_FALSE(parse_gate("top_k>0.5").met_by(0.5));
  EXPECT_TRUE(parse_gate("top_k<=0.5").met_by(0.5));
  EXPECT_FALSE(parse_gate("top_k<0.5").met_by(0.5));
}

TEST(Gates, OfMeasuresLookAtMeasures) {
  const Gate gate = parse_gate("thickness(k=8).low>=0.5");
  EXPECT_TRUE(gate.of_measure);
  const Json measured = Json::parse(R"json([{"measure": "curvature", "low": 0.1}, {"measure": "thickness", "low": 0.4}])json");
  const Json gates = check_gates({gate}, Json::array(), measured);
  EXPECT_FALSE(gates[0].at("met"));
  ASSERT_EQ(gates[0].at("rows").size(), 1U);
  EXPECT_EQ(gates[0].at("rows")[0].at("measure"), 1);
  EXPECT_ERROR(parse_gate("curvature.specific<=1"), kUsage, "a measure has no level");
  EXPECT_ERROR(parse_gate("curvature.lift<=1"), kUsage, "a measure has no level");
}

TEST(Gates, OneBadRowIsEnoughToMiss) {
  const Json rows = Json::parse(
      R"json([{"metric": "top_k(k=8)", "mean": 0.9}, {"metric": "other", "mean": 0.1}, {"metric": "top_k(k=8)", "mean": 0.4}])json");
  const Json gates = check_gates({parse_gate("top_k(k=8)>=0.5")}, rows);
  ASSERT_EQ(gates.size(), 1U);
  EXPECT_FALSE(gates[0].at("met"));
  ASSERT_EQ(gates[0].at("rows").size(), 2U);
  EXPECT_EQ(gates[0].at("rows")[1].at("row"), 2);
  EXPECT_FALSE(all_met(gates));
}

// valid_effect has a k of its own; an explainer with rows of the default k is not asked for others.
TEST(Gates, WithoutAKAreAboutTheExplainersOwn) {
  const Json rows = Json::parse(R"json([{"explainer": "saliency", "metric": "top_k(k=8)", "mean": 0.9},
    {"explainer": "saliency", "metric": "top_k(k=3)", "mean": 0.1}, {"explainer": "valid_effect", "metric": "top_k(k=3)", "mean": 0.7},
    {"explainer": "valid_effect", "metric": "lens_precision(k=3,w=1)", "mean": 0.2}])json");
  EXPECT_EQ(rows_of(parse_gate("top_k>=0.5"), rows), (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(rows_of(parse_gate("top_k(k=8)>=0.5"), rows), (std::vector<std::size_t>{0}));
  EXPECT_EQ(rows_of(parse_gate("top_k(k=3)>=0.5"), rows), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(rows_of(parse_gate("lens_precision(w=1)>=0.5"), rows), (std::vector<std::size_t>{3}));
  EXPECT_TRUE(rows_of(parse_gate("lens_precision(w=2)>=0.5"), rows).empty());
  EXPECT_TRUE(all_met(check_gates({parse_gate("top_k>=0.5")}, rows)));
  EXPECT_NO_THROW(check_gates_have_rows({parse_gate("top_k>=0.5"), parse_gate("curvature<=1")}, rows));
  EXPECT_ERROR(check_gates_have_rows({parse_gate("top_k(k=5)>=0.5")}, rows), kUsage,
               "no row of this run has metric top_k(k=5); the first has top_k(k=8)");
}

TEST(Gate, HoldsTheDifferenceToAnotherRun) {
  const Gate gate = parse_gate("top_k(k=8).drop<=0.05");
  EXPECT_TRUE(gate.of_drop());
  const Json drops =
      Json::parse(R"json([{"row": 3, "metric": "top_k(k=8)", "drop": 0.04}, {"row": 5, "metric": "top_k(k=8)", "drop": 0.06},
                                         {"row": 6, "metric": "spearman", "drop": 1}])json");
  const Json gates = check_gates({gate}, Json::array(), Json::array(), drops);
  EXPECT_FALSE(gates[0].at("met"));
  ASSERT_EQ(gates[0].at("rows").size(), 2U);
  EXPECT_EQ(gates[0].at("rows")[1].at("row"), 5);
  EXPECT_ERROR(check_gates({gate}, Json::array()), kInput, "has no top_k(k=8) on the same samples");
}

}  // namespace
}  // namespace holdfast::experiment

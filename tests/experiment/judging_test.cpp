// From numbers with intervals to verdicts: by intervals, never by means alone.
#include "../../src/experiment/judging.h"

#include <cmath>

#include <gtest/gtest.h>

#include "holdfast/core/torch.h"

namespace holdfast::experiment {
namespace {

constexpr Judgement kHolds = Judgement::kHolds, kInPart = Judgement::kHoldsInPart, kFails = Judgement::kDoesNotHold,
                    kNotDecided = Judgement::kNotDecided;

Value around(double value, double half) {
  return {.value = value, .low = value - half, .high = value + half};
}

const Value kAbove = around(0.3, 0.1), kBelow = around(-0.3, 0.1), kOpen = around(0.1, 0.3), kBare{.value = 0.5};

Tally tally_of(const std::vector<Value>& values) {
  Tally tally;
  for (const Value& value : values) tally.add_above(value, 0);
  return tally;
}

TEST(Tally, CountsOnlyWholeIntervals) {
  const Tally tally = tally_of({kAbove, kBelow, kOpen, kBare, Value{}});
  EXPECT_EQ(tally.all, 4);  // the undefined one is none
  EXPECT_EQ(tally.in_favour, 1);
  EXPECT_EQ(tally.against, 1);
  EXPECT_EQ(tally.open(), 2);  // a number without an interval decides nothing
  EXPECT_DOUBLE_EQ(tally.share().value, 0.75);
  EXPECT_DOUBLE_EQ(*tally.share().low, 0.25);
  EXPECT_DOUBLE_EQ(*tally.share().high, 0.75);
  Tally turned;
  turned.add_below(kBelow, 0);
  EXPECT_EQ(turned.in_favour, 1);
}

TEST(Judging, OfMostCases) {
  EXPECT_EQ(judge_most(tally_of({kAbove, kAbove, kBelow})), kHolds);
  EXPECT_EQ(judge_most(tally_of({kAbove, kOpen, kOpen})), kNotDecided);
  EXPECT_EQ(judge_most(tally_of({kAbove, kBelow})), kFails);  // half is not most
  EXPECT_EQ(judge_most({}), kNotDecided);
}

TEST(Judging, OfAllCases) {
  EXPECT_EQ(judge_all(tally_of({kAbove, kAbove, kOpen})), kHolds);
  EXPECT_EQ(judge_all(tally_of({kAbove, kOpen})), kNotDecided);
  EXPECT_EQ(judge_all(tally_of({kAbove, kAbove, kBelow})), kInPart);
  EXPECT_EQ(judge_all(tally_of({kAbove, kBelow, kBelow})), kFails);
  EXPECT_EQ(judge_all(tally_of({kBelow, kOpen, kOpen})), kFails);  // one surely against it, none for it
  EXPECT_EQ(judge_all({}), kNotDecided);
}

Judgement of_parts(const std::vector<Judgement>& parts) {
  return combined(parts);
}

TEST(Judging, OfParts) {
  EXPECT_EQ(of_parts({kHolds, kHolds}), kHolds);
  EXPECT_EQ(of_parts({kFails, kFails}), kFails);
  EXPECT_EQ(of_parts({kFails, kNotDecided}), kFails);  // one refuted part is enough
  EXPECT_EQ(of_parts({kHolds, kFails}), kInPart);
  EXPECT_EQ(of_parts({kHolds, kFails, kNotDecided}), kInPart);
  EXPECT_EQ(of_parts({kHolds, kNotDecided}), kNotDecided);  // what holds does not speak for what is open
  EXPECT_EQ(of_parts({kNotDecided, kNotDecided}), kNotDecided);
  EXPECT_EQ(of_parts({kInPart, kNotDecided}), kInPart);  // one that holds in part is held and refuted
  EXPECT_EQ(of_parts({kInPart, kFails}), kInPart);
  EXPECT_EQ(of_parts({kInPart, kHolds}), kInPart);
  EXPECT_EQ(of_parts({}), kNotDecided);
}

TEST(Judging, NamesThePartsAndWhatWouldDecideThem) {
  const std::vector<ClaimPart> parts{part_above("A", kAbove, 0), part_above("B", kBelow, 0), part_above("C", kOpen, 0),
                                     part_of_all("D", tally_of({kAbove, kAbove, kBelow}))};
  EXPECT_EQ(combined(parts), kInPart);
  EXPECT_EQ(in_words(parts),
            "Surely holds: A; some of D. Surely refuted: B; some of D. Open: C (About 9.0 times as many seeds would decide it, "
            "if the mean stays as it is.).");
  EXPECT_EQ(part_below("A", kBelow, 0).judgement, kHolds);
  EXPECT_EQ(part_mean_above("A", {{"a", kOpen}}, 0).judgement, kNotDecided);
  EXPECT_DOUBLE_EQ(seeds_needed(around(0.1, 0.3), 0), 9);  // half width over distance, squared
  EXPECT_DOUBLE_EQ(seeds_needed(around(-0.1, 0.2), 0), 4);
  EXPECT_TRUE(std::isinf(seeds_needed(around(0, 0.2), 0)) && std::isinf(seeds_needed(kBare, 0)));
  EXPECT_EQ(what_decides(kBare, 0), "It has no interval: more seeds would give it one.");
  EXPECT_EQ(what_decides(around(1e-4, 0.2), 0),
            "Its mean is at the limit: no number of seeds up to 100 times as many decides it.");
  EXPECT_EQ(tally_of({kAbove, kOpen, around(0.1, 0.2)}).what_decides(),
            "About 4.0 times as many seeds would decide more than half of the cases, if the means stay as they are.");
  EXPECT_EQ(tally_of({kBare, kBare}).what_decides(),
            "Even 100 times as many seeds would leave half of the cases open, if the means stay as they are.");
  EXPECT_EQ(Tally{}.what_decides(), "There is no case: a dataset that counts would decide it.");
}

TEST(Judging, SaysHowManySeedsWouldDecide) {
  EXPECT_DOUBLE_EQ(part_above("C", kOpen, 0).times.value(), 9);
  EXPECT_FALSE(part_above("A", kAbove, 0).times);             // decided
  EXPECT_FALSE(part_above("D", around(1e-4, 0.2), 0).times);  // no number that can be planned with
  EXPECT_FALSE(part_above("D", kBare, 0).times);
  EXPECT_DOUBLE_EQ(part_of_all("E", tally_of({kAbove, kOpen})).times.value(), 9);
  // Of several open parts the one that needs most, and nothing where one of them cannot be decided.
  const ClaimPart nine = part_above("C", kOpen, 0), four = part_above("F", around(0.1, 0.2), 0),
                  never = part_above("D", kBare, 0);
  EXPECT_DOUBLE_EQ(times_of({four, nine, part_above("A", kAbove, 0)}).value(), 9);
  EXPECT_FALSE(times_of({four, never}));
  EXPECT_FALSE(times_of(std::vector<ClaimPart>{}));
  const Verdict open = all_above(0, "L6", "", "", {{"a", kOpen}, {"b", kAbove}}, "", 3);
  EXPECT_DOUBLE_EQ(open.times.value(), 9);
  EXPECT_FALSE(all_above(0, "L6", "", "", {{"a", kAbove}}, "", 3).times);
}

TEST(Judging, SaysInOneSentenceWhatBecameOfAClaim) {
  EXPECT_EQ(plain_sentence(kHolds, "it is best"), "Yes: it is best.");
  EXPECT_EQ(plain_sentence(kFails, "it is best"), "No: it is not true that it is best.");
  EXPECT_EQ(plain_sentence(kInPart, "it is best"), "Partly: it is true in some cases and not in others that it is best.");
  EXPECT_EQ(plain_sentence(kNotDecided, "it is best"), "Not known yet: whether it is best.");
}

TEST(Judging, NamesTheCasesOfAVerdictInPart) {
  const std::vector<Case> cases{{"a", kAbove}, {"b", kAbove}, {"c", kBelow}};
  EXPECT_EQ(what_settles(kInPart, tally_above(cases, 0)), "Surely for it: a; b. Surely against it: c.");
  EXPECT_EQ(what_settles(kHolds, tally_above(cases, 0)), "");
  EXPECT_NE(all_above(0, "L6", "", "", cases, "", 3).why.find("Surely against it: c."), std::string::npos);
}

TEST(Judging, OfAMeanOverDatasets) {
  const std::vector<Case> apart{{"a", around(1, 0.3)}, {"b", around(3, 0.4)}};
  const Value mean = mean_over(apart);
  EXPECT_DOUBLE_EQ(mean.value, 2);
  EXPECT_NEAR(*mean.low, 2 - 0.25, 1e-12);  // sqrt(.3^2 + .4^2) / 2
  EXPECT_NEAR(*mean.high, 2 + 0.25, 1e-12);
  EXPECT_FALSE(mean_over({{"a", around(1, 0.3)}, {"b", kBare}}).low);
  EXPECT_TRUE(std::isnan(mean_over({}).value));
  EXPECT_EQ(judge_mean_above(apart, 0), kHolds);
  EXPECT_EQ(judge_mean_above({{"a", around(3, 0.3)}, {"b", kBelow}}, 0), kInPart);
}

Value spread(double low, double high) {
  return {.value = (low + high) / 2, .low = low, .high = high};
}

TEST(Judging, OfAllCasesAboveALimit) {
  // The second has the higher mean and the lower end.
  const std::vector<Case> cases{{"first", spread(0.1, 0.2)}, {"second", spread(-0.2, 0.8)}, {"undefined", {}}};
  EXPECT_EQ(lowest_of(cases)->name, "second");
  EXPECT_EQ(lowest_of({{"undefined", {}}}), nullptr);
  const Verdict half = all_above(0, "L6", "all are more robust", "robust minus natural", cases, "", 3);
  EXPECT_EQ(half.judgement, kNotDecided);  // one of two
  EXPECT_EQ(half.number, 1);
  EXPECT_EQ(half.low, 0.5);
  EXPECT_EQ(
      half.why,
      "Number: share of the cases in which robust minus natural is above 0; 2 cases: 1 for it, 0 against it, 1 open. It reaches "
      "lowest in second, 0.300 [-0.200, 0.800]. About 2.8 times as many seeds would decide more than half of the cases, if the "
      "means stay as they are. Cases: first 0.150 [0.100, 0.200]; second 0.300 [-0.200, 0.800].");
  const Verdict only = all_above(0.9, "L2", "it stays", "what stays", {{"mnist", spread(0.1, 0.2)}}, "Also.", 3);
  EXPECT_EQ(only.judgement, kFails);
  EXPECT_EQ(only.high, 0.2);
  EXPECT_EQ(only.why, "Number: what stays, mnist; above 0.9 is for the claim. Also.");
  const auto judged = [](const std::vector<Value>& values, double limit) {
    std::vector<Case> all;
    for (const Value& value : values) all.push_back({"one", value});
    return all_above(limit, "L6", "", "", all, "Also.", 3).judgement;
  };
  EXPECT_EQ(judged({spread(2, 3), spread(1.9, 2), spread(1.7, 2)}, 1.8), kHolds);
  EXPECT_EQ(judged({spread(1.7, 1.9), spread(1.6, 2)}, 1.8), kNotDecided);  // open ones are neither for it nor against it
  EXPECT_EQ(judged({spread(2, 3), spread(1, 1.5)}, 1.8), kInPart);
  EXPECT_EQ(judged({spread(2, 3), spread(1, 1.5), spread(1, 1.2)}, 1.8), kFails);
  EXPECT_EQ(judged({{.value = 5}}, 1.8), kNotDecided);  // a number without an interval
  EXPECT_EQ(judged({}, 1.8), kNotDecided);
  EXPECT_EQ(outcome_above({{"one", spread(0.1, 0.2)}}, 0.3), "1 case: 0 for it, 1 against it, 0 open");
}

TEST(Judging, OfReadings) {
  EXPECT_EQ(agreed({kHolds, kHolds}), kHolds);
  EXPECT_EQ(agreed({kHolds, kFails}), kNotDecided);
  EXPECT_EQ(agreed({}), kNotDecided);
  EXPECT_EQ(make_verdict("L6", "", kHolds, "A sentence. ", {}, 3).why, "A sentence.");
}

}  // namespace
}  // namespace holdfast::experiment

// How the R2ET experiments come from numbers to verdicts: by intervals, never by means alone.
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "../../src/experiment/r2et/claims.h"
#include "../../src/experiment/r2et/regime.h"
#include "../../src/experiment/r2et/specific.h"
#include "holdfast/core/torch.h"

namespace holdfast::experiment::paper::r2et {
namespace {

constexpr Judgement kHolds = Judgement::kHolds, kInPart = Judgement::kHoldsInPart, kFails = Judgement::kDoesNotHold,
                    kNotDecided = Judgement::kNotDecided;

const Paper& r2et_paper() {
  return paper_named("r2et", Scale::kFull);
}

// All but ours and those of the retraining alone.
std::vector<Method> paper_methods() {
  std::vector<Method> methods;
  for (const Method& method : r2et_paper().methods) {
    if (method.name != "CL" && method.name != "pair hinge") methods.push_back(method);
  }
  return methods;
}

Value around(double value, double half) {
  return {.value = value, .low = value - half, .high = value + half};
}

const Value kAbove = around(0.3, 0.1), kBelow = around(-0.3, 0.1), kOpen = around(0.1, 0.3), kBare{.value = 0.5};

TEST(R2etPublished, AreThePapers) {
  EXPECT_EQ(r2et_paper().published("er", "R2ET\\H", "Bank"), 1.0);
  EXPECT_EQ(r2et_paper().published("mse", "AT", "COMPAS"), 0.905);
  EXPECT_EQ(r2et_paper().published("er", "R2ET", "ADHD"), 0.716);
  EXPECT_EQ(r2et_paper().published("thickness", "SP", "COMPAS"), 0.9999);
  EXPECT_EQ(r2et_paper().published("suff", "SSR", "Bank"), 0.01);
  EXPECT_EQ(r2et_paper().published("retrained", "CL", "COMPAS"), 0.871);
  EXPECT_FALSE(r2et_paper().published("retrained", "Exact-H", "Bank"));
  EXPECT_FALSE(r2et_paper().published("er", "SSR", "MNIST"));
  EXPECT_FALSE(r2et_paper().published("er", "", "Bank"));
  // The paper says that more than half keep 90 % under mse; its table has 31 of 69.
  int models = 0, keep = 0;
  for (const Method& method : paper_methods()) {
    for (const char* dataset : {"Adult", "Bank", "COMPAS", "MNIST", "CIFAR-10", "ADHD", "BP"}) {
      const auto found = is_as_printed(method) ? r2et_paper().published("mse", method.paper, dataset) : std::nullopt;
      models += found ? 1 : 0;
      keep += found && *found >= 0.9 ? 1 : 0;
    }
  }
  EXPECT_EQ(models, 69);
  EXPECT_EQ(keep, 31);
}

// Every method has P@k .5 with all seeds, but for those that are named, by seed.
using ByName = std::map<std::string, std::vector<double>>;
Ordering ordering_of(const std::string& dataset, const ByName& named, const std::string& encoding = "one-hot") {
  Ordering ordering{.setting = {.dataset = dataset, .encoding = encoding, .members = 3}};
  ordering.setting.kind = encoding.empty() ? "image" : "table";
  for (const Method& method : paper_methods()) {
    const auto found = named.find(method.name);
    ordering.methods.push_back(method);
    ordering.values.emplace_back();
    for (const double value : found == named.end() ? std::vector<double>{0.5, 0.5, 0.5} : found->second)
      ordering.values.back().push_back({value, value});
    ordering.means.push_back(defined_mean(ordering.member_means(ordering.values.size() - 1)));
    ordering.published.push_back(r2et_paper().published("er", method.paper, dataset).value_or(std::nan("")));
    ordering.areas.push_back(0.9);
  }
  return ordering;
}

TEST(R2etOrderings, AgreeByKendall) {
  Ordering same = ordering_of("Adult", {});
  for (std::size_t i = 0; i < same.methods.size(); ++i) {
    same.means[i] = same.published[i];
    same.values[i] = {{same.published[i]}, {same.published[i]}, {same.published[i]}};
  }
  const Value agreed = agreement(same, is_as_printed, 0);
  EXPECT_DOUBLE_EQ(agreed.value, 1);
  EXPECT_DOUBLE_EQ(*agreed.low, 1);
  EXPECT_EQ(agreed.count, 11);  // linear has no number there
  // Turned round with one seed of three: the means still agree, the interval knows.
  Ordering unsteady = same;
  for (auto& members : unsteady.values) members[2] = {1.4 - 1.4 * members[2][0]};
  const Value unsure = agreement(unsteady, is_as_printed, 0);
  EXPECT_DOUBLE_EQ(unsure.value, 1);
  EXPECT_LT(*unsure.low, 0.5);
  EXPECT_DOUBLE_EQ(agreement(same, same, 0).value, 1);
  EXPECT_EQ(agreement(same, same, 0).count, 15);  // R2ET with softplus as well
}

TEST(R2etOrderings, LeadOfTheBestVariant) {
  Ordering one = ordering_of("Adult", {{"R2ET", {0.8, 0.9, 0.85}}, {"SP", {0.6, 0.7, 0.65}}, {"linear", {1, 1, 1}}});
  const Lead ahead = lead(one, false, false, 0);
  EXPECT_EQ(ahead.variant, "R2ET");
  EXPECT_EQ(ahead.other, "SP");              // the linear model is no method of the paper
  EXPECT_NEAR(*ahead.value.low, 0.2, 1e-9);  // paired: the same with every seed
  EXPECT_EQ(lead(one, true, false, 0).variant, "R2ET\\H, softplus");
  EXPECT_NEAR(lead(one, true, false, 0).value.value, -0.15, 1e-9);
  one.areas[one.place_of("R2ET")] = 0.6;  // bought with its accuracy
  EXPECT_NEAR(lead(one, false, true, 0).value.value, -0.15, 1e-9);
  for (double& area : one.areas) area = 0.6;
  one.areas[one.place_of("Vanilla")] = 0.9;
  EXPECT_EQ(lead(one, false, true, 0).variant, "");
}

// Vanilla and R2ET with these AUCs on the validation samples, one network each; `low` is the lower end of Vanilla's test AUC.
std::vector<MethodNetworks> networks_with(double vanilla, double r2et, double low) {
  std::vector<MethodNetworks> all;
  for (const auto& [name, area] : {std::pair("Vanilla", vanilla), {"R2ET", r2et}}) {
    TrainedModel trained;
    trained.validation = PredictionQuality{.auc = {.mean = area}};
    trained.test = PredictionQuality{.auc = {.mean = low + 0.05, .low = low, .high = low + 0.1}};
    all.push_back({r2et_paper().method(name), "", {{nullptr, trained}}});
  }
  return all;
}

TEST(R2etProtocol, ANetworkCountsOnlyIfItWorks) {
  const auto standings = [](std::vector<MethodNetworks> all) {
    judge_standing(all, std::nan(""));
    return std::pair(all[0].standing, all[1].standing);
  };
  EXPECT_EQ(standings(networks_with(0.9, 0.895, 0.85)), std::pair(std::string(), std::string()));
  EXPECT_EQ(standings(networks_with(0.9, 0.88, 0.85)), std::pair(std::string(), kLosesAuc));
  EXPECT_EQ(standings(networks_with(0.9, 0.9, 0.59)), std::pair(kNotCounted, kNotCounted));  // not surely above .6
  // Without Vanilla's own networks those of the choice are the measure.
  std::vector<MethodNetworks> alone{networks_with(0.9, 0.88, 0.85)[1]};
  judge_standing(alone, 0.9);
  EXPECT_EQ(alone[0].standing, kLosesAuc);
  // What has no admissible weight stays so.
  std::vector<MethodNetworks> none = networks_with(0.9, 0.9, 0.85);
  none[1].standing = kNoWeight;
  judge_standing(none, std::nan(""));
  EXPECT_EQ(none[1].standing, kNoWeight);
}

TEST(R2etProtocol, WeightsAreChosenAmongAdmissibleOnes) {
  const std::vector<ChosenWeight> chosen = best_weights({{0, "a", 0.90, 0.5},
                                                         {0, "b", 0.895, 0.7},
                                                         {0, "c", 0.80, 0.9},  // the most robust, at too low an AUC
                                                         {2, "d", 0.70, 0.9},
                                                         {2, "e", 0.75, 0.1}},
                                                        3, 0.89);
  EXPECT_EQ(chosen[0].weights, "b");
  EXPECT_TRUE(chosen[0].is_admissible && chosen[1].is_admissible);  // the second has nothing to choose
  EXPECT_EQ(chosen[2].weights, "e");                                // the highest AUC, and it is said
  EXPECT_FALSE(chosen[2].is_admissible);
}

TEST(R2etProtocol, WhatDoesNotCountEntersNoOrdering) {
  Ordering one = ordering_of("Adult", {{"R2ET", {0.8, 0.81, 0.8}}, {"SP", {0.6, 0.61, 0.6}}});
  EXPECT_EQ(best(one), "R2ET");
  one.left_out.assign(one.methods.size(), false);
  one.left_out[one.place_of("R2ET")] = true;
  EXPECT_EQ(best(one), "SP");
  EXPECT_NE(lead(one, false, false, 0).variant, "R2ET");
  EXPECT_EQ(agreement(one, one, 0).count, 14);
  EXPECT_EQ(judge_mse({one}, {one}, 0.9, 0).words.at("models"), "10");
  Ordering other = one;
  other.is_counted = false;
  EXPECT_EQ(counted({one, other}).size(), 1);
  // The other pair of the Hessian term is left: R2ET-mm, .5 in both forms.
  const Finding term = judge_hessian_term({one});
  EXPECT_EQ(term.number.value, 0);
}

Finding best_of(const std::vector<ByName>& datasets) {
  std::vector<Ordering> all;
  for (const ByName& named : datasets) all.push_back(ordering_of("Adult", named));
  return judge_best({{"under er", all}}, 0);
}

TEST(R2etOrderings, R2etIsBestWhereIntervalsSaySo) {
  const ByName both{{"R2ET", {0.8, 0.81, 0.8}}, {"R2ET, softplus", {0.8, 0.81, 0.8}}},
      likely{{"R2ET", {0.55, 0.9, 0.5}}, {"R2ET, softplus", {0.55, 0.9, 0.5}}}, neither{{"SP", {0.8, 0.81, 0.8}}},
      relu_only{{"R2ET", {0.8, 0.81, 0.8}}, {"SP", {0.6, 0.61, 0.6}}};
  EXPECT_EQ(best_of({both, both, neither}).judgement, kHolds);
  EXPECT_EQ(best_of({likely, likely, likely}).judgement, kNotDecided);
  EXPECT_EQ(best_of({likely, likely, likely}).number.value, 1.0);
  EXPECT_EQ(best_of({likely, likely, likely}).number.low, 0.0);
  EXPECT_EQ(best_of({neither, neither, both}).judgement, kFails);
  EXPECT_EQ(best_of({relu_only, relu_only, relu_only}).judgement, kInPart);
  // Without the gauge: it may take from the claim, not add to it.
  const auto two_ways = [](const ByName& as_printed, const ByName& dropped) {
    return judge_best({{"under er", {ordering_of("Adult", as_printed), ordering_of("Adult", dropped, "one level dropped")}}}, 0);
  };
  EXPECT_EQ(two_ways(both, both).judgement, kHolds);
  EXPECT_EQ(two_ways(both, neither).judgement, kInPart);
  EXPECT_EQ(two_ways(neither, both).judgement, kFails);
}

TEST(R2etOrderings, HessianOnlyMethodsAreHeldAgainstVanilla) {
  const std::vector<double> high{0.8, 0.81, 0.8}, low{0.3, 0.31, 0.3}, wide{0.2, 0.9, 0.6};
  const auto judged = [&](const ByName& named) {
    return judge_hessian_only({"under er", {ordering_of("Adult", named)}}, 0.02, 0);
  };
  EXPECT_EQ(judged({{"Est-H", low}, {"Exact-H", low}, {"SSR", low}}).judgement, kHolds);
  EXPECT_EQ(judged({{"Est-H", high}, {"Exact-H", high}, {"SSR", low}}).judgement, kFails);
  EXPECT_EQ(judged({{"Est-H", high}, {"Exact-H", low}, {"SSR", low}}).judgement, kInPart);
  // What is not shown to gain is not shown to gain nothing.
  EXPECT_EQ(judged({{"Est-H", wide}, {"Exact-H", wide}, {"SSR", low}}).judgement, kNotDecided);
}

TEST(R2etClaims, MseIsJudgedOnThePapersModels) {
  const Ordering er = ordering_of("Adult", {}), dropped = ordering_of("Adult", {}, "one level dropped");
  ByName weak;
  for (const Method& method : paper_methods()) weak[method.name] = {0.95, 0.96, 0.95};
  const Ordering mse = ordering_of("Adult", weak);
  const Finding both = judge_mse({er, dropped}, {mse, dropped}, 0.9, 0);
  EXPECT_EQ(both.judgement, kHolds);
  EXPECT_EQ(both.number.value, 1.0);
  EXPECT_EQ(both.words.at("models"), "11");  // no softplus, no linear, no other encoding
  for (auto& [name, values] : weak) values = {0.7, 0.71, 0.7};
  EXPECT_EQ(judge_mse({er}, {ordering_of("Adult", weak)}, 0.9, 0).judgement, kInPart);  // weaker, and 90 % are not kept
  for (auto& [name, values] : weak) values = {0.2, 0.21, 0.2};
  EXPECT_EQ(judge_mse({er}, {ordering_of("Adult", weak)}, 0.9, 0).judgement, kFails);
}

TEST(R2etClaims, TheHessianTermIsJudgedByKindOfData) {
  const auto without = [](double gain) {
    ByName named;
    for (const char* name : {"R2ET\\H", "R2ET-mm\\H", "R2ET\\H, softplus", "R2ET-mm\\H, softplus"})
      named[name] = {0.5 + gain, 0.5 + gain, 0.51 + gain};
    return named;
  };
  const auto judged = [&](double on_tables, double on_images) {
    return judge_hessian_term({ordering_of("Adult", without(on_tables)), ordering_of("MNIST", without(on_images), "")});
  };
  EXPECT_EQ(judged(0.2, -0.2).judgement, kHolds);
  EXPECT_EQ(judged(-0.2, 0.2).judgement, kFails);
  EXPECT_EQ(judged(0.2, 0.2).judgement, kInPart);
  EXPECT_NEAR(judged(0.2, 0.2).number.value, 0.2 + 0.01 / 3, 1e-9);
}

TEST(R2etClaims, AtIsUnstableWhereItFallsAndVaries) {
  const ByName falls{{"AT", {0.1, 0.3, 0.2}}, {"R2ET\\H", {0.5, 0.51, 0.52}}},
      steady{{"AT", {0.8, 0.81, 0.8}}, {"R2ET\\H", {0.1, 0.8, 0.5}}};
  EXPECT_EQ(judge_unstable({ordering_of("Adult", falls), ordering_of("Bank", falls)}, 0).judgement, kHolds);
  EXPECT_EQ(judge_unstable({ordering_of("Adult", steady), ordering_of("Bank", steady)}, 0).judgement, kFails);
  // It falls, and varies less than R2ET\H.
  const ByName in_part{{"AT", {0.1, 0.102, 0.101}}, {"R2ET\\H", {0.3, 0.7, 0.5}}},
      in_part_too{{"AT", {0.2, 0.203, 0.201}}, {"R2ET\\H", {0.3, 0.7, 0.52}}};
  EXPECT_EQ(judge_unstable({ordering_of("Adult", in_part), ordering_of("Bank", in_part_too)}, 0).judgement, kInPart);
}

TEST(R2etClaims, AreOpenWhereIntervalsAreWide) {
  const std::vector<double> wide{0.1, 0.9, 0.5};
  ByName all;
  for (const Method& method : paper_methods()) all[method.name] = wide;
  const Ordering er = ordering_of("Adult", {}), unsure = ordering_of("Adult", all);
  EXPECT_EQ(judge_mse({er}, {unsure}, 0.9, 0).judgement, kNotDecided);
  EXPECT_EQ(judge_unstable({ordering_of("Adult", {{"AT", wide}}), ordering_of("Bank", {{"AT", wide}})}, 0).judgement,
            kNotDecided);
  EXPECT_EQ(judge_hessian_term({ordering_of("Adult", {{"R2ET", wide}, {"R2ET, softplus", wide}}),
                                ordering_of("MNIST", {{"R2ET", wide}, {"R2ET, softplus", wide}}, "")})
                .judgement,
            kNotDecided);
}

TEST(R2etClaims, AtIsNotUnstableByItsSpreadAlone) {
  const ByName varies{{"AT", {0.3, 0.7, 0.55}}, {"R2ET\\H", {0.5, 0.501, 0.502}}},
      varies_more{{"AT", {0.2, 0.8, 0.5}}, {"R2ET\\H", {0.5, 0.502, 0.501}}};
  const Finding found = judge_unstable({ordering_of("Adult", varies), ordering_of("Bank", varies_more)}, 0);
  EXPECT_EQ(found.judgement, kNotDecided);  // whether it falls is open
  EXPECT_EQ(found.parts[1].judgement, kHolds);
  EXPECT_NE(found.parts[0].needs.find("seeds"), std::string::npos);
}

TEST(R2etClaims, L2IsJudgedByTwoLimits) {
  const auto judged = [](double share, double half) { return judge_l2({{"Adult", around(share, half)}}, 0.1, 0.2).judgement; };
  EXPECT_EQ(judged(0.3, 0.05), kHolds);
  EXPECT_EQ(judged(0.15, 0.03), kInPart);
  EXPECT_EQ(judged(0.17, 0.05), kNotDecided);  // surely some, not surely less than much
  EXPECT_EQ(judged(0.05, 0.03), kFails);
  EXPECT_EQ(judged(0.1, 0.05), kNotDecided);
}

TEST(R2etClaims, TheBestIsTheThickestByIntervals) {
  const ByName best_r2et{{"R2ET", {0.8, 0.81, 0.8}}}, best_sp{{"SP", {0.8, 0.81, 0.8}}}, open{{"R2ET", {0.5, 0.9, 0.52}}};
  const auto judged = [](const std::vector<std::pair<ByName, ByName>>& datasets) {
    std::vector<Ordering> robust, thick;
    for (const auto& [by_p, by_thickness] : datasets) {
      robust.push_back(ordering_of("Adult", by_p));
      thick.push_back(ordering_of("Adult", by_thickness));
    }
    return judge_thickest(robust, thick, 0.001, 0).judgement;
  };
  EXPECT_EQ(judged({{best_r2et, best_r2et}, {best_sp, best_sp}}), kHolds);
  EXPECT_EQ(judged({{best_r2et, best_sp}, {best_sp, best_r2et}}), kFails);
  EXPECT_EQ(judged({{best_r2et, best_r2et}, {best_sp, best_sp}, {best_r2et, best_sp}}), kInPart);
  EXPECT_EQ(judged({{open, open}}), kNotDecided);
}

// A dataset with two networks whose correlations are these.
SwapCorrelations swaps(double thickness, double flatness, double spread) {
  SwapCorrelations found{{.dataset = "Adult", .encoding = "one-hot"}, std::vector<SwapCorrelations::Network>(3)};
  for (std::size_t i = 0; i < 3; ++i) found.networks[i].add(thickness + spread * (static_cast<double>(i) - 1), flatness);
  return found;
}

TEST(R2etClaims, TheFirstSwapIsPredictedOrNot) {
  EXPECT_EQ(judge_swaps({swaps(0.6, 0.1, 0.01)}, 0.2, 0.1).judgement, kHolds);
  EXPECT_EQ(judge_swaps({swaps(0.6, 0.6, 0.01)}, 0.2, 0.1).judgement, kInPart);
  EXPECT_EQ(judge_swaps({swaps(0.0, 0.1, 0.01)}, 0.2, 0.1).judgement, kFails);
  EXPECT_EQ(judge_swaps({swaps(0.2, 0.1, 0.3)}, 0.2, 0.1).judgement, kNotDecided);
  SwapCorrelations undefined = swaps(0.6, 0.1, 0.01);
  undefined.networks[0].add(std::nan(""), 0.1);
  EXPECT_EQ(judge_swaps({undefined}, 0.2, 0.1).words.at("undefined"), "1");
}

// Three networks of Vanilla, AT and R2ET, one number each; R2ET is ahead by `gain`.
Judgement faithful(double gain, double spread) {
  std::vector<MethodNetworks> networks;
  std::vector<MeasuredRow> rows;
  for (const Method& method : paper_methods()) networks.push_back({method, "", {}});
  for (const MethodNetworks& one : networks) {
    const double ahead = one.method.is_r2et() ? gain : 0;
    MeasuredRow row{nullptr, &one, {}, {}, {}};
    row.numbers.push_back(one_each({0.5 + ahead - spread, 0.5 + ahead, 0.5 + ahead + 2 * spread}));
    if (!one.method.is_r2et()) row.numbers.back() = one_each({0.5, 0.5, 0.5});
    rows.push_back(row);
  }
  std::vector<const MeasuredRow*> places;
  for (const MeasuredRow& row : rows) places.push_back(&row);
  FaithfulCounts counts;
  counts.add(places, 0, /*higher_is_better=*/true, /*by_zero=*/true, 0.01);
  EXPECT_EQ(counts.zero.all, 4);
  EXPECT_EQ(counts.zero_softplus.all, 4);
  EXPECT_EQ(counts.resampled.all, 0);
  return combined(counts.parts());
}

TEST(R2etClaims, FaithfulnessIsHeldAgainstTheOthersMean) {
  EXPECT_EQ(faithful(0.1, 0.001), kHolds);
  EXPECT_EQ(faithful(-0.1, 0.001), kFails);
  EXPECT_EQ(faithful(0, 0.1), kNotDecided);
  FaithfulCounts counts;
  counts.zero = {.in_favour = 4, .against = 0, .likely = 4, .all = 4};
  counts.zero_softplus = {.in_favour = 0, .against = 4, .likely = 0, .all = 4};
  EXPECT_EQ(combined(counts.parts()), kInPart);
}

TEST(R2etClaims, RetrainingIsJudgedInThreeParts) {
  const std::vector<double> limits{0.02, 0.8, 0.02};
  const auto judged = [&](const Value& reached, const Value& kept, const Value& gain) {
    return judge_retraining({.reached = {{"Bank", reached}}, .kept = {{"Bank", kept}}, .hessian_on_bank = {{"SSR", gain}}},
                            limits)
        .judgement;
  };
  EXPECT_EQ(judged(around(0, 0.01), around(0.9, 0.01), around(-0.1, 0.01)), kHolds);
  EXPECT_EQ(judged(around(-0.2, 0.01), around(0.5, 0.01), around(0.2, 0.01)), kFails);
  EXPECT_EQ(judged(around(-0.2, 0.01), around(0.9, 0.01), around(0.2, 0.01)), kInPart);
  EXPECT_EQ(judged(around(0, 0.5), around(0.8, 0.1), around(0, 0.5)), kNotDecided);
}

// One network of each kind with these shares of violations.
AllViolations violations(double relu, double smooth, double above) {
  AllViolations all;
  for (std::size_t seed = 0; seed < 3; ++seed) {
    all.printed_relu.add(seed, {.below = relu});
    all.printed_smooth.add(seed, {.below = smooth, .above = above});
  }
  return all;
}

TEST(R2etClaims, AViolationRefutesABound) {
  EXPECT_EQ(judge_bounds(violations(0, 0, 0), 0.001).judgement, kHolds);
  EXPECT_EQ(judge_bounds(violations(0.3, 0, 0), 0.001).judgement, kInPart);
  EXPECT_EQ(judge_bounds(violations(0.3, 0.2, 0.1), 0.001).judgement, kFails);
  AllViolations unsure = violations(0, 0, 0);
  for (NetworkViolations* networks : {&unsure.printed_relu, &unsure.printed_smooth})
    networks->by_seed[0][0] = {.below = 0.01, .above = 0.01};
  EXPECT_EQ(judge_bounds(unsure, 0.001).judgement, kNotDecided);
  const MeasuredCell thickness{{0.5, 0.5}, {{"error", {0.01, 0.01}}}},
      bounds{{0.6, 0.52}, {{"upper", {0.7, 0.7}}, {"gap", {1, 1}}}};
  const Violations found = violations_of(thickness, bounds);
  EXPECT_EQ(found.below_count, 1);  // .02 below is within four standard errors
  EXPECT_EQ(found.above_count, 0);
}

TEST(R2etClaims, StrokesAreJudgedInTwoParts) {
  const auto judged = [](const std::vector<double>& vanilla, const std::vector<double>& r2et) {
    return judge_strokes({{{"Vanilla", vanilla}, {"SP", vanilla}, {"R2ET", r2et}}, 0.1}, 0.1).judgement;
  };
  EXPECT_EQ(judged({0.01, 0.02, 0.01}, {0.5, 0.51, 0.5}), kHolds);
  EXPECT_EQ(judged({0.3, 0.31, 0.3}, {0.5, 0.51, 0.5}), kInPart);
  EXPECT_EQ(judged({0.3, 0.31, 0.3}, {0.1, 0.11, 0.1}), kFails);
  EXPECT_EQ(judged({0.0, 0.2, 0.1}, {0.0, 0.3, 0.1}), kNotDecided);
}

TEST(R2etClaims, CostIsJudgedAgainstBothForms) {
  const auto judged = [](const Value& step, const Value& iteration) {
    const std::vector<Case> steps{{"Adult", step}}, iterations{{"Adult", iteration}};
    return judge_cost({{"R2ET\\H", steps, iterations}, {"R2ET", steps, iterations}}, 1).judgement;
  };
  EXPECT_EQ(judged(around(3, 0.1), around(2, 0.1)), kHolds);
  EXPECT_EQ(judged(around(3, 0.1), around(0.5, 0.1)), kInPart);
  EXPECT_EQ(judged(around(0.5, 0.1), around(0.2, 0.1)), kFails);
  EXPECT_EQ(judged(around(1, 0.5), around(1, 0.5)), kNotDecided);
}

TEST(R2etSpecific, WeightsAreChosenByLiftThenBetweenAndByAucWhereNoneIsWithin) {
  const double undefined = std::nan("");
  const std::vector<robust::CandidateScore> candidates{{"linear", 0.85, 0, 1},
                                                       {"SP", 0.80, 0.9, 0.1},  // the highest lift, at too low an AUC
                                                       {"SP", 0.90, 0.5, 0.9},
                                                       {"SP", 0.91, 0.5, 0.7},  // the same, further from one ranking for all
                                                       {"SP", 0.92, 0.4, 0.1},
                                                       {"AT", 0.70, 0.9, 0.2},
                                                       {"AT", 0.75, 0.1, 0.9},  // none is within: the AUC decides
                                                       {"WD", 0.95, undefined, undefined},
                                                       {"WD", 0.91, -3, 0.5},
                                                       {"WD", 0.92, -3, undefined}};
  EXPECT_EQ(robust::choose(candidates, 0.89), (std::vector<std::size_t>{0, 3, 6, 8}));
}

TEST(R2etSpecific, OfWeightsThatAreRobustAndSpecificTheHighestAucIsTaken) {
  const std::vector<robust::CandidateScore> candidates{{"own top", 0.90, 0.5, 0.5, true},
                                                       {"own top", 0.91, 0.3, 0.6, true},
                                                       {"own top", 0.93, 0.6, 0.4, false},  // one top set
                                                       {"own top", 0.88, 0.7, 0.2, true}};  // too low an AUC
  EXPECT_EQ(robust::choose(candidates, 0.89), (std::vector<std::size_t>{1}));
}

// A regime whose Vanilla has these P@k and AUCs on Adult and Bank; the paper's P@k is .876 and .83.
RegimeFit fit_of(std::int64_t steps, double adult, double bank, double area, bool works = true) {
  const auto table = [&](const char* name, double kept, double published) {
    return VanillaOnTable{name, {.values = {{kept - 0.01}, {kept}, {kept + 0.01}}}, published, area, works};
  };
  return {{"adam", "32", "8", steps}, {table("Adult", adult, 0.876), table("Bank", bank, 0.83)}};
}

TEST(R2etRegime, TheNearestKeepsTheAucAndWorks) {
  RegimeFit one_table = fit_of(5, 0.876, 0.83, 0.9);
  one_table.tables.pop_back();
  const std::vector<RegimeFit> fits = ranked({fit_of(1, 0.90, 0.73, 0.905),         // away by .1 on Bank
                                              fit_of(2, 0.876, 0.83, 0.88),         // the nearest, but it loses AUC
                                              fit_of(3, 0.80, 0.83, 0.895),         // away by .076 on Adult
                                              fit_of(4, 0.876, 0.83, 0.91, false),  // it does not work
                                              one_table});
  ASSERT_EQ(fits.size(), 3U);
  std::vector<std::int64_t> order;
  for (const RegimeFit& fit : fits) order.push_back(fit.regime.steps);
  // The best AUC is that of the networks that do not work: .895 is more than .01 below it, .905 is not.
  EXPECT_EQ(order, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_NEAR(fits[0].distance(), (0.024 + 0.1) / 2, 1e-12);
  EXPECT_NEAR(fits[1].lost, 0.03, 1e-12);
  EXPECT_FALSE(fits[1].keeps_auc() || fits[2].keeps_auc());
  EXPECT_EQ(fits[0].regime.words(), "adam, batch 32, width 8, 1 steps");
}

TEST(R2etRegime, IsNearWhereTheIntervalSaysSo) {
  const auto judgement = [](double adult, double bank) { return judge_regime(fit_of(1, adult, bank, 0.9), 0.05, 0).judgement; };
  EXPECT_EQ(judgement(0.88, 0.83), kHolds);
  EXPECT_EQ(judgement(0.88, 0.60), kInPart);
  EXPECT_EQ(judgement(0.60, 0.60), kFails);
  EXPECT_EQ(judgement(0.88, 0.79), kNotDecided);  // .04 away, and its interval reaches past .05
  const Finding far = judge_regime(fit_of(1, 0.80, 0.83, 0.9), 0.05, 0);
  EXPECT_NEAR(far.number.value, 0.076, 1e-12);
  EXPECT_GT(*far.number.low, 0.05);
  // Around 0 the distance's interval begins there.
  EXPECT_EQ(*distance(fit_of(1, 0.88, 0.83, 0.9).tables[1], 0).low, 0);
}

// Three networks of one method that are the same but for a little; `spread` lets the lift differ.
robust::Networks networks_like(double lift, double sets, double own, double loss, double spread = 0.001) {
  robust::Networks one{.method = "SP", .rows = {}, .losses = {}};
  for (const double step : {-1.0, 0.0, 1.0}) {
    one.rows.push_back({0.9, 0.5, lift + spread * step, sets, own});
    one.losses.push_back(loss + 1e-5 * step);
  }
  return one;
}

TEST(R2etSpecific, ATableNeedsEveryNumberAndTheAuc) {
  const auto judged = [](const std::vector<robust::Networks>& all) { return robust::judge_table("Adult", all).judgement; };
  const robust::Networks met = networks_like(0.4, 5, 0.1, 0), open = networks_like(0.25, 5, 0.1, 0, 0.2);
  EXPECT_EQ(judged({met}), kHolds);
  EXPECT_EQ(judged({networks_like(0.1, 5, 0.1, 0)}), kFails);
  EXPECT_EQ(judged({networks_like(0.4, 2, 0.1, 0)}), kFails);
  EXPECT_EQ(judged({networks_like(0.4, 5, 0, 0)}), kFails);
  EXPECT_EQ(judged({networks_like(0.4, 5, 0.1, -0.01)}), kFails);  // it costs too much AUC
  EXPECT_EQ(judged({open}), kNotDecided);
  EXPECT_EQ(judged({networks_like(std::nan(""), 5, 0.1, 0)}), kNotDecided);
  // One method is enough, wherever it stands.
  const robust::Networks lost = networks_like(0.5, 2, 0.1, 0);
  EXPECT_EQ(judged({lost, met, open}), kHolds);
  EXPECT_EQ(judged({open, lost}), kNotDecided);
  EXPECT_NEAR(robust::judge_table("Adult", {met, lost}).lift.value, 0.5, 1e-12);
}

TEST(R2etSpecific, HoldsOnThreeOfSixTables) {
  const robust::TableFinding met{"Adult", kHolds, {"SP", "WD"}, "SP", around(0.4, 0.01)},
      lost{"Bank", kFails, {}, "SP", around(0.1, 0.01)}, open{"COMPAS", kNotDecided, {}, "SP", around(0.2, 0.1)};
  EXPECT_EQ(robust::judge({met, met, met, lost, lost, lost}).judgement, kHolds);
  EXPECT_EQ(robust::judge({met, met, lost, lost, lost, lost}).judgement, kFails);
  EXPECT_EQ(robust::judge({met, met, open, lost, lost, lost}).judgement, kNotDecided);
  EXPECT_EQ(robust::judge({met, met, lost, lost}).judgement, kNotDecided);  // two tables were not tried
  EXPECT_EQ(robust::judge({lost, lost, lost, lost}).judgement, kFails);
  EXPECT_EQ(robust::judge({lost, met}).number.value, 0.4);
  EXPECT_EQ(robust::judge({lost, met}).words.at("met"), "on Adult (by SP; WD)");
  EXPECT_EQ(robust::judge({lost}).words.at("met"), "nowhere");
}

// The nearest regime is named in steps: so many are made, whatever the batch, and the last one counts.
TEST(R2etSettings, TheNearestRegimeMakesItsSteps) {
  const Plan plan = read_plan(carried_file("r2et/nearest.toml"), "r2et/nearest.toml", Scale::kFull);
  ASSERT_EQ(plan.settings.size(), 3u);
  for (const Setting& setting : plan.settings) {
    EXPECT_EQ(setting.encoding, "one-hot");
    EXPECT_EQ(setting.kept_epoch, "last");
    EXPECT_GT(setting.training_steps, 0);
  }
}

// A new claim needs tests of its verdicts above.
TEST(R2etClaims, AllAreTested) {
  std::set<std::string> tested, declared;
  for (const char* claim :
       {"table1 R1",  "table1 R2",   "table1 R3",         "table1 R4",     "table1 R7",      "table1 R13", "table2 R5",
        "table3 R8",  "table4 R9",   "fig3 R6",           "fig4 R12",      "explainers R10", "cost R7",    "bounds R11",
        "beyond R2",  "beyond R4",   "valid_rows R2",     "valid_rows R4", "nearest R1",     "nearest R2", "nearest R4",
        "nearest R7", "nearest R13", "specific specific", "regime regime"})
    tested.insert(claim);
  for (const std::string& experiment : r2et_paper().experiments) {
    const std::string name = "r2et/" + experiment;
    for (const Claim& claim : read_plan(carried_file(name + ".toml"), name, Scale::kFull).claims) {
      declared.insert(experiment + " " + claim.id);
      EXPECT_FALSE(claim.plain.empty()) << name << " " << claim.id << " has no words for a newcomer";
    }
  }
  EXPECT_EQ(declared, tested);
}

}  // namespace
}  // namespace holdfast::experiment::paper::r2et

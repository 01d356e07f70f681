#include "holdfast/report/text_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::report {
namespace {

TEST(Fixed, WhatRoundsToZeroHasNoSign) {
  EXPECT_EQ(fixed(-0.00004, 4), "0.0000");
  EXPECT_EQ(fixed(-0.00006, 4), "-0.0001");
  EXPECT_EQ(fixed(-0.0, 0), "0");
  EXPECT_EQ(fixed(0.71, 3), "0.710");
}

TEST(TextTable, AlignsNumbersRightAndWordsLeftByCharacters) {
  EXPECT_EQ(text_table({"name", "n"}, {{"é", "10"}, {"ab", "9"}}),
            "name   n\n"
            "────  ──\n"
            "é     10\n"
            "ab     9\n");
}

TEST(Wrapped, BreaksBetweenWordsAndIndentsWhatFollows) {
  EXPECT_EQ(wrapped("a sentence that is longer than forty characters are", 40),
            "a sentence that is longer than forty\n  characters are\n");
  EXPECT_EQ(wrapped("  two words that are indented, and some more", 40), "  two words that are indented, and\n    some more\n");
  EXPECT_EQ(wrapped("one line", 0), "one line\n");
  EXPECT_EQ(wrapped("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b", 40),
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n  b\n");
}

TEST(Listing, PutsTheLastColumnsSentencesInLinesOfTheirOwn) {
  EXPECT_EQ(listing({"name", "what it is"}, {{"a", "some words that do not fit into one"}, {"b", "few"}}, 32),
            "name  what it is\n"
            "────  ──────────────────────────\n"
            "a     some words that do not fit\n"
            "      into one\n"
            "b     few\n");
  EXPECT_EQ(listing({"n", "m"}, {{"a", "b c"}}, 0), "n  m\n─  ───\na  b c\n");
}

TEST(FittedTable, LeavesOutTheColumnsThatCountLeastAndSaysWhich) {
  const std::vector<TableColumn> columns{{"name", {"a"}}, {"first", {"1"}, 2}, {"second", {"2"}, 1}};
  EXPECT_EQ(fitted_table(columns, 0), "name  first  second\n────  ─────  ──────\na         1       2\n");
  EXPECT_EQ(fitted_table(columns, 12),
            "name  second\n────  ──────\na          2\nleft out for the width: first; --wide shows all\n");
  EXPECT_THAT(fitted_table(columns, 1), ::testing::StartsWith("name\n────\na\nleft out for the width: first, second;"));
}

TEST(FittedTable, CutsTextsInTheMiddleAsLongAsRowsStayApart) {
  const std::vector<TableColumn> columns{{"name", {"integrated_gradients(steps=5)", "integrated_gradients(steps=50)"}},
                                         {"n", {"1", "2"}}};
  EXPECT_EQ(fitted_table(columns, 20),
            "name               n\n─────────────────  ─\nintegrat…steps=5)  1\nintegrat…teps=50)  2\n");
  const std::vector<TableColumn> alike{{"name", {"aaaaaaaaaaXaaaaaaaaaa", "aaaaaaaaaaYaaaaaaaaaa"}}};
  EXPECT_THAT(fitted_table(alike, 10), ::testing::AllOf(::testing::HasSubstr("X"), ::testing::HasSubstr("Y")))
      << "they would look the same";
}

TEST(FittedTable, CutsLongNamesBeforeItLeavesOutWhatSaysHowToReadTheValue) {
  const std::vector<TableColumn> columns{{"explainer", {"integrated_gradients(steps=10)", "saliency"}},
                                         {"value", {"0.5", "0.6"}},
                                         {"between", {"0.1", "0.2"}, 1},
                                         {"flips", {"1 %", "2 %"}, 12}};
  EXPECT_EQ(fitted_table(columns, 30),
            "explainer       value  between\n"
            "──────────────  ─────  ───────\n"
            "integra…ps=10)    0.5      0.1\n"
            "saliency          0.6      0.2\n"
            "left out for the width: flips; --wide shows all\n");
}

TEST(FittedTable, NoTextGivesWayToALongerOne) {
  const std::vector<TableColumn> columns{{"model", {"a plain network", "another network"}},
                                         {"attack", {"random(samples=50)", "er(steps=50,k=8)"}}};
  EXPECT_EQ(fitted_table(columns, 30),
            "model           attack\n"
            "──────────────  ──────────────\n"
            "a plain…etwork  random(…es=50)\n"
            "another…etwork  er(step…0,k=8)\n");
}

TEST(ResultsTable, AVerdictUnderAnAttackThatIsBeatenSaysSo) {
  Json results =
      Json::parse(R"json({"rows": [{"dataset": "d", "model": "m", "explainer": "e", "attack": "er", "metric": "top_k(k=8)",
    "threat": {"norm": "l2", "epsilon": 0.5}, "mean": 0.5, "low": 0.4, "high": 0.6, "between": 0.25, "beaten_by": "random(samples=9)"}], "gates": []})json");
  EXPECT_THAT(results_table(results),
              ::testing::EndsWith(
                  "two different inputs share 2; but random(samples=9) does more harm: the attack is too weak to judge by\n"));
}

TEST(ResultsTable, OfManyWarningsATerminalShowsAFew) {
  Json results = Json::parse(R"json({"rows": [], "gates": []})json");
  const Json row =
      Json::parse(R"json({"dataset": "d", "model": "m", "explainer": "e", "attack": "er", "metric": "c", "mean": 0.5, "low": 0.4,
    "high": 0.6, "beaten_by": "random"})json");
  for (int i = 0; i < 9; ++i) {
    results["rows"].push_back(row);
    results["rows"].back()["threat"] = {{"norm", "l2"}, {"epsilon", i}};
  }
  const auto warnings = [&](std::size_t width) {
    const std::string text = results_table(results, width);
    std::size_t count = 0;
    for (std::size_t at = text.find("warning:"); at != std::string::npos; at = text.find("warning:", at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(warnings(0), 9);
  EXPECT_EQ(warnings(100), 6);
  EXPECT_THAT(results_table(results, 100), ::testing::HasSubstr("warning: and 4 more rows; the report has all"));
}

TEST(ResultsTable, EndsWithASentenceForEachModelAndKeepsRowsApartWhereThereIsNoRoom) {
  Json results =
      Json::parse(R"json({"rows": [{"dataset": "d", "model": "m", "explainer": "e", "attack": "weak", "metric": "top_k(k=8)",
    "threat": {"norm": "l2", "epsilon": 0.5}, "direction": "higher", "mean": 0.5, "low": 0.4, "high": 0.6, "chance": 0.2, "between": 0.25,
    "adjusted": 0.3, "specific": 0.3}], "gates": []})json");
  results["rows"].push_back(results["rows"][0]);
  results["rows"][1].update({{"attack", "strong"}, {"mean", 0.125}, {"explainer", "other"}});
  Json switched = results;
  for (Json& row : switched["rows"]) row["threat"]["switches"] = 1;
  EXPECT_THAT(results_table(switched), ::testing::HasSubstr("under strong (other, l2 <= 0.5, switches <= 1); two"));
  EXPECT_THAT(results_table(results, 60),
              ::testing::AllOf(::testing::HasSubstr("strong"), ::testing::HasSubstr("left out for the width: dataset"),
                               ::testing::EndsWith("\nm keeps 1 of its top 8 features under strong (other, l2 <=\n"
                                                   "  0.5); two different inputs share 2\n")));
  // The attack tells these rows apart as well.
  EXPECT_THAT(results_table(results, 40), ::testing::Not(::testing::HasSubstr("other  ")));
  results["rows"][1]["attack"] = "weak";
  EXPECT_THAT(results_table(results, 40), ::testing::HasSubstr("explainer"));
}

TEST(ResultsTable, ShowsUndefinedLevelsAsADash) {
  const Json results =
      Json::parse(R"json({"rows": [{"dataset": "d", "model": "m", "explainer": "e", "attack": "a", "metric": "top_k(k=2)",
    "mean": 0.5, "low": 0.4, "high": 0.6, "chance": null, "between": 1.0, "adjusted": null, "specific": null}],
    "gates": [{"gate": "top_k(k=2)>=0.9", "limit": 0.9, "met": false, "rows": [{"row": 0, "value": 0.5, "met": false}]}]})json");
  const std::string table = results_table(results);
  EXPECT_THAT(table, ::testing::HasSubstr("0.500 [0.400, 0.600]       -    1.000         -         -     -"));
  EXPECT_THAT(table, ::testing::HasSubstr("NOT MET top_k(k=2)>=0.9\n        m, e, a: 0.5000\n"));
}

TEST(ResultsTable, HasSameClassTopSetsAndTiesWhereARowHasThem) {
  Json results =
      Json::parse(R"json({"rows": [{"dataset": "d", "model": "m", "explainer": "e", "attack": "a", "metric": "top_k(k=2)",
    "mean": 0.5, "low": 0.4, "high": 0.6, "chance": 0.25, "chance_is_exact": false, "between": 0.3, "between_same_class": 0.375,
    "adjusted": 0.1, "specific": 0.2, "distinct_top_sets": 7, "tied_share": 0.0, "tied_perturbed": 1.0}], "gates": []})json");
  EXPECT_THAT(results_table(results), ::testing::AllOf(::testing::HasSubstr("same class"), ::testing::HasSubstr("~0.250"),
                                                       ::testing::HasSubstr("0.375"), ::testing::HasSubstr("7  0 %, 100 %")));
  results["rows"][0]["between_same_class"] = nullptr;
  results["rows"][0]["distinct_top_sets"] = 0;
  EXPECT_THAT(results_table(results),
              ::testing::Not(::testing::AnyOf(::testing::HasSubstr("same class"), ::testing::HasSubstr("top sets"))));
}

TEST(ResultsTable, ShowsSpecificWithWhatItMeansNothingWithout) {
  Json results =
      Json::parse(R"json({"rows": [{"dataset": "d", "model": "m", "explainer": "e", "attack": "a", "metric": "top_k(k=2)",
    "mean": 0.9, "low": 0.8, "high": 1.0, "chance": 0.25, "between": 0.8, "adjusted": 0.9, "specific": 0.5, "lift": 0.1,
    "effective_sets": 2.75, "own_advantage": -0.25, "robust_and_specific": "does not hold"}], "gates": []})json");
  EXPECT_THAT(results_table(results),
              ::testing::AllOf(::testing::HasSubstr("specific   lift  effective sets  own advantage  robust and specific"),
                               ::testing::HasSubstr("0.500  0.100             2.8         -0.250  does not hold")));
  for (const char* key : {"effective_sets", "own_advantage", "robust_and_specific"}) results["rows"][0][key] = nullptr;
  EXPECT_THAT(results_table(results), ::testing::AllOf(::testing::HasSubstr("specific   lift  flips\n"),
                                                       ::testing::Not(::testing::HasSubstr("effective sets"))));
}

TEST(ResultsTable, AMissedGateShowsTheDigitsThatMissedIt) {
  const Json results = Json::parse(R"json({"rows": [{"dataset": "d", "model": "m", "explainer": "e", "attack": "a", "metric": "c",
    "mean": 0.9999999, "low": 0.9, "high": 1.0}],
    "gates": [{"gate": "c>=1", "limit": 1.0, "met": false, "rows": [{"row": 0, "value": 0.9999999, "met": false}]}]})json");
  EXPECT_THAT(results_table(results), ::testing::HasSubstr("NOT MET c>=1\n        m, e, a: 0.9999999\n"));
}

TEST(ResultsTable, SaysWhoWonAndWhatRandomPointsBeat) {
  Json results =
      Json::parse(R"json({"rows": [{"dataset": "d", "model": "m", "explainer": "e", "attack": "gauntlet", "metric": "cosine",
    "threat": {"epsilon": 0.5}, "mean": 0.5, "low": 0.4, "high": 0.6, "beaten_by": null, "late_gain": 0.0125, "restart_gap": 0.025,
    "converged": false,
    "random": {"attack": "random(samples=9)", "mean": 0.6}, "flips": {"share": 0.25}, "no_gradient": {"samples": 0, "not_finite": 0},
    "components": [{"name": "gaps", "won": 0.75, "evaluations": 100.0}, {"name": "random", "won": 0.25, "evaluations": 20.0}]},
    {"dataset": "d", "model": "m", "explainer": "e", "attack": "er", "metric": "cosine", "mean": 0.9, "low": 0.8, "high": 1.0,
    "threat": {"epsilon": 0.5}, "random": {"attack": "random(samples=9)", "mean": 0.7}, "beaten_by": "random(samples=9)",
    "no_gradient": {"samples": 3, "not_finite": 2}}], "gates": []})json");
  const std::string table = results_table(results);
  EXPECT_THAT(table, ::testing::HasSubstr("component   won  evaluations a sample\n"));
  EXPECT_THAT(table, ::testing::HasSubstr("gaps       75 %                   100\n"));
  EXPECT_THAT(table, ::testing::HasSubstr("restarts within 0.0250 of the best, which moved by 0.0125 in the last fifth of the "
                                          "work: more effort will find more\n"));
  EXPECT_THAT(table, ::testing::HasSubstr("0.900 [0.800, 1.000]   0.700"));
  EXPECT_THAT(table, ::testing::HasSubstr("25 %\n"));
  EXPECT_THAT(table, ::testing::HasSubstr("warning: er on m, cosine: random(samples=9) harms more"));
  EXPECT_THAT(table, ::testing::HasSubstr("warning: er on m, cosine: no gradient to follow in 3 samples (2 not finite)"));
  EXPECT_THAT(table, ::testing::Not(::testing::HasSubstr("warning: gauntlet")));
  EXPECT_THAT(results_table(results, 100),
              ::testing::AllOf(::testing::HasSubstr("more effort will find more in 1 of 1 row; --wide shows who found what\n"),
                               ::testing::Not(::testing::HasSubstr("component"))));
  results["rows"][0]["explainer"] = "other";
  EXPECT_THAT(results_table(results), ::testing::HasSubstr("warning: er on m, e, cosine: random(samples=9) harms more"));
  results["rows"][0]["converged"] = true;
  EXPECT_THAT(results_table(results), ::testing::HasSubstr("in the last fifth of the work: converged\n"));
  EXPECT_THAT(results_table(results, 100), ::testing::HasSubstr("the attack converged in its row; --wide"));
  results["rows"][0]["late_gain"] = nullptr;
  results["rows"][0]["converged"] = nullptr;
  EXPECT_THAT(results_table(results), ::testing::Not(::testing::HasSubstr("last fifth")));
}

TEST(ResultsTable, NamesTheEpsilonWhereThereAreSeveral) {
  Json results = Json::parse(R"json({"rows": [
    {"dataset": "d", "model": "m", "explainer": "e", "attack": "er", "metric": "c", "threat": {"epsilon": 0.25}, "mean": 0.9,
     "low": 0.8, "high": 1.0, "beaten_by": null},
    {"dataset": "d", "model": "m", "explainer": "e", "attack": "er", "metric": "c", "threat": {"epsilon": 0.75}, "mean": 0.5,
     "low": 0.4, "high": 0.6, "beaten_by": "random"}],
    "gates": [{"gate": "c>=1", "limit": 1.0, "met": false, "rows": [{"row": 1, "value": 0.5, "met": false}]}]})json");
  EXPECT_THAT(results_table(results),
              ::testing::AllOf(::testing::HasSubstr("  epsilon  "), ::testing::HasSubstr("er on m, c, epsilon 0.75:"),
                               ::testing::HasSubstr("m, e, er, epsilon 0.75: 0.5000\n")));
  results["rows"][0]["threat"]["epsilon"] = 0.75;
  EXPECT_THAT(results_table(results), ::testing::Not(::testing::HasSubstr("epsilon")));
}

}  // namespace
}  // namespace holdfast::report

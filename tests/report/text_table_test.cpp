#include "holdfast/report/text_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(TextTable, AlignsNumbersRightAndWordsLeftByCharacters) {
  EXPECT_EQ(text_table({"name", "n"}, {{"é", "10"}, {"ab", "9"}}),
            "name   n\n"
            "────  ──\n"
            "é     10\n"
            "ab     9\n");
}

TEST(ResultsTable, ShowsUndefinedLevelsAsADash) {
  const Json results =
      Json::parse(R"json({"rows": [{"dataset": "d", "model": "m", "explainer": "e", "attack": "a", "metric": "top_k(k=2)",
    "mean": 0.5, "low": 0.4, "high": 0.6, "chance": null, "between": 1.0, "adjusted": null, "specific": null}],
    "gates": [{"gate": "top_k(k=2)>=0.9", "met": false, "rows": [{"row": 0, "value": 0.5, "met": false}]}]})json");
  const std::string table = results_table(results);
  EXPECT_THAT(table, ::testing::HasSubstr("0.500 [0.400, 0.600]       -    1.000         -         -"));
  EXPECT_THAT(table, ::testing::HasSubstr("NOT MET top_k(k=2)>=0.9\n        m, e, a: 0.5000\n"));
}

}  // namespace
}  // namespace holdfast

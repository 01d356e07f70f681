#include "holdfast/core/csv.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/outside.h"

namespace holdfast {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view text, CsvOptions options = {.header = false}) {
  return parse_csv(text, options, "t.csv").rows;
}

TEST(Csv, EveryQuotingRuleOfRfc4180) {
  EXPECT_EQ(rows_of("a,b\r\n\"c,d\",\"say \"\"hi\"\"\"\r\n\"two\nlines\",\n"),
            (Rows{{"a", "b"}, {"c,d", "say \"hi\""}, {"two\nlines", ""}}));
}

TEST(Csv, TheLastLineNeedsNoNewline) {
  EXPECT_EQ(rows_of("1,2\n3,4"), rows_of("1,2\n3,4\n"));
}

TEST(Csv, BlanksAreTrimmedOutsideQuotesOnlyAndOnlyWhenAsked) {
  EXPECT_EQ(rows_of(" a , \" b \" \n"), (Rows{{"a", " b "}}));
  EXPECT_EQ(rows_of(" a , b \n", {.header = false, .trim = false}), (Rows{{" a ", " b "}}));
}

TEST(Csv, OtherSeparators) {
  EXPECT_EQ(rows_of("a;\"b;c\"\n", {.separator = ';', .header = false}), (Rows{{"a", "b;c"}}));
  EXPECT_EQ(rows_of("a\t\tb\n\t\t\n", {.separator = '\t', .header = false}), (Rows{{"a", "", "b"}, {"", "", ""}}));
}

TEST(Csv, EmptyLinesAreNoRowsAndLinesAreCountedThroughThem) {
  const CsvTable table = parse_csv("\xef\xbb\xbfname,x\n\n\"a\nb\",1\n  \r\nc,2\n", {}, "t.csv");
  EXPECT_EQ(table.names, (std::vector<std::string>{"name", "x"}));
  EXPECT_EQ(table.rows, (Rows{{"a\nb", "1"}, {"c", "2"}}));
  EXPECT_EQ(table.lines, (std::vector<std::int64_t>{3, 6}));
}

TEST(Csv, MistakesNameTheLine) {
  EXPECT_ERROR(parse_csv("a,b\n1,2\n3\n", {}, "t.csv"), kInput, "t.csv:3: the row has 1 fields, the header has 2");
  EXPECT_ERROR(rows_of("1,2\n3,4,5\n"), kInput, "t.csv:2: the row has 3 fields, the first row has 2");
  EXPECT_ERROR(rows_of("1\n\"2\n3\n4"), kInput, "t.csv:2: a quote is opened here and never closed");
  EXPECT_ERROR(rows_of("\"a\"b\n"), kInput, "t.csv:1: text follows the closing quote");
  EXPECT_ERROR(rows_of(std::string_view("1\n2\0\n", 5)), kInput, "t.csv:2: a NUL byte");
  EXPECT_ERROR(parse_csv("\n", {}, "t.csv"), kInput, "t.csv: the file is empty");
  EXPECT_ERROR(read_csv("no/such/file.csv"), kInput, "no/such/file.csv");
}

TEST(Csv, ColumnsAreFoundByNameTheFirstWhenItAppearsTwice) {
  const CsvTable table = parse_csv("age,score,score\n1,2,3\n", {}, "t.csv");
  EXPECT_EQ(table.column("score", "t.csv"), 1U);
  EXPECT_ERROR(table.column("scores", "t.csv"), kInput, "t.csv: no column 'scores' (did you mean 'score'?)");
}

// The time of the processor, not of the clock: eight times the columns take some eight times as long, not 64 times.
TEST(Csv, ColumnsAreFoundInTimeThatGrowsWithTheirNumber) {
  const auto seconds_for = [](int columns) {
    std::string header = "c0", row = "1";
    for (int i = 1; i < columns; ++i) {
      header += fmt::format(",c{}", i);
      row += ",1";
    }
    const std::clock_t start = std::clock();
    const CsvTable table = parse_csv(header + "\n" + row + "\n", {}, "wide.csv");
    for (const std::string& name : table.names) (void)table.column(name, "wide.csv");
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const double few = std::min({seconds_for(10'000), seconds_for(10'000), seconds_for(10'000)});
  EXPECT_LT(seconds_for(80'000), 32 * std::max(few, 1e-3));
}

TEST(Csv, WhatIsWrittenReadsBack) {
  const Rows rows{{"plain", "with,comma", "with \"quote\""}, {"two\nlines", " blanks ", ""}, {"\r", "\t", "ü"}};
  std::string text;
  for (const auto& row : rows) text += format_csv_row(row);
  EXPECT_EQ(rows_of(text), rows);
  EXPECT_EQ(rows_of(format_csv_row({""})), (Rows{{""}}));
  EXPECT_EQ(rows_of(format_csv_row({"\xef\xbb\xbf"})), (Rows{{"\xef\xbb\xbf"}}));
  EXPECT_EQ(format_csv_row({"a", "b c"}), "a,b c\n");
}

TEST(Csv, ReadsCompasWithItsQuotedFields) {
  SKIP_WITHOUT_DATA(path, "compas/compas-scores-two-years.csv");
  const CsvTable table = read_csv(path);
  EXPECT_EQ(table.names.size(), 53U);
  ASSERT_EQ(table.rows.size(), 7214U);
  std::int64_t again = 0;
  for (const auto& row : table.rows) again += row[table.column("two_year_recid", path)] == "1";
  EXPECT_EQ(again, 3251);
}

TEST(Csv, ReadsAdultWithBlanksAfterItsCommas) {
  SKIP_WITHOUT_DATA(path, "adult/adult.data");
  const CsvTable table = read_csv(path);
  EXPECT_EQ(table.names.size(), 15U);
  ASSERT_EQ(table.rows.size(), 32561U);
  std::int64_t rich = 0;
  for (const auto& row : table.rows) rich += row.back() == ">50K";
  EXPECT_EQ(rich, 7841);
}

TEST(Csv, OtherEncodingsAreNamedWithTheirLine) {
  EXPECT_ERROR(parse_csv("name\ncaf\xe9\n", {}, "t.csv"), kInput,
               "t.csv:2: a character that is not UTF-8; save the table as UTF-8");
  EXPECT_EQ(format_csv_row({"caf\xe9", "a"}), "caf\xef\xbf\xbd,a\n") << "what we write is always UTF-8";
}

}  // namespace
}  // namespace holdfast

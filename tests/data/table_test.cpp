#include "holdfast/data/table.h"

#include <cmath>

#include "support/errors.h"

namespace holdfast::data {
namespace {

CsvTable people() {
  return parse_csv("age,sex,score\n20,F,1.5\n40,M,2.5\n30,F,-0.5\n60,X,0.5\n", {}, "t.csv");
}

const std::vector<std::int64_t> kFirstTwo = {0, 1};

Table people_columns(const CsvTable& csv) {
  const ColumnReader read(csv, "t.csv");
  return {read.numeric("age"), read.categorical("sex"), read.numeric("score")};
}

float at(const EncodedTable& table, std::size_t row, std::size_t column) {
  return table.values[row * static_cast<std::size_t>(table.schema.layout.inputs()) + column];
}

TEST(Encode, MinMaxMapsTheWholeColumnOntoZeroToOne) {
  const CsvTable csv = people();
  const EncodedTable table = encode(people_columns(csv), {}, kFirstTwo);
  ASSERT_EQ(table.schema.layout, Layout::vector(5));
  const float ages[] = {0, 0.5F, 0.25F, 1};
  for (std::size_t row = 0; row < 4; ++row) EXPECT_EQ(at(table, row, 0), ages[row]);
  const Feature& age = table.schema.features[0];
  EXPECT_EQ(age.name, "age");
  EXPECT_EQ(age.low, 0);
  EXPECT_EQ(age.high, 1);
  EXPECT_DOUBLE_EQ(age.step, 1.0 / 40);  // a year
  EXPECT_EQ(age.original, std::pair(20.0, 60.0));
  EXPECT_EQ(table.schema.features[4].step, 0);  // halves are not whole numbers
}

TEST(Encode, CategoriesBecomeAGroupOfColumnsOfWhichOneIsSet) {
  const CsvTable csv = people();
  const EncodedTable table = encode(people_columns(csv), {}, kFirstTwo);
  ASSERT_EQ(table.schema.groups.size(), 1U);
  EXPECT_EQ(table.schema.groups[0].name, "sex");
  EXPECT_EQ(table.schema.groups[0].columns, std::vector<std::int64_t>({1, 2, 3}));
  EXPECT_EQ(table.schema.groups[0].levels, std::vector<std::string>({"F", "M", "X"}));
  EXPECT_EQ(table.schema.features[2].name, "sex=M");
  EXPECT_EQ(table.schema.features[2].step, 1);
  const std::size_t set[] = {1, 2, 1, 3};
  for (std::size_t row = 0; row < 4; ++row) {
    for (const std::size_t column : {1U, 2U, 3U}) EXPECT_EQ(at(table, row, column), column == set[row] ? 1.0F : 0.0F);
  }
  table.schema.check("t.csv");
}

TEST(Encode, StandardUsesTheTrainingRowsAlone) {
  const CsvTable csv = people();
  const EncodedTable table = encode(people_columns(csv), {.scale = Encoding::Scale::kStandard}, kFirstTwo);
  // Training ages 20 and 40: mean 30, deviation 10.
  const float ages[] = {-1, 1, 0, 3};
  for (std::size_t row = 0; row < 4; ++row) EXPECT_FLOAT_EQ(at(table, row, 0), ages[row]);
  EXPECT_DOUBLE_EQ(table.schema.features[0].low, -1);
  EXPECT_DOUBLE_EQ(table.schema.features[0].high, 3);
  EXPECT_DOUBLE_EQ(table.schema.features[0].step, 0.1);
}

TEST(Encode, RawKeepsValuesAndTheirRange) {
  const CsvTable csv = people();
  const EncodedTable table = encode(people_columns(csv), {.scale = Encoding::Scale::kRaw}, kFirstTwo);
  EXPECT_EQ(at(table, 2, 0), 30);
  EXPECT_EQ(at(table, 2, 4), -0.5F);
  EXPECT_EQ(table.schema.features[0].low, 20);
  EXPECT_EQ(table.schema.features[0].high, 60);
  EXPECT_EQ(table.schema.features[0].step, 1);
}

TEST(Encode, DroppingTheFirstLevelLeavesNoGroup) {
  const CsvTable csv = people();
  const EncodedTable table = encode(people_columns(csv), {.drop_first = true}, kFirstTwo);
  EXPECT_EQ(table.schema.layout, Layout::vector(4));
  EXPECT_TRUE(table.schema.groups.empty());
  EXPECT_EQ(table.schema.features[1].name, "sex=M");
  EXPECT_EQ(at(table, 0, 1) + at(table, 0, 2), 0);
  EXPECT_EQ(at(table, 3, 2), 1);
}

TEST(Encode, AConstantColumnIsZeroAndFinite) {
  const CsvTable csv = parse_csv("a,b\n7,1\n7,2\n", {}, "t.csv");
  const ColumnReader read(csv, "t.csv");
  for (const auto scale : {Encoding::Scale::kMinMax, Encoding::Scale::kStandard}) {
    const EncodedTable table = encode({read.numeric("a")}, {.scale = scale}, kFirstTwo);
    EXPECT_EQ(table.values, std::vector<float>({0, 0}));
    table.schema.check("t.csv");
  }
}

TEST(ColumnReader, InfersNumbersAndCategories) {
  const CsvTable csv = parse_csv("a,b,c,d\n1,1.5,1,x\n-2,+2e3,one,y\n", {}, "t.csv");
  const ColumnReader read(csv, "t.csv");
  EXPECT_EQ(read.inferred("a").numbers, std::vector<double>({1, -2}));
  EXPECT_EQ(read.inferred("b").numbers, std::vector<double>({1.5, 2000}));
  EXPECT_EQ(read.inferred("c").levels, std::vector<std::string>({"1", "one"}));
  EXPECT_EQ(read.inferred("d").codes, std::vector<std::int64_t>({0, 1}));
}

TEST(ColumnReader, MergesLevelsByRenaming) {
  const CsvTable csv = people();
  const Column sex = ColumnReader(csv, "t.csv").categorical("sex", {"F", "other"}, [](const std::string& level) {
    return level == "F" ? level : "other";
  });
  EXPECT_EQ(sex.codes, std::vector<std::int64_t>({0, 1, 0, 1}));
}

TEST(ColumnReader, ErrorsNameFileLineAndColumn) {
  const CsvTable csv = parse_csv("age,sex\n20,F\nnan,M\n,\n1e999,F\n", {}, "t.csv");
  const ColumnReader read(csv, "t.csv");
  EXPECT_ERROR(read.numeric("age"), kInput, "t.csv:3: column 'age': 'nan' is not a finite number");
  EXPECT_ERROR(read.inferred("age"), kInput, "t.csv:4: column 'age' is empty");
  EXPECT_ERROR(read.categorical("sex"), kInput, "t.csv:4: column 'sex' is empty");
  EXPECT_ERROR(read.categorical("sex", {"Female", "M"}), kInput, "t.csv:4: column 'sex' is empty");
  EXPECT_ERROR(read.numeric("agee"), kInput, "age");
  const CsvTable words = people();
  EXPECT_ERROR(ColumnReader(words, "t.csv").categorical("sex", {"F", "M"}), kInput, "t.csv:5: column 'sex': unknown value 'X'");
}

}  // namespace
}  // namespace holdfast::data

#include "holdfast/data/schema.h"

#include "support/errors.h"

namespace holdfast::data {
namespace {

Schema small_table() {
  Schema schema = Schema::of(Layout::vector(4));
  schema.features = {{.name = "age", .low = 0, .high = 1, .step = 1.0 / 73, .original = std::pair{17.0, 90.0}},
                     {.name = "hours", .low = -0.5, .high = 2.25, .frozen = true},
                     {.name = "sex=Female", .step = 1},
                     {.name = "sex=Male", .step = 1}};
  schema.groups = {{.name = "sex", .columns = {2, 3}, .levels = {"Female", "Male"}}};
  schema.classes = {"<=50K", ">50K"};
  return schema;
}

Schema parse(const std::string& text) {
  return schema_from_json(parse_json(text, "s.json"), "s.json");
}

TEST(Schema, SurvivesJsonUnchanged) {
  const Schema schema = small_table();
  const Schema back = parse(dump_json(to_json(schema)));
  EXPECT_EQ(back.layout, schema.layout);
  EXPECT_EQ(back.classes, schema.classes);
  ASSERT_EQ(back.features.size(), schema.features.size());
  for (std::size_t i = 0; i < schema.features.size(); ++i) {
    EXPECT_EQ(back.features[i].name, schema.features[i].name);
    EXPECT_EQ(back.features[i].low, schema.features[i].low);
    EXPECT_EQ(back.features[i].high, schema.features[i].high);
    EXPECT_EQ(back.features[i].step, schema.features[i].step);
    EXPECT_EQ(back.features[i].frozen, schema.features[i].frozen);
    EXPECT_EQ(back.features[i].original, schema.features[i].original);
  }
  ASSERT_EQ(back.groups.size(), 1U);
  EXPECT_EQ(back.groups[0].name, "sex");
  EXPECT_EQ(back.groups[0].columns, schema.groups[0].columns);
  EXPECT_EQ(back.groups[0].levels, schema.groups[0].levels);
}

TEST(Schema, LayoutsOfEveryKindSurviveJson) {
  for (const Layout& layout :
       {Layout::vector(3), Layout::vector(3, 2), Layout::grid(3, 8, 9), Layout::grid(1, 8, 9, 2), Layout::graph(5, 2)}) {
    Schema schema = Schema::of(layout);
    schema.range = {0, 1};
    const Schema back = parse(dump_json(to_json(schema)));
    EXPECT_EQ(back.layout, layout);
    EXPECT_EQ(back.range, schema.range);
  }
}

TEST(Schema, EverythingButTheLayoutMayBeLeftOut) {
  const Schema schema = parse(R"({"layout": {"kind": "grid", "height": 2, "width": 3}})");
  EXPECT_EQ(schema.layout, Layout::grid(1, 2, 3));
  EXPECT_TRUE(schema.features.empty() && schema.groups.empty() && schema.classes.empty() && !schema.range);
}

TEST(Schema, NamesFeaturesOfFoldedMaps) {
  EXPECT_EQ(small_table().feature_name(2), "sex=Female");
  EXPECT_EQ(Schema::of(Layout::vector(9)).feature_name(5), "feature 5");
  EXPECT_EQ(Schema::of(Layout::grid(3, 4, 5)).feature_name(19), "pixel (3, 4)");
  EXPECT_EQ(Schema::of(Layout::graph(4)).feature_name(3), "edge (1, 2)");
  EXPECT_EQ(Schema::of(Layout::graph(4, 2)).feature_name(6 + 3), "second edge (1, 2)");
  EXPECT_EQ(Schema::of(Layout::grid(3, 4, 5, 2)).feature_name(19), "first pixel (3, 4)");
}

TEST(SchemaErrors, NameTheFileAndTheKey) {
  EXPECT_ERROR(parse("[]"), kInput, "s.json: expected an object, found array");
  EXPECT_ERROR(parse("{}"), kInput, "s.json: the key 'layout' is missing");
  EXPECT_ERROR(parse(R"({"layout": {"kind": "vector", "length": 2}, "feature": []})"), kInput,
               "unknown key 'feature' (did you mean 'features'?)");
  EXPECT_ERROR(parse(R"({"layout": {"kind": "vektor", "length": 2}})"), kInput,
               "s.json: layout: unknown kind 'vektor' (did you mean 'vector'?)");
  EXPECT_ERROR(parse(R"({"layout": {"kind": "vector"}})"), kInput, "s.json: layout: the key 'length' is missing");
  EXPECT_ERROR(parse(R"({"layout": {"kind": "vector", "length": 2, "nodes": 3}})"), kInput,
               "s.json: layout: unknown key 'nodes'");
  EXPECT_ERROR(parse(R"({"layout": {"kind": "vector", "length": 2.5}})"), kInput,
               "s.json: layout: length: expected a whole number, found 2.5");
  EXPECT_ERROR(parse(R"({"layout": {"kind": "vector", "length": 0}})"), kInput,
               "s.json: layout: a layout needs at least 1 feature, not 0");
  EXPECT_ERROR(parse(R"({"layout": {"kind": "graph", "nodes": 1152921504606846976}})"), kInput,
               "s.json: layout: a layout has at most 2^40");
  EXPECT_ERROR(parse(R"({"layout": {"kind": "graph", "nodes": 4, "sides": 3}})"), kInput, "1 or 2 sides, not 3");
}

// A schema of two features with `rest` after its layout.
Schema parse_two(const std::string& rest) {
  return parse(R"({"layout": {"kind": "vector", "length": 2}, )" + rest + "}");
}

TEST(SchemaErrors, FeaturesThatCannotBe) {
  EXPECT_ERROR(parse_two(R"("features": [{"name": "a"}])"), kInput,
               "1 features are listed but the layout, a vector of 2 features, has 2");
  EXPECT_ERROR(parse_two(R"("features": {"name": "a"})"), kInput, "s.json: features: expected an array, found object");
  EXPECT_ERROR(parse_two(R"("features": [{}, {"name": "b", "low": 2}])"), kInput, "features[1] (b): low 2 is above high 1");
  EXPECT_ERROR(parse_two(R"("features": [{}, {"low": "x"}])"), kInput,
               "s.json: features[1]: low: expected a number, found \"x\"");
  EXPECT_ERROR(parse_two(R"("features": [{"step": -1}, {}])"), kInput, "step -1 must be 0 or more");
  EXPECT_ERROR(parse_two(R"("features": [{"frozen": 1}, {}])"), kInput, "frozen: expected true or false, found 1");
  EXPECT_ERROR(parse_two(R"("features": [{"original": [1]}, {}])"), kInput, "original: expected [low, high], found [1]");
  EXPECT_ERROR(parse_two(R"("features": [{"original": [3, 1]}, {}])"), kInput, "original: low 3 is above high 1");
  EXPECT_ERROR(parse_two(R"("features": [{"nmae": "a"}, {}])"), kInput, "features[0]: unknown key 'nmae' (did you mean 'name'?)");
  EXPECT_ERROR(parse_two(R"("range": [1, 0])"), kInput, "range: low 1 is above high 0");
  EXPECT_ERROR(parse_two(R"("features": [{}, {}], "range": [0, 1])"), kInput, "not both");
  EXPECT_ERROR(parse_two(R"("classes": ["a", 2])"), kInput, "s.json: classes[1]: expected a string, found 2");
}

TEST(SchemaErrors, GroupsThatCannotBe) {
  EXPECT_ERROR(parse_two(R"("groups": [{"name": "g", "columns": [0, 2]}])"), kInput, "group 'g': column 2 is not in 0 to 1");
  EXPECT_ERROR(parse_two(R"("groups": [{"name": "g", "columns": [-1]}])"), kInput, "column -1 is not in 0 to 1");
  EXPECT_ERROR(parse_two(R"("groups": [{"name": "g", "columns": []}])"), kInput, "group 'g' has no columns");
  EXPECT_ERROR(parse_two(R"("groups": [{"name": "g", "columns": [0, 0]}])"), kInput, "group 'g' lists column 0 twice");
  EXPECT_ERROR(parse_two(R"("groups": [{"name": "g", "columns": [0]}, {"name": "h", "columns": [1, 0]}])"), kInput,
               "group 'h': column 0 belongs to group 'g' already");
  EXPECT_ERROR(parse_two(R"("groups": [{"name": "g", "columns": [0, 1], "levels": ["x"]}])"), kInput,
               "names 1 levels for 2 columns");
  EXPECT_ERROR(parse_two(R"("groups": [{"columns": [0]}])"), kInput, "s.json: groups[0]: the key 'name' is missing");
}

}  // namespace
}  // namespace holdfast::data

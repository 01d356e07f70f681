#include "holdfast/core/json.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "holdfast/core/files.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

TEST(Json, KeepsTheOrderOfKeys) {
  const Json json = parse_json(R"({"zebra": 1, "ant": 2, "middle": {"y": 3, "x": 4}})", "a.json");
  EXPECT_EQ(dump_json(json), "{\n  \"zebra\": 1,\n  \"ant\": 2,\n  \"middle\": {\n    \"y\": 3,\n    \"x\": 4\n  }\n}\n");
}

TEST(Json, NumbersReadBackToTheSameDouble) {
  for (const double value : {0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, -123456789.123456789, std::nextafter(1.0, 2.0)}) {
    EXPECT_EQ(parse_json(dump_json(Json(value)), "x").get<double>(), value);
  }
  EXPECT_EQ(dump_json(Json(0.1)), "0.1\n");
}

TEST(Json, NonFiniteNumbersAreNull) {
  const Json json = {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 1};
  EXPECT_EQ(dump_json(json), "[\n  null,\n  null,\n  null,\n  1\n]\n");
}

TEST(Json, TextThatIsNotUtf8IsStillWritten) {
  EXPECT_EQ(dump_json(Json("caf\xE9")), "\"caf\xEF\xBF\xBD\"\n");
}

TEST(Json, MistakesNameFileAndLine) {
  EXPECT_ERROR(parse_json("{\n  \"a\": 1,\n  \"b\": }\n", "run.json"), kInput, "run.json:3: ");
  EXPECT_ERROR(parse_json("", "run.json"), kInput, "run.json:1: ");
  EXPECT_ERROR(parse_json("{\"a\": 1", "run.json"), kInput, "run.json:1: ");
  EXPECT_ERROR(parse_json("{\"a\": 1} x", "run.json"), kInput, "run.json:1: ");
  EXPECT_ERROR(parse_json("[1e999]", "run.json"), kInput, "run.json:");
  EXPECT_ERROR(read_json("/nowhere/run.json"), kInput, "cannot read /nowhere/run.json: No such file or directory");
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json(nested(200), "x"));
  EXPECT_ERROR(parse_json(nested(201), "x"), kInput, "nested more than 200 deep");
  EXPECT_ERROR(parse_json(nested(1'000'000), "x"), kInput, "nested more than 200 deep");
  // Brackets inside text are no depth.
  EXPECT_NO_THROW(parse_json("\"" + std::string(300, '[') + "\\\"" + std::string(300, '{') + "\"", "x"));
}

TEST(Json, FilesHoldWhatWasWritten) {
  const TempFolder folder;
  const Json json = {{"name", "top_k(k=8)"}, {"values", {1.5, 2.5}}};
  write_json(folder / "a.json", json);
  EXPECT_EQ(read_text(folder / "a.json"), dump_json(json));
  EXPECT_EQ(read_json(folder / "a.json"), json);
}

}  // namespace
}  // namespace holdfast

// The page is made from the files of a run folder and from nothing else.
#include "holdfast/report/html.h"

#include <array>
#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json.h"
#include "holdfast/core/npy.h"
#include "holdfast/data/schema.h"
#include "holdfast/report/pictures.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast::report {
namespace {

using ::testing::HasSubstr;

RawArray floats(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  RawArray array{.type = ElementType::kFloat32, .shape = std::move(shape), .bytes = {}};
  array.bytes.resize(values.size() * sizeof(float));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

// A finished run over one sample of a table with a name that HTML must not take for markup.
void write_run(const std::string& folder, const Schema& schema) {
  make_folders(folder + "/arrays/0000");
  const std::vector<std::int64_t> shape{1, 3};
  for (const char* name : {"inputs", "perturbed", "original_maps", "perturbed_maps"}) {
    write_npy(folder + "/arrays/0000/" + name + ".npy", floats(shape, {0.5F, 0.25F, 1.0F}));
  }
  write_json(
      folder + "/arrays/0000/samples.json",
      Json::parse(
          R"json([{"sample": 7, "label": null, "prediction": 1, "value": 0.5, "top_original": [2, 0], "top_perturbed": [2, 1]}])json"));
  write_json(folder + "/results.json",
             Json::parse(R"json({"title": "</script><b>", "models": [], "gates": [], "rows": [{"dataset": "d", "model": "m",
    "explainer": "saliency", "attack": "er", "threat": {"norm": "l2", "epsilon": 0.5}, "metric": "top_k(k=2)",
    "arrays": "arrays/0000"}]})json"));
  write_atomic(
      folder + "/samples.csv",
      "dataset,model,explainer,attack,metric,sample,value,epsilon,first_swap\nd,m,saliency,er,top_k(k=2),7,0.5,0.5,-1\n");
  Json manifest{{"title", "t"}, {"datasets", Json::array()}};
  manifest["datasets"].push_back({{"name", "d"}, {"schema", to_json(schema)}});
  write_json(folder + "/manifest.json", manifest);
}

Schema table_schema() {
  Schema schema = Schema::of(Layout::vector(3));
  schema.features = {{.name = "age"}, {.name = "height <cm>"}, {.name = "weight"}};
  return schema;
}

TEST(Report, HoldsTheDataAndTheScriptAndCannotBeBrokenOutOf) {
  const TempFolder folder;
  write_run(folder.path(), table_schema());
  write_report({folder.path()}, folder.path() + "/report.html");
  const std::string page = read_text(folder.path() + "/report.html");
  EXPECT_THAT(page, HasSubstr("\"name\":\"height \\u003ccm>\""));
  EXPECT_THAT(page, HasSubstr("\"state\":\"lost\""));
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_GT(page.size(), 500000U) << "the page's script is missing";
}

TEST(Report, NamesTheFileThatIsMissing) {
  const TempFolder folder;
  write_run(folder.path(), table_schema());
  std::filesystem::remove(folder.path() + "/results.json");
  EXPECT_ERROR(write_report({folder.path()}, folder.path() + "/report.html"), kInput, "results.json is missing");
  EXPECT_FALSE(file_exists(folder.path() + "/report.html"));
}

TEST(Report, RefusesArraysOfAnotherShape) {
  const TempFolder folder;
  write_run(folder.path(), table_schema());
  write_npy(folder.path() + "/arrays/0000/inputs.npy", floats({1, 2}, {0, 1}));
  EXPECT_ERROR(write_report({folder.path()}, folder.path() + "/report.html"), kInput, "has shape [1, 2], expected [1, 3]");
}

using Rgb = std::array<int, 3>;

Rgb pixel(const Image& image, std::int64_t row, std::int64_t column) {
  const auto at = static_cast<std::size_t>(3 * (row * image.width + column));
  return {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]};
}

// The middle of a 2 x 2 image's pixel in a panel: panels of 280 pixels under a title, 12 apart.
Rgb dot(const Image& image, std::int64_t panel, std::int64_t row, std::int64_t column) {
  return pixel(image, 12 + 20 + 70 + 140 * row, 12 + 292 * panel + 70 + 140 * column);
}

int brightness(const Rgb& colour) {
  return colour[0] + colour[1] + colour[2];
}

const RawArray kBlack = floats({1, 2, 2}, {0, 0, 0, 0});
const Schema kTwoByTwo = Schema::of(Layout::grid(1, 2, 2));

TEST(Pictures, AHeatMapIsBrightestWhereTheMapIsLargest) {
  const Image image = draw_map(kBlack, floats({1, 2, 2}, {0, 0, 0, 4}), kTwoByTwo);
  EXPECT_EQ(image.width, 3 * 280 + 4 * 12) << "input, map, map over the input";
  EXPECT_EQ(brightness(dot(image, 0, 1, 1)), 0) << "the input is black";
  EXPECT_GT(brightness(dot(image, 1, 1, 1)), brightness(dot(image, 1, 0, 1)) + 300);
  EXPECT_GT(brightness(dot(image, 2, 1, 1)), brightness(dot(image, 2, 0, 0)) + 300) << "over the input too";
}

TEST(Pictures, SignedMapsAreRedAboveZeroBlueBelowAndWhiteBetween) {
  const Image image = draw_map(kBlack, floats({1, 2, 2}, {0, 1, -1, 0}), kTwoByTwo);
  EXPECT_EQ(dot(image, 1, 0, 0), (Rgb{247, 247, 247}));
  EXPECT_GT(dot(image, 1, 0, 1)[0], dot(image, 1, 0, 1)[2] + 100);
  EXPECT_GT(dot(image, 1, 1, 0)[2], dot(image, 1, 1, 0)[0] + 100);
}

// Channels that cancel each other are white in a signed map, but count for the ranking by their magnitudes.
TEST(Pictures, MarksTheTopFeatures) {
  const RawArray input = floats({2, 2, 2}, std::vector<float>(8, 0)), map = floats({2, 2, 2}, {3, 0, 1, 0, -3, 0, 1, 0});
  const Image image = draw_map(input, map, Schema::of(Layout::grid(2, 2, 2)), {.top = 1});
  EXPECT_EQ(image.width, 4 * 280 + 5 * 12);
  EXPECT_EQ(dot(image, 1, 0, 0), (Rgb{247, 247, 247}));
  EXPECT_EQ(dot(image, 3, 0, 0), (Rgb{255, 196, 0}));
  EXPECT_NE(dot(image, 3, 1, 0), (Rgb{255, 196, 0}));
}

std::int64_t count_in_row(const Image& image, std::int64_t row, const Rgb& colour) {
  std::int64_t count = 0;
  for (std::int64_t column = 0; column < image.width; ++column) count += pixel(image, row, column) == colour;
  return count;
}

TEST(Pictures, BarsAreAsLongAsTheMagnitudes) {
  const RawArray input = floats({3}, {0, 0, 0});
  const Rgb blue{31, 111, 235};
  const Image sizes = draw_map(input, floats({3}, {0.5F, 1.0F, 0}), table_schema());
  EXPECT_EQ(count_in_row(sizes, 12 + 4, blue), 320) << "the largest comes first";
  EXPECT_EQ(count_in_row(sizes, 12 + 22 + 4, blue), 160);
  // With signs they go both ways from an axis, in the colours of signed heat maps.
  const Image both = draw_map(input, floats({3}, {0.5F, -1.0F, 0}), table_schema());
  const Rgb below = pixel(both, 12 + 4, both.width / 2 - 40);
  EXPECT_EQ(count_in_row(both, 12 + 4, below), 160);
  EXPECT_GT(below[2], below[0]);
  EXPECT_EQ(draw_map(input, floats({3}, {1, 2, 3}), table_schema(), {.top = 1}).height, 22 + 2 * 12)
      << "as many bars as asked for";
}

}  // namespace
}  // namespace holdfast::report

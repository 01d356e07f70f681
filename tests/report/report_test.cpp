// The page is made from the files of a run folder and from nothing else.
#include "holdfast/report/html.h"

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

namespace holdfast {
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
    "explainer": "saliency", "attack": "er", "metric": "top_k(k=2)", "arrays": "arrays/0000"}]})json"));
  write_atomic(folder + "/samples.csv", "dataset,model,explainer,attack,metric,sample,value\nd,m,saliency,er,top_k(k=2),7,0.5\n");
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

TEST(Pictures, AHeatMapIsBrightestWhereTheMapIsLargest) {
  const Image image =
      draw_map(floats({1, 2, 2}, {0, 0, 0, 0}), floats({1, 2, 2}, {0, 0, 0, 4}), Schema::of(Layout::grid(1, 2, 2)));
  const auto brightness = [&](std::int64_t row, std::int64_t column) {
    const std::size_t at = static_cast<std::size_t>(3 * (row * image.width + column));
    return image.pixels[at] + image.pixels[at + 1] + image.pixels[at + 2];
  };
  // The map is the right half; its lower right quarter holds the only feature that matters.
  EXPECT_GT(brightness(image.height - 20, image.width - 20), brightness(20, image.width - 20) + 300);
}

TEST(Pictures, BarsAreAsLongAsTheMagnitudes) {
  const Image image = draw_map(floats({3}, {0, 0, 0}), floats({3}, {0.5F, -1.0F, 0}), table_schema());
  const auto bar_pixels = [&](std::int64_t row, int red, int blue) {
    std::int64_t count = 0;
    for (std::int64_t column = 0; column < image.width; ++column) {
      const std::size_t at = static_cast<std::size_t>(3 * (row * image.width + column));
      if (image.pixels[at] == red && image.pixels[at + 2] == blue) ++count;
    }
    return count;
  };
  EXPECT_EQ(bar_pixels(12 + 4, 214, 61), 320) << "the largest comes first, in the colour of negative values";
  EXPECT_EQ(bar_pixels(12 + 22 + 4, 31, 235), 160);
}

}  // namespace
}  // namespace holdfast

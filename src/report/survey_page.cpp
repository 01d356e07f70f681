// The page of a survey: a picture and two maps of it for each pair, and the values that the answers carry along.
#include "arrays.h"
#include "grids.h"
#include "holdfast/core/error.h"
#include "holdfast/core/npy.h"
#include "holdfast/report/html.h"
#include "page.h"
#include "worst.h"

namespace holdfast::report {

void write_survey(const std::string& run, const Json& survey, const std::string& path) {
  const Json manifest = read_json(run + "/manifest.json");
  PicturePool pool;
  Json shown = survey;
  for (Json& pair : shown["pairs"]) {
    Schema schema;
    for (const Json& dataset : manifest.at("datasets"))
      if (dataset.at("name") == pair.at("dataset")) schema = schema_from_json(dataset.at("schema"), run + "/manifest.json");
    const std::string folder = run + "/" + pair.at("arrays").get<std::string>();
    const std::int64_t place = pair.at("place");
    const auto read = [&](const char* name) { return to_doubles(slice_of(read_npy(folder + "/" + name), place), folder); };
    // Each map by its own scale: people compare where, not how much.
    const auto draw = [&](const char* name) {
      const std::vector<double> map = fold(schema.layout, read(name));
      return pool.add(draw_heat(schema.layout, map, full_colour(map)));
    };
    const Json sample = read_json(folder + "/samples.json").at(static_cast<std::size_t>(place));
    pair["prediction"] = class_name(sample.at("prediction"), schema);
    pair["input"] = pool.add(draw_input(schema.layout, read("inputs.npy")));
    pair["maps"] = {draw("original_maps.npy"), draw("perturbed_maps.npy")};
    for (const char* name : {"arrays", "place", "dataset"}) pair.erase(name);  // what would tell one pair from another
  }
  write_page(path, {{"page", "survey"}, {"title", survey.at("title")}, {"pictures", pool.urls()}, {"survey", shown}});
}

}  // namespace holdfast::report

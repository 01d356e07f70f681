#include "worst.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "arrays.h"
#include "grids.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/npy.h"

namespace holdfast {
namespace {

// Bars beyond this many would not be read.
constexpr std::size_t kMostBars = 20;

std::string base64(std::span<const std::byte> data) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < data.size(); i += 3) {
    unsigned block = 0;
    for (std::size_t j = 0; j < 3; ++j) block = block << 8 | (i + j < data.size() ? std::to_integer<unsigned>(data[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) text += i + j > data.size() ? '=' : kLetters[block >> (18 - 6 * j) & 63U];
  }
  return text;
}

Json picture(const char* title, const Image& image) {
  return {{"title", title}, {"data", "data:image/png;base64," + base64(encode_png(image))}};
}

struct Arrays {
  std::vector<double> input, perturbed, before, after;  // before and after folded
};

Json pictures(const Arrays& arrays, const Layout& layout, const std::vector<std::int64_t>& top_before,
              const std::vector<std::int64_t>& top_after) {
  Json result = Json::array();
  result.push_back(picture("input", draw_input(layout, arrays.input)));
  result.push_back(picture("nudged input", draw_input(layout, arrays.perturbed)));
  result.push_back(picture("explanation", draw_heat(layout, arrays.before)));
  result.push_back(picture("after", draw_heat(layout, arrays.after)));
  if (!top_before.empty())
    result.push_back(picture("top k: what moved", draw_change(layout, arrays.input, top_before, top_after)));
  return result;
}

// The features that were or became important, in the order of the clean map; importance as a share of the map's sum.
Json bars(const Arrays& arrays, const Schema& schema, const std::vector<std::int64_t>& top_before,
          const std::vector<std::int64_t>& top_after) {
  const auto in = [](const std::vector<std::int64_t>& set, std::int64_t feature) {
    return std::find(set.begin(), set.end(), feature) != set.end();
  };
  std::vector<std::int64_t> order(arrays.before.size());
  std::iota(order.begin(), order.end(), 0);
  const auto importance = [&](std::int64_t feature) {
    const std::size_t at = static_cast<std::size_t>(feature);
    return std::max(arrays.before[at], arrays.after[at]);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const bool top_a = in(top_before, a) || in(top_after, a), top_b = in(top_before, b) || in(top_after, b);
    return top_a != top_b ? top_a : importance(a) > importance(b);
  });
  order.resize(std::min(order.size(), std::max(kMostBars, top_before.size() + top_after.size())));
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return arrays.before[static_cast<std::size_t>(a)] > arrays.before[static_cast<std::size_t>(b)];
  });

  const auto total = [](const std::vector<double>& map) {
    const double sum = std::accumulate(map.begin(), map.end(), 0.0);
    return sum > 0 ? sum : 1.0;
  };
  const double sum_before = total(arrays.before), sum_after = total(arrays.after);
  Json result = Json::array();
  for (const std::int64_t feature : order) {
    const std::size_t at = static_cast<std::size_t>(feature);
    const bool before = in(top_before, feature), after = in(top_after, feature);
    result.push_back({{"name", schema.feature_name(feature)},
                      {"before", arrays.before[at] / sum_before},
                      {"after", arrays.after[at] / sum_after},
                      {"value", arrays.input[at]},
                      {"moved", arrays.perturbed[at]},
                      {"state", before && after ? "kept"
                                : before        ? "lost"
                                : after         ? "new"
                                                : "other"}});
  }
  return result;
}

// The class's name where the schema knows it.
Json class_name(const Json& label, const Schema& schema) {
  if (label.is_null()) return {};
  const std::size_t number = label.get<std::size_t>();
  return number < schema.classes.size() ? schema.classes[number] : fmt::format("class {}", number);
}

}  // namespace

Json worst_samples(const std::string& folder, const Schema& schema) {
  const Json samples = read_json(folder + "/samples.json");
  const auto read = [&](const char* name) {
    RawArray array = read_npy(folder + "/" + name);
    std::vector<std::int64_t> expected = schema.layout.sample_shape();
    expected.insert(expected.begin(), static_cast<std::int64_t>(samples.size()));
    if (array.shape != expected)
      input_error("{}/{}: has shape {}, expected {}", folder, name, to_string(array.shape), to_string(expected));
    return array;
  };
  const RawArray inputs = read("inputs.npy"), perturbed = read("perturbed.npy");
  const RawArray before = read("original_maps.npy"), after = read("perturbed_maps.npy");

  Json result = Json::array();
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(samples.size()); ++i) {
    const Json& sample = samples[static_cast<std::size_t>(i)];
    const std::vector<std::int64_t> top_before = sample.at("top_original"), top_after = sample.at("top_perturbed");
    const Arrays arrays{to_doubles(slice_of(inputs, i), folder), to_doubles(slice_of(perturbed, i), folder),
                        fold(schema.layout, to_doubles(slice_of(before, i), folder)),
                        fold(schema.layout, to_doubles(slice_of(after, i), folder))};
    Json entry{{"sample", sample.at("sample")},
               {"label", class_name(sample.at("label"), schema)},
               {"prediction", class_name(sample.at("prediction"), schema)},
               {"value", sample.at("value")}};
    if (is_drawable(schema.layout)) {
      entry["pictures"] = pictures(arrays, schema.layout, top_before, top_after);
    } else {
      entry["bars"] = bars(arrays, schema, top_before, top_after);
    }
    result.push_back(entry);
  }
  return result;
}

}  // namespace holdfast

#include "worst.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "arrays.h"
#include "grids.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/npy.h"

namespace holdfast::report {
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

using Pictures = std::vector<std::pair<std::string, Image>>;

struct Arrays {
  std::vector<double> input, perturbed, before, after;  // before and after folded
};

Pictures pictures(const Arrays& arrays, const Layout& layout, const std::vector<std::int64_t>& top_before,
                  const std::vector<std::int64_t>& top_after) {
  Pictures result{{"input", draw_input(layout, arrays.input)},
                  {"nudged input", draw_input(layout, arrays.perturbed)},
                  {"explanation", draw_heat(layout, arrays.before)},
                  {"after", draw_heat(layout, arrays.after)}};
  if (!top_before.empty()) result.emplace_back("top k: what moved", draw_change(layout, arrays.input, top_before, top_after));
  return result;
}

Json to_json(const Pictures& pictures) {
  Json result = Json::array();
  for (const auto& [title, image] : pictures)
    result.push_back({{"title", title}, {"data", "data:image/png;base64," + base64(encode_png(image))}});
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

// One sample of the folder's arrays.
struct KeptSample {
  Json facts;
  std::vector<std::int64_t> top_before, top_after;
  Arrays arrays;
};

std::vector<KeptSample> read_samples(const std::string& folder, const Schema& schema) {
  const Json samples = read_json(folder + "/samples.json");
  const auto read = [&](const char* name) {
    RawArray array = read_npy(folder + "/" + name);
    std::vector<std::int64_t> expected = schema.layout.sample_shape();
    expected.insert(expected.begin(), static_cast<std::int64_t>(samples.size()));
    // A grid of one channel may come without a dimension for it.
    std::vector<std::int64_t> plain = expected;
    if (plain.size() == 4 && plain[1] == 1) plain.erase(plain.begin() + 1);
    if (array.shape != expected && array.shape != plain)
      input_error("{}/{}: has shape {}, expected {}", folder, name, to_string(array.shape), to_string(expected));
    return array;
  };
  const RawArray inputs = read("inputs.npy"), perturbed = read("perturbed.npy");
  const RawArray before = read("original_maps.npy"), after = read("perturbed_maps.npy");

  std::vector<KeptSample> result;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(samples.size()); ++i) {
    const Json& sample = samples[static_cast<std::size_t>(i)];
    result.push_back({.facts = {{"sample", sample.at("sample")},
                                {"label", class_name(sample.at("label"), schema)},
                                {"prediction", class_name(sample.at("prediction"), schema)},
                                {"value", sample.at("value")}},
                      .top_before = sample.at("top_original"),
                      .top_after = sample.at("top_perturbed"),
                      .arrays = {to_doubles(slice_of(inputs, i), folder), to_doubles(slice_of(perturbed, i), folder),
                                 fold(schema.layout, to_doubles(slice_of(before, i), folder)),
                                 fold(schema.layout, to_doubles(slice_of(after, i), folder))}});
  }
  return result;
}

}  // namespace

Json worst_samples(const std::string& folder, const Schema& schema) {
  Json result = Json::array();
  for (const KeptSample& sample : read_samples(folder, schema)) {
    Json entry = sample.facts;
    if (is_drawable(schema.layout)) {
      entry["pictures"] = to_json(pictures(sample.arrays, schema.layout, sample.top_before, sample.top_after));
    } else {
      entry["bars"] = bars(sample.arrays, schema, sample.top_before, sample.top_after);
    }
    result.push_back(entry);
  }
  return result;
}

std::vector<SamplePictures> sample_pictures(const std::string& folder, const Schema& schema) {
  std::vector<SamplePictures> result;
  if (!is_drawable(schema.layout)) return result;
  for (const KeptSample& sample : read_samples(folder, schema)) {
    result.push_back({.sample = sample.facts.at("sample"),
                      .prediction = sample.facts.at("prediction"),
                      .value = sample.facts.at("value"),
                      .pictures = pictures(sample.arrays, schema.layout, sample.top_before, sample.top_after)});
  }
  return result;
}

}  // namespace holdfast::report

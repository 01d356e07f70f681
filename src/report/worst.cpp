#include "worst.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include <fmt/ranges.h>

#include "arrays.h"
#include "grids.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/npy.h"
#include "page.h"
#include "whole_number.h"

namespace holdfast::report {
namespace {

// Bars beyond this many would not be read.
constexpr std::size_t kMostBars = 20;

struct Arrays {
  std::vector<double> input, perturbed, before, after;  // before and after folded
  // Of maps with one value for each feature of a table: what the rows have, "Other" of a category.
  std::vector<std::string> values = {}, moved = {};
};

// Makes input and perturbed those of the table's features, whose maps `of_maps` describes.
void use_table(Arrays& arrays, const Schema& schema, const Schema& of_maps) {
  std::vector<double> before, after;
  for (const TableFeature& feature : schema.table_features()) {
    const auto text = [&](const std::vector<double>& row) {
      return feature.is_category ? feature.text_in(row) : value_text(of_maps, std::ssize(before), feature.value_in(row));
    };
    arrays.values.push_back(text(arrays.input));
    arrays.moved.push_back(text(arrays.perturbed));
    before.push_back(feature.value_in(arrays.input));
    after.push_back(feature.value_in(arrays.perturbed));
  }
  arrays.input = std::move(before);
  arrays.perturbed = std::move(after);
}

// The same for the steps of a sequence, each with its numbers.
void use_steps(Arrays& arrays, const Layout& layout) {
  constexpr std::size_t kShown = 4;
  std::vector<double> before, after;
  const auto width = static_cast<std::size_t>(layout.stride), step = width + static_cast<std::size_t>(layout.context);
  const std::size_t parts = layout.by_step ? 1 : width, length = width / parts;
  for (std::size_t at = 0; at + step <= arrays.input.size(); at += step) {
    for (std::size_t part = 0; part < parts; ++part) {
      const auto numbers = [&](const std::vector<double>& all) { return std::span(all).subspan(at + part * length, length); };
      const auto text = [&](const std::vector<double>& all) {
        const auto own = numbers(all);
        const auto some = own.first(std::min(kShown, own.size()));
        return fmt::format("{:.4g}{}", fmt::join(some, ", "), some.size() < own.size() ? ", ..." : "");
      };
      const auto from = numbers(arrays.input), to = numbers(arrays.perturbed);
      arrays.values.push_back(text(arrays.input));
      arrays.moved.push_back(text(arrays.perturbed));
      before.push_back(0);  // only whether it moved is told by these
      after.push_back(std::equal(from.begin(), from.end(), to.begin()) ? 0 : 1);
    }
  }
  arrays.input = std::move(before);
  arrays.perturbed = std::move(after);
}

bool contains(const std::vector<std::int64_t>& set, std::int64_t feature) {
  return std::find(set.begin(), set.end(), feature) != set.end();
}

// The map as shares of its sum.
std::vector<double> shares(std::vector<double> map) {
  const double sum = std::accumulate(map.begin(), map.end(), 0.0);
  if (sum > 0) std::for_each(map.begin(), map.end(), [&](double& value) { value /= sum; });
  return map;
}

const char* state_of(bool before, bool after) {
  return before && after ? "kept" : before ? "lost" : after ? "new" : "other";
}

// The features that were or became important, in the order of the clean map; importance as a share of the map's sum.
Json bars(const Arrays& arrays, const Schema& schema, const std::vector<std::int64_t>& top_before,
          const std::vector<std::int64_t>& top_after) {
  std::vector<std::int64_t> order(arrays.before.size());
  std::iota(order.begin(), order.end(), 0);
  const auto importance = [&](std::int64_t feature) {
    const std::size_t at = static_cast<std::size_t>(feature);
    return std::max(arrays.before[at], arrays.after[at]);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const bool top_a = contains(top_before, a) || contains(top_after, a),
               top_b = contains(top_before, b) || contains(top_after, b);
    return top_a != top_b ? top_a : importance(a) > importance(b);
  });
  order.resize(std::min(order.size(), std::max(kMostBars, top_before.size() + top_after.size())));
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return arrays.before[static_cast<std::size_t>(a)] > arrays.before[static_cast<std::size_t>(b)];
  });

  const std::vector<double> share_before = shares(arrays.before), share_after = shares(arrays.after);
  Json result = Json::array();
  for (const std::int64_t feature : order) {
    const std::size_t at = static_cast<std::size_t>(feature);
    const bool is_table = !arrays.values.empty();
    const std::string value = is_table ? arrays.values[at] : value_text(schema, feature, arrays.input[at]);
    const bool moved = arrays.input[at] != arrays.perturbed[at];
    const std::string after = is_table ? arrays.moved[at] : value_text(schema, feature, arrays.perturbed[at]);
    result.push_back({{"name", schema.feature_name(feature)},
                      {"before", share_before[at]},
                      {"after", share_after[at]},
                      {"value", value},
                      {"moved", moved ? after : value},
                      {"state", state_of(contains(top_before, feature), contains(top_after, feature))}});
  }
  return result;
}

// The words of a sentence with their importance as a share of the map's sum. Padding and special tokens are left out. The last
// two numbers of a token's context are its id and whether it is ranked (model/packing.h).
Json words(const Arrays& arrays, const Schema& schema, const std::vector<std::int64_t>& top_before,
           const std::vector<std::int64_t>& top_after) {
  const Layout& layout = schema.layout;
  const std::size_t width = static_cast<std::size_t>(layout.stride + layout.context);
  const std::vector<double> share_before = shares(arrays.before), share_after = shares(arrays.after);
  const auto word = [&](std::int64_t token, std::size_t last) {
    if (layout.context < 2) return schema.feature_name(token);
    const auto id = static_cast<std::size_t>(std::llround(std::max(0.0, arrays.input[last - 1])));
    return id < schema.vocabulary.size() ? schema.vocabulary[id] : fmt::format("#{}", id);
  };
  Json result = Json::array();
  for (std::int64_t token = 0; token < layout.length; ++token) {
    const auto at = static_cast<std::size_t>(token);
    const std::size_t last = (at + 1) * width - 1;
    if (layout.context > 0 && arrays.input[last] == 0) continue;
    result.push_back({{"text", word(token, last)},
                      {"before", share_before[at]},
                      {"after", share_after[at]},
                      {"state", state_of(contains(top_before, token), contains(top_after, token))}});
  }
  return result;
}

// The edges of both top sets, side by side.
Json edges(const Layout& layout, const std::vector<std::int64_t>& top_before, const std::vector<std::int64_t>& top_after) {
  Json sides = Json::array();
  for (std::int64_t side = 0; side < layout.sides; ++side) {
    Json edges = Json::array();
    const auto add = [&](std::int64_t feature) {
      if (feature / layout.side_features() != side) return;
      const auto [i, j] = edge_nodes(layout.length, feature % layout.side_features());
      edges.push_back({i, j, state_of(contains(top_before, feature), contains(top_after, feature))});
    };
    for (const std::int64_t feature : top_before) add(feature);
    for (const std::int64_t feature : top_after) {
      if (!contains(top_before, feature)) add(feature);
    }
    sides.push_back(std::move(edges));
  }
  return {{"nodes", layout.length}, {"sides", sides}};
}

// One sample of the folder's arrays.
struct KeptSample {
  Json facts;
  std::vector<std::int64_t> top_before, top_after;
  Arrays arrays;
};

std::vector<KeptSample> read_samples(const std::string& folder, const Schema& schema) {
  const Json samples = read_json(folder + "/samples.json");
  if (!samples.is_array()) input_error("{}/samples.json: must be a list", folder);
  const auto read = [&](const char* name, bool is_map = false) {
    RawArray array = read_npy(folder + "/" + name);
    const std::int64_t length = array.shape.size() == 2 && is_map ? array.shape[1] : schema.layout.inputs();
    std::vector<std::int64_t> expected = schema.of_maps(length).layout.sample_shape();
    expected.insert(expected.begin(), static_cast<std::int64_t>(samples.size()));
    // A grid of one channel may come without a dimension for it.
    std::vector<std::int64_t> plain = expected;
    if (plain.size() == 4 && plain[1] == 1) plain.erase(plain.begin() + 1);
    if (array.shape != expected && array.shape != plain)
      input_error("{}/{}: has shape {}, expected {}", folder, name, to_string(array.shape), to_string(expected));
    return array;
  };
  const RawArray inputs = read("inputs.npy"), perturbed = read("perturbed.npy");
  const RawArray before = read("original_maps.npy", /*is_map=*/true), after = read("perturbed_maps.npy", /*is_map=*/true);
  const Schema& of_maps = before.shape.size() == 2 ? schema.of_maps(before.shape[1]) : schema;

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
                                 fold(of_maps.layout, to_doubles(slice_of(before, i), folder)),
                                 fold(of_maps.layout, to_doubles(slice_of(after, i), folder))}});
    const std::int64_t features = std::ssize(result.back().arrays.before);
    for (const auto* top : {&result.back().top_before, &result.back().top_after}) {
      const auto beyond = std::ranges::find_if(*top, [&](std::int64_t feature) { return feature < 0 || feature >= features; });
      if (beyond != top->end()) input_error("{}/samples.json: feature {} of a map of {}", folder, *beyond, features);
    }
    if (&of_maps != &schema) use_table(result.back().arrays, schema, of_maps);
    if (schema.layout.kind == Layout::Kind::kSequence) use_steps(result.back().arrays, schema.layout);
  }
  return result;
}

struct Picture {
  const char* name;   // on the page
  const char* title;  // below it, in files
  Image image;
};

std::vector<double> nudge_of(const Arrays& arrays) {
  std::vector<double> nudge(arrays.input.size());
  std::transform(arrays.perturbed.begin(), arrays.perturbed.end(), arrays.input.begin(), nudge.begin(), std::minus<>());
  return nudge;
}

// The share of a map that has the full colour in both.
double common_scale(const Arrays& arrays) {
  return std::max(full_colour(shares(arrays.before)), full_colour(shares(arrays.after)));
}

std::vector<Picture> pictures(const KeptSample& sample, const Layout& layout) {
  const Arrays& arrays = sample.arrays;
  const double scale = common_scale(arrays);
  std::vector<Picture> result{{"input", "input", draw_input(layout, arrays.input)},
                              {"nudge", "nudge", draw_nudge(layout, nudge_of(arrays))},
                              {"perturbed", "nudged input", draw_input(layout, arrays.perturbed)},
                              {"before", "explanation", draw_heat(layout, shares(arrays.before), scale)},
                              {"after", "after", draw_heat(layout, shares(arrays.after), scale)}};
  if (!sample.top_before.empty())
    result.push_back({"change", "top k: what moved", draw_change(layout, arrays.input, sample.top_before, sample.top_after)});
  return result;
}

Json sample_json(const KeptSample& sample, const Schema& schema, PicturePool& pool) {
  Json entry = sample.facts;
  const Layout& layout = schema.layout;
  if (layout.kind == Layout::Kind::kTokens) {
    entry["words"] = words(sample.arrays, schema, sample.top_before, sample.top_after);
    return entry;
  }
  if (!is_drawable(layout)) {
    const Schema& of_maps = schema.of_maps(std::ssize(sample.arrays.before));
    entry["bars"] = bars(sample.arrays, of_maps, sample.top_before, sample.top_after);
    return entry;
  }
  for (const Picture& picture : pictures(sample, layout)) entry["pictures"][picture.name] = pool.add(picture.image);
  const std::vector<double> nudge = nudge_of(sample.arrays);
  entry["nudge"] = std::transform_reduce(
      nudge.begin(), nudge.end(), 0.0, [](double a, double b) { return std::max(a, b); },
      [](double value) { return std::abs(value); });
  entry["share"] = common_scale(sample.arrays);
  entry["sides"] = layout.sides;
  if (layout.kind == Layout::Kind::kGraph) entry["edges"] = edges(layout, sample.top_before, sample.top_after);
  return entry;
}

}  // namespace

Json class_name(const Json& label, const Schema& schema) {
  if (label.is_null()) return {};
  if (label.is_number_float()) return fmt::format("{:g}", label.get<double>());
  const auto number = static_cast<std::size_t>(whole_number(label));
  return number < schema.classes.size() ? schema.classes[number] : fmt::format("class {}", number);
}

std::size_t PicturePool::add(const Image& image) {
  std::string url = "data:image/png;base64," + base64(encode_png(image));
  const auto [place, is_new] = places_.emplace(std::move(url), urls_.size());
  if (is_new) {
    urls_.push_back(place->first);
    bytes_ += place->first.size();
  }
  return place->second;
}

Json worst_samples(const std::string& folder, const Schema& schema, PicturePool& pool) {
  Json result = Json::array();
  for (const KeptSample& sample : read_samples(folder, schema)) result.push_back(sample_json(sample, schema, pool));
  return result;
}

WorstRows worst_of_rows(const std::vector<RowArrays>& rows, PicturePool& pool) {
  std::vector<std::vector<KeptSample>> kept;
  std::size_t most = 0;
  for (const RowArrays& row : rows) {
    kept.push_back(read_samples(row.folder, row.schema));
    most = std::max(most, kept.back().size());
  }
  WorstRows result{.lists = Json(rows.size(), Json::array())};
  std::size_t written = 0;  // of what is no picture
  for (std::size_t rank = 0; rank < most; ++rank) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (rank >= kept[row].size()) continue;
      if (pool.bytes() + written < kMostSampleBytes) {
        result.lists[row].push_back(sample_json(kept[row][rank], rows[row].schema, pool));
        written += result.lists[row].back().dump().size();
      } else {
        ++result.left_out;
      }
    }
  }
  return result;
}

std::vector<SamplePictures> sample_pictures(const std::string& folder, const Schema& schema) {
  std::vector<SamplePictures> result;
  if (!is_drawable(schema.layout)) return result;
  for (const KeptSample& sample : read_samples(folder, schema)) {
    SamplePictures entry{
        .sample = sample.facts.at("sample"), .prediction = sample.facts.at("prediction"), .value = sample.facts.at("value")};
    for (Picture& picture : pictures(sample, schema.layout)) entry.pictures.emplace_back(picture.title, std::move(picture.image));
    result.push_back(std::move(entry));
  }
  return result;
}

}  // namespace holdfast::report

#include "holdfast/data/schema.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/method.h"

namespace holdfast::data {
namespace {

// A JSON object being read: knows its own place for messages ("s.json: features[2]") and refuses keys it does not know.
class ObjectReader {
 public:
  ObjectReader(const Json& json, std::string where, std::initializer_list<const char*> known)
      : json_(json), where_(std::move(where)) {
    if (!json.is_object()) input_error("{}: expected an object, found {}", where_, json.type_name());
    const std::vector<std::string> names(known.begin(), known.end());
    for (const auto& [key, unused] : json.items()) {
      if (std::find(names.begin(), names.end(), key) == names.end()) {
        input_error("{}: unknown key '{}'{}", where_, key, suggestion(key, names));
      }
    }
  }

  bool has(const char* key) const { return json_.contains(key); }
  const Json& at(const char* key) const {
    if (!has(key)) input_error("{}: the key '{}' is missing", where_, key);
    return json_.at(key);
  }
  std::string place(const char* key) const { return fmt::format("{}: {}", where_, key); }

  double real(const char* key) const { return real_at(at(key), place(key)); }
  double real(const char* key, double fallback) const { return has(key) ? real(key) : fallback; }
  std::int64_t integer(const char* key) const { return integer_at(at(key), place(key)); }
  std::int64_t integer(const char* key, std::int64_t fallback) const { return has(key) ? integer(key) : fallback; }
  std::string text(const char* key) const { return text_at(at(key), place(key)); }
  std::string text(const char* key, const char* fallback) const { return has(key) ? text(key) : fallback; }
  bool flag(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    if (!at(key).is_boolean()) input_error("{}: expected true or false, found {}", place(key), at(key).dump());
    return at(key).get<bool>();
  }

  // Gives nothing when the key is absent.
  std::optional<std::pair<double, double>> interval(const char* key) const {
    if (!has(key)) return std::nullopt;
    const Json& ends = at(key);
    if (!ends.is_array() || ends.size() != 2) input_error("{}: expected [low, high], found {}", place(key), ends.dump());
    return std::pair{real_at(ends[0], place(key)), real_at(ends[1], place(key))};
  }

  // Reads each element of an array with `read(element, place)`; an absent key is an empty array.
  template <class Read>
  auto list(const char* key, Read read) const {
    std::vector<decltype(read(json_, std::string()))> result;
    if (!has(key)) return result;
    if (!at(key).is_array()) input_error("{}: expected an array, found {}", place(key), at(key).type_name());
    for (std::size_t i = 0; i < at(key).size(); ++i) result.push_back(read(at(key)[i], fmt::format("{}[{}]", place(key), i)));
    return result;
  }

  static double real_at(const Json& json, const std::string& place) {
    if (!json.is_number()) input_error("{}: expected a number, found {}", place, json.dump());
    return json.get<double>();
  }
  static std::int64_t integer_at(const Json& json, const std::string& place) {
    if (!json.is_number_integer()) input_error("{}: expected a whole number, found {}", place, json.dump());
    return json.get<std::int64_t>();
  }
  static std::string text_at(const Json& json, const std::string& place) {
    if (!json.is_string()) input_error("{}: expected a string, found {}", place, json.dump());
    return json.get<std::string>();
  }

 private:
  const Json& json_;
  std::string where_;
};

const char* kind_name(Layout::Kind kind) {
  static constexpr const char* kNames[] = {"vector", "grid", "graph", "sequence", "tokens"};
  return kNames[static_cast<int>(kind)];
}

Layout read_layout(const Json& json, const std::string& where) {
  const ObjectReader any(json, where, {"kind", "sides", "length", "channels", "height", "width", "nodes", "features", "context"});
  const std::string kind = any.text("kind");
  const std::int64_t sides = any.integer("sides", 1), context = any.integer("context", 0);
  try {
    if (kind == "vector")
      return Layout::vector(ObjectReader(json, where, {"kind", "sides", "length", "context"}).integer("length"), sides)
          .with_context(context);
    if (kind == "graph") return Layout::graph(ObjectReader(json, where, {"kind", "sides", "nodes"}).integer("nodes"), sides);
    if (kind == "grid") {
      const ObjectReader grid(json, where, {"kind", "sides", "channels", "height", "width", "context"});
      return Layout::grid(grid.integer("channels", 1), grid.integer("height"), grid.integer("width"), sides)
          .with_context(context);
    }
    if (kind == "sequence") {
      const ObjectReader steps(json, where, {"kind", "length", "width", "features", "context"});
      const std::string features = steps.text("features", "steps");
      if (features != "steps" && features != "numbers")
        input_error("{}: features is '{}'; it must be steps or numbers", where, features);
      return Layout::sequence(steps.integer("length"), steps.integer("width", 1), features == "steps").with_context(context);
    }
    if (kind == "tokens") {
      const ObjectReader tokens(json, where, {"kind", "length", "width", "context"});
      return Layout::tokens(tokens.integer("length"), tokens.integer("width"), tokens.integer("context", 1));
    }
  } catch (const Error& error) {
    // Layout knows the limit but not the file; its readers name the file themselves.
    if (std::string_view(error.what()).starts_with(where)) throw;
    input_error("{}: {}", where, error.what());
  }
  input_error("{}: unknown kind '{}'{}", where, kind, suggestion(kind, {"vector", "grid", "graph", "sequence", "tokens"}));
}

Feature read_feature(const Json& json, const std::string& where) {
  const ObjectReader reader(json, where, {"name", "low", "high", "step", "frozen", "deviation", "original"});
  const Feature defaults;
  return {.name = reader.text("name", ""),
          .low = reader.real("low", defaults.low),
          .high = reader.real("high", defaults.high),
          .step = reader.real("step", defaults.step),
          .frozen = reader.flag("frozen", defaults.frozen),
          .deviation = reader.has("deviation") ? std::optional(reader.real("deviation")) : std::nullopt,
          .original = reader.interval("original")};
}

Group read_group(const Json& json, const std::string& where) {
  const ObjectReader reader(json, where, {"name", "columns", "levels"});
  return {.name = reader.text("name"),
          .columns = reader.list("columns", ObjectReader::integer_at),
          .levels = reader.list("levels", ObjectReader::text_at)};
}

std::vector<std::int64_t> read_positions(const Json& json, const std::string& where) {
  if (!json.is_array()) input_error("{}: expected an array, found {}", where, json.type_name());
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < json.size(); ++i)
    positions.push_back(ObjectReader::integer_at(json[i], fmt::format("{}[{}]", where, i)));
  return positions;
}

void check_interval(double low, double high, const std::string& where) {
  if (!std::isfinite(low) || !std::isfinite(high)) input_error("{}: low {} and high {} must be finite", where, low, high);
  if (low > high) input_error("{}: low {} is above high {}", where, low, high);
}

void check_features(const Schema& schema, const std::string& where) {
  const auto inputs = static_cast<std::size_t>(schema.layout.inputs());
  if (!schema.features.empty() && schema.features.size() != inputs) {
    input_error("{}: {} features are listed but the layout, a {}, has {}", where, schema.features.size(),
                schema.layout.describe(), inputs);
  }
  for (std::size_t i = 0; i < schema.features.size(); ++i) {
    const Feature& feature = schema.features[i];
    const std::string place = fmt::format("{}: features[{}] ({})", where, i, feature.name);
    check_interval(feature.low, feature.high, place);
    if (!(feature.step >= 0) || !std::isfinite(feature.step)) input_error("{}: step {} must be 0 or more", place, feature.step);
    if (feature.deviation && !(*feature.deviation >= 0 && std::isfinite(*feature.deviation)))
      input_error("{}: deviation {} must be 0 or more", place, *feature.deviation);
    if (feature.original) check_interval(feature.original->first, feature.original->second, place + ": original");
  }
}

void check_groups(const Schema& schema, const std::string& where) {
  std::vector<const Group*> owner(schema.groups.empty() ? 0 : static_cast<std::size_t>(schema.layout.inputs()), nullptr);
  for (const Group& group : schema.groups) {
    const std::string place = fmt::format("{}: group '{}'", where, group.name);
    if (group.columns.empty()) input_error("{} has no columns", place);
    if (!group.levels.empty() && group.levels.size() != group.columns.size()) {
      input_error("{} names {} levels for {} columns", place, group.levels.size(), group.columns.size());
    }
    for (const std::int64_t column : group.columns) {
      if (column < 0 || column >= schema.layout.inputs()) {
        input_error("{}: column {} is not in 0 to {}", place, column, schema.layout.inputs() - 1);
      }
      const Group*& other = owner[static_cast<std::size_t>(column)];
      if (other == &group) input_error("{} lists column {} twice", place, column);
      if (other != nullptr) input_error("{}: column {} belongs to group '{}' already", place, column, other->name);
      other = &group;
    }
  }
}

void check_neighbors(const Schema& schema, const std::string& where) {
  const std::int64_t features = schema.layout.features();
  if (schema.neighbors.empty()) return;
  if (static_cast<std::int64_t>(schema.neighbors.size()) != features)
    input_error("{}: neighbors has {} lists, but the map has {} features", where, schema.neighbors.size(), features);
  for (std::size_t i = 0; i < schema.neighbors.size(); ++i) {
    const std::vector<std::int64_t>& near = schema.neighbors[i];
    for (std::size_t j = 0; j < near.size(); ++j) {
      if (near[j] < 0 || near[j] >= features)
        input_error("{}: neighbors[{}]: feature {} is not in 0 to {}", where, i, near[j], features - 1);
      if (j > 0 && near[j] <= near[j - 1]) input_error("{}: neighbors[{}] must be ascending, each feature once", where, i);
    }
  }
  for (std::size_t i = 0; i < schema.neighbors.size(); ++i) {
    for (const std::int64_t other : schema.neighbors[i]) {
      const std::vector<std::int64_t>& back = schema.neighbors[static_cast<std::size_t>(other)];
      if (!std::binary_search(back.begin(), back.end(), static_cast<std::int64_t>(i)))
        input_error("{}: neighbors[{}] has feature {}, but neighbors[{}] does not have {}", where, i, other, other, i);
    }
  }
}

std::string unnamed(const Layout& layout, std::int64_t feature) {
  switch (layout.kind) {
    case Layout::Kind::kVector:
      return fmt::format("feature {}", feature);
    case Layout::Kind::kGrid:
      return fmt::format("pixel ({}, {})", feature / layout.width, feature % layout.width);
    case Layout::Kind::kGraph: {
      const auto [i, j] = edge_nodes(layout.length, feature);
      return fmt::format("edge ({}, {})", i, j);
    }
    case Layout::Kind::kSequence:
      if (!layout.by_step) return fmt::format("step {}, number {}", feature / layout.stride, feature % layout.stride);
      return fmt::format("step {}", feature);
    case Layout::Kind::kTokens:
      return fmt::format("token {}", feature);
  }
  return {};
}

Json layout_to_json(const Layout& layout) {
  Json json{{"kind", kind_name(layout.kind)}};
  if (layout.sides != 1) json["sides"] = layout.sides;
  if (layout.kind == Layout::Kind::kVector) json["length"] = layout.length;
  if (layout.kind == Layout::Kind::kGraph) json["nodes"] = layout.length;
  if (layout.is_sequence()) json.update({{"length", layout.length}, {"width", layout.stride}});
  if (layout.kind == Layout::Kind::kSequence && !layout.by_step) json["features"] = "numbers";
  if (layout.context > 0) json["context"] = layout.context;
  if (layout.kind == Layout::Kind::kGrid)
    json.update({{"channels", layout.channels}, {"height", layout.height}, {"width", layout.width}});
  return json;
}

Json feature_to_json(const Feature& feature) {
  Json json = Json::object();
  if (!feature.name.empty()) json["name"] = feature.name;
  json["low"] = feature.low;
  json["high"] = feature.high;
  if (feature.step != 0) json["step"] = feature.step;
  if (feature.frozen) json["frozen"] = true;
  if (feature.deviation) json["deviation"] = *feature.deviation;
  if (feature.original) json["original"] = {feature.original->first, feature.original->second};
  return json;
}

Json group_to_json(const Group& group) {
  Json json{{"name", group.name}, {"columns", group.columns}};
  if (!group.levels.empty()) json["levels"] = group.levels;
  return json;
}

}  // namespace

Schema Schema::of(Layout layout) {
  Schema schema;
  schema.layout = layout;
  return schema;
}

std::string Schema::feature_name(std::int64_t feature) const {
  HOLDFAST_CHECK(0 <= feature && feature < layout.features());
  // With several channels a folded feature has as many inputs, none of which names it.
  const bool one_input_each = layout.inputs() == layout.features();
  const std::string given = one_input_each && !features.empty() ? features[static_cast<std::size_t>(feature)].name : "";
  const std::string name = given.empty() ? unnamed(layout, feature % layout.side_features()) : given;
  if (layout.sides == 1) return name;
  return (feature < layout.side_features() ? "first " : "second ") + name;
}

double TableFeature::value_in(std::span<const double> row) const {
  const auto at = [&](std::int64_t column) { return row[static_cast<std::size_t>(column)]; };
  if (!is_category) return at(columns[0]);
  const auto on = std::ranges::max_element(columns, {}, at);
  return static_cast<double>(on - columns.begin());
}

std::string TableFeature::text_in(std::span<const double> row) const {
  const double value = value_in(row);
  if (!is_category) return fmt::format("{:.4g}", value);
  const auto level = static_cast<std::size_t>(value);
  return level < levels.size() ? levels[level] : fmt::format("level {}", level);
}

std::vector<TableFeature> Schema::table_features() const {
  std::vector<const Group*> owner(static_cast<std::size_t>(layout.inputs()), nullptr);
  for (const Group& group : groups) {
    for (const std::int64_t column : group.columns) owner[static_cast<std::size_t>(column)] = &group;
  }
  std::vector<TableFeature> result;
  std::set<const Group*> seen;
  for (std::int64_t column = 0; column < layout.inputs(); ++column) {
    const Group* group = owner[static_cast<std::size_t>(column)];
    if (group == nullptr) {
      result.push_back({.name = feature_name(column), .columns = {column}});
    } else if (seen.insert(group).second) {
      result.push_back({.name = group->name, .columns = group->columns, .is_category = true, .levels = group->levels});
    }
  }
  return result;
}

void Schema::describe_table() {
  table.reset();
  if (groups.empty() || layout.kind != Layout::Kind::kVector || layout.sides != 1) return;
  const std::vector<TableFeature> own = table_features();
  auto result = std::make_shared<Schema>(of(Layout::vector(std::ssize(own))));
  std::vector<std::size_t> place(static_cast<std::size_t>(layout.inputs()));
  for (std::size_t i = 0; i < own.size(); ++i) {
    Feature feature{.name = own[i].name};
    if (!own[i].is_category && !features.empty()) feature = features[static_cast<std::size_t>(own[i].columns[0])];
    feature.name = own[i].name;
    result->features.push_back(std::move(feature));
    for (const std::int64_t column : own[i].columns) place[static_cast<std::size_t>(column)] = i;
  }
  if (!neighbors.empty()) {  // features are next to each other where columns of theirs are
    std::vector<std::set<std::int64_t>> near(own.size());
    for (std::size_t column = 0; column < neighbors.size(); ++column) {
      for (const std::int64_t other : neighbors[column]) {
        const std::size_t a = place[column], b = place[static_cast<std::size_t>(other)];
        if (a != b) near[a].insert(static_cast<std::int64_t>(b));
      }
    }
    for (const std::set<std::int64_t>& one : near) result->neighbors.emplace_back(one.begin(), one.end());
  }
  result->classes = classes;
  table = std::move(result);
}

const Schema& Schema::of_maps(std::int64_t length) const {
  return table != nullptr && length != layout.inputs() && length == table->layout.inputs() ? *table : *this;
}

void Schema::check(const std::string& where) const {
  check_features(*this, where);
  check_groups(*this, where);
  check_neighbors(*this, where);
  if (range) {
    if (!features.empty()) input_error("{}: give features or one range for all of them, not both", where);
    check_interval(range->first, range->second, where + ": range");
  }
}

Json to_json(const Schema& schema) {
  Json json{{"layout", layout_to_json(schema.layout)}};
  for (const Feature& feature : schema.features) json["features"].push_back(feature_to_json(feature));
  for (const Group& group : schema.groups) json["groups"].push_back(group_to_json(group));
  if (!schema.classes.empty()) json["classes"] = schema.classes;
  if (!schema.vocabulary.empty()) json["vocabulary"] = schema.vocabulary;
  if (!schema.neighbors.empty()) json["neighbors"] = schema.neighbors;
  if (schema.range) json["range"] = {schema.range->first, schema.range->second};
  return json;
}

Schema schema_from_json(const Json& json, const std::string& where) {
  const ObjectReader reader(json, where, {"layout", "features", "groups", "classes", "vocabulary", "neighbors", "range"});
  Schema schema;
  schema.layout = read_layout(reader.at("layout"), reader.place("layout"));
  schema.features = reader.list("features", read_feature);
  schema.groups = reader.list("groups", read_group);
  schema.classes = reader.list("classes", ObjectReader::text_at);
  schema.vocabulary = reader.list("vocabulary", ObjectReader::text_at);
  schema.neighbors = reader.list("neighbors", read_positions);
  schema.range = reader.interval("range");
  schema.check(where);
  schema.describe_table();
  return schema;
}

Schema read_schema(const std::string& path) {
  return schema_from_json(read_json(path), path);
}

}  // namespace holdfast::data

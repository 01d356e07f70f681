// What is known about the features of a dataset: names, one-hot groups, ranges, integer and frozen features, and the
// layout of a sample. Written beside arrays as JSON and read with `--schema FILE`:
//
//     {"layout": {"kind": "vector", "length": 4},
//      "features": [{"name": "age", "low": 0, "high": 1, "step": 0.0137, "deviation": 0.187, "original": [17, 90]}, ...],
//      "groups": [{"name": "sex", "columns": [2, 3]}],
//      "classes": ["<=50K", ">50K"],
//      "neighbors": [[1], [0], [], []]}
//
// Every key but layout may be left out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/layout.h"

namespace holdfast::data {

struct Feature {
  std::string name;
  double low = 0;  // range of valid values, in the units of the inputs
  double high = 1;
  double step = 0;      // 0: any value; otherwise valid values are low + a multiple of step (integer columns)
  bool frozen = false;  // an attack must not move it
  // Standard deviation over the training rows, in the units of the inputs; nothing where it is not known.
  std::optional<double> deviation = {};
  // What low and high were before the encoding scaled them (years, say); for showing, never for computing.
  std::optional<std::pair<double, double>> original = {};
};

// Columns that encode one categorical column: exactly one of them is 1 in a valid row.
struct Group {
  std::string name;
  std::vector<std::int64_t> columns;
  std::vector<std::string> levels;  // a name for each column
};

// A feature of the table: a number, which has one column, or a category, whose group has one for each level.
struct TableFeature {
  std::string name;
  std::vector<std::int64_t> columns;
  bool is_category = false;
  std::vector<std::string> levels = {};  // of a category, a name for each column

  // What a row of inputs has: the number, or the position of the level that is on, the first of those with the largest value.
  double value_in(std::span<const double> row) const;
  // "0.25", "Caucasian", "level 2".
  std::string text_in(std::span<const double> row) const;
};

struct Schema {
  Layout layout;
  // Empty, or one for each input element. Images have none: their range is `range`.
  std::vector<Feature> features;
  std::vector<Group> groups;
  std::vector<std::string> classes;
  // Tokens: a word for each id, which reports show; may be empty.
  std::vector<std::string> vocabulary = {};
  // Empty, or for each feature of a folded map the features that count as next to it, ascending and mutual: correlated columns
  // of a table, say. Metrics with a neighbourhood use it instead of the layout's own.
  std::vector<std::vector<std::int64_t>> neighbors;
  // Range of every element when `features` is empty; unset when nothing is known.
  std::optional<std::pair<double, double>> range;
  // What is known about maps with one value for each feature of the table; null until `describe_table`, and where each feature
  // has one column.
  std::shared_ptr<const Schema> table;

  // A schema that knows nothing but the layout.
  static Schema of(Layout layout);

  // "age", "pixel (3, 4)", "edge (2, 7)", "feature 5"; of a folded map's feature.
  std::string feature_name(std::int64_t feature) const;
  // Throws kInput when parts disagree: a column in two groups, low above high, a wrong count.
  void check(const std::string& where) const;

  // In the order of their first columns.
  std::vector<TableFeature> table_features() const;
  // Sets `table`. Whoever loads or shares a schema calls it; a schema that is changed afterwards needs it again.
  void describe_table();
  // What is known about maps of `length` values: this, or `table` where there are as many as features of the table.
  const Schema& of_maps(std::int64_t length) const;
};

Json to_json(const Schema& schema);
// `where` names the file in messages.
Schema schema_from_json(const Json& json, const std::string& where);
Schema read_schema(const std::string& path);

}  // namespace holdfast::data

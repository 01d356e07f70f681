// Maps for the metric tests: random ones, with and without ties, and schemas of every kind of neighbourhood.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "holdfast/core/rng.h"
#include "holdfast/metric/metric.h"

namespace holdfast::metric {

// levels = 0: continuous; otherwise whole numbers below it, so that there are ties.
inline std::vector<double> random_map(RandomStream& stream, std::int64_t size, std::uint64_t levels = 0) {
  std::vector<double> values(static_cast<std::size_t>(size));
  for (double& value : values) value = levels == 0 ? stream.uniform() : static_cast<double>(stream.below(levels));
  return values;
}

inline double compare(const std::string& call, const Schema& schema, const std::vector<double>& a, const std::vector<double>& b) {
  return metrics().make(call)->compare({a, schema}, {b, schema});
}

struct NamedSchema {
  std::string name;
  Schema schema;

  friend void PrintTo(const NamedSchema& schema, std::ostream* out) { *out << schema.name; }
};

inline Schema table_schema() {
  Schema schema = Schema::of(Layout::vector(9));
  schema.groups = {{.name = "colour", .columns = {1, 4, 5}}, {.name = "shape", .columns = {7, 8}}};
  return schema;
}

inline Schema list_schema() {
  Schema schema = Schema::of(Layout::vector(8));
  schema.neighbors = {{1}, {0, 2}, {1, 3, 6}, {2}, {}, {6}, {2, 5}, {}};
  return schema;
}

inline std::vector<NamedSchema> all_schemas() {
  return {{"grid", Schema::of(Layout::grid(3, 5, 7))},
          {"wide_grid", Schema::of(Layout::grid(1, 2, 150))},
          {"tall_grid", Schema::of(Layout::grid(1, 70, 2))},
          {"pair_of_grids", Schema::of(Layout::grid(1, 4, 6, 2))},
          {"word_wide_grid", Schema::of(Layout::grid(1, 3, 64))},
          {"positions", Schema::of(Layout::vector(20))},
          {"pair_of_vectors", Schema::of(Layout::vector(6, 2))},
          {"graph", Schema::of(Layout::graph(6))},
          {"pair_of_graphs", Schema::of(Layout::graph(5, 2))},
          {"table", table_schema()},
          {"lists", list_schema()},
          {"pixel", Schema::of(Layout::grid(1, 1, 1))}};
}

}  // namespace holdfast::metric

// What the datasets that are tables share.
#pragma once

#include <string>
#include <vector>

#include "holdfast/data/dataset.h"
#include "holdfast/data/splits.h"
#include "holdfast/data/table.h"

namespace holdfast::data {

// The options of every table, and those of one dataset after them.
std::vector<OptionSpec> table_options(std::vector<OptionSpec> own = {});

// Encodes `table` with statistics of the training part. `labels` is categorical: its levels are the classes.
Dataset table_dataset(const Table& table, const Column& labels, Split split, const Encoding& encoding);

// A column of a file; one without levels is a number.
struct TableColumn {
  std::string name;
  std::vector<std::string> levels = {};
};
Table read_columns(const ColumnReader& reader, const std::vector<TableColumn>& columns);

// Gives the rows for which `keep` is true, with their lines.
template <class Keep>
CsvTable filtered(const CsvTable& csv, Keep keep) {
  CsvTable result{.names = csv.names};
  for (std::size_t row = 0; row < csv.rows.size(); ++row) {
    if (!keep(csv.rows[row])) continue;
    result.rows.push_back(csv.rows[row]);
    result.lines.push_back(csv.lines[row]);
  }
  return result;
}

}  // namespace holdfast::data

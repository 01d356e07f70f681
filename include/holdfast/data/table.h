// From the columns of a table to features: numbers are scaled, categories become one-hot groups. Needs no torch.
//
//     encoding   value of a numeric column           low, high
//     minmax     (v - min) / (max - min)             0, 1
//     standard   (v - mean) / deviation              of the encoded values
//     raw        v                                   min, max
//
// Minimum and maximum are taken over all rows: a sample must lie inside its own box, or an attack could not leave it as it
// is, and the two say nothing about labels. Mean and deviation are taken over the training rows. A column of whole
// numbers has a step, so that an attack can be held to valid values.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/csv.h"
#include "holdfast/core/method.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/schema.h"

namespace holdfast::data {

struct Column {
  std::string name;
  std::vector<double> numbers;      // a numeric column: one for each row
  std::vector<std::int64_t> codes;  // a categorical column: positions in `levels`, one for each row
  std::vector<std::string> levels;

  bool is_numeric() const { return levels.empty(); }
  std::size_t size() const { return is_numeric() ? numbers.size() : codes.size(); }
};

using Table = std::vector<Column>;  // columns as long as each other

// Reads text tables into columns; messages name `where`, the line and the column.
class ColumnReader {
 public:
  ColumnReader(const CsvTable& csv, std::string where) : csv_(csv), where_(std::move(where)) {}

  // Throws kInput for a field that is empty or not a finite number.
  Column numeric(const std::string& name) const;
  // Levels in the order given; a field that is none of them throws kInput. Without levels: those found, sorted.
  // `rename` maps a field to its level, to merge levels.
  Column categorical(const std::string& name, std::vector<std::string> levels = {},
                     const std::function<std::string(const std::string&)>& rename = {}) const;
  // Numeric when every field is a number, categorical otherwise. Throws kInput for an empty field.
  Column inferred(const std::string& name) const;

 private:
  const std::string& field(std::size_t row, std::size_t column) const;
  std::string place(std::size_t row, const std::string& name) const;

  const CsvTable& csv_;
  std::string where_;
};

struct Encoding {
  enum class Scale { kMinMax, kStandard, kRaw };
  Scale scale = Scale::kMinMax;
  // Leaves out the first level of each category, which then is the row of zeros. Such columns are no one-hot group: the
  // schema has no groups then.
  bool drop_first = false;
};

// The options `encoding` and `drop_first` of every dataset that is a table, and how they are read.
std::vector<OptionSpec> encoding_options();
Encoding encoding_of(const Options& options);

struct EncodedTable {
  std::int64_t rows = 0;
  std::vector<float> values;  // row-major, rows x schema.layout.inputs()
  Schema schema;              // layout, features and groups
};

// At least one column and one row.
EncodedTable encode(const Table& table, const Encoding& encoding, std::span<const std::int64_t> training_rows);

}  // namespace holdfast::data

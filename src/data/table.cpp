#include "holdfast/data/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

#include <fmt/core.h>

#include "holdfast/core/error.h"

namespace holdfast::data {
namespace {

std::optional<double> parse_finite(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool is_whole(double number) {
  return number == std::floor(number) && std::abs(number) < 1e15;
}

// The encoded value is (number - shift) / scale.
struct Affine {
  double shift = 0;
  double scale = 1;
  double operator()(double number) const { return (number - shift) / scale; }
};

Affine standardise(const std::vector<double>& numbers, std::span<const std::int64_t> rows) {
  double sum = 0, squares = 0;
  for (const std::int64_t row : rows) sum += numbers[static_cast<std::size_t>(row)];
  const double mean = rows.empty() ? 0 : sum / static_cast<double>(rows.size());
  for (const std::int64_t row : rows) squares += std::pow(numbers[static_cast<std::size_t>(row)] - mean, 2);
  const double deviation = rows.empty() ? 0 : std::sqrt(squares / static_cast<double>(rows.size()));
  return {mean, deviation > 0 ? deviation : 1};
}

// Builds the encoded table a column at a time.
class Encoder {
 public:
  Encoder(const Table& table, const Encoding& encoding, std::span<const std::int64_t> training_rows)
      : encoding_(encoding), training_rows_(training_rows) {
    HOLDFAST_CHECK(!table.empty() && table.front().size() > 0);
    rows_ = table.front().size();
    for (const Column& column : table) {
      HOLDFAST_CHECK(column.size() == rows_);
      column.is_numeric() ? add_numeric(column) : add_categorical(column);
    }
  }

  EncodedTable finish() {
    EncodedTable result{.rows = static_cast<std::int64_t>(rows_), .values = std::vector<float>(rows_ * columns_.size())};
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      for (std::size_t row = 0; row < rows_; ++row) result.values[row * columns_.size() + column] = columns_[column][row];
    }
    schema_.layout = Layout::vector(static_cast<std::int64_t>(columns_.size()));
    result.schema = std::move(schema_);
    return result;
  }

 private:
  Affine scaling_of(const Column& column, double low, double high) const {
    switch (encoding_.scale) {
      case Encoding::Scale::kMinMax:
        return {low, high > low ? high - low : 1};
      case Encoding::Scale::kStandard:
        return standardise(column.numbers, training_rows_);
      case Encoding::Scale::kRaw:
        return {};
    }
    return {};
  }

  void add_numeric(const Column& column) {
    const auto [low, high] = std::minmax_element(column.numbers.begin(), column.numbers.end());
    const Affine affine = scaling_of(column, *low, *high);
    const bool whole = std::all_of(column.numbers.begin(), column.numbers.end(), is_whole);
    schema_.features.push_back({.name = column.name,
                                .low = affine(*low),
                                .high = affine(*high),
                                .step = whole && *high > *low ? 1 / affine.scale : 0,
                                .original = std::pair{*low, *high}});
    std::vector<float>& values = columns_.emplace_back(rows_);
    std::transform(column.numbers.begin(), column.numbers.end(), values.begin(),
                   [&](double number) { return static_cast<float>(affine(number)); });
  }

  void add_categorical(const Column& column) {
    Group group{.name = column.name};
    for (std::size_t level = encoding_.drop_first ? 1 : 0; level < column.levels.size(); ++level) {
      group.columns.push_back(static_cast<std::int64_t>(columns_.size()));
      group.levels.push_back(column.levels[level]);
      schema_.features.push_back({.name = column.name + "=" + column.levels[level], .low = 0, .high = 1, .step = 1});
      std::vector<float>& values = columns_.emplace_back(rows_);
      for (std::size_t row = 0; row < rows_; ++row)
        values[row] = column.codes[row] == static_cast<std::int64_t>(level) ? 1.0F : 0.0F;
    }
    if (!encoding_.drop_first) schema_.groups.push_back(std::move(group));
  }

  const Encoding& encoding_;
  std::span<const std::int64_t> training_rows_;
  std::size_t rows_ = 0;
  std::vector<std::vector<float>> columns_;
  Schema schema_;
};

}  // namespace

const std::string& ColumnReader::field(std::size_t row, std::size_t column) const {
  return csv_.rows[row][column];
}

std::string ColumnReader::place(std::size_t row, const std::string& name) const {
  return fmt::format("{}:{}: column '{}'", where_, csv_.lines[row], name);
}

Column ColumnReader::numeric(const std::string& name) const {
  const std::size_t position = csv_.column(name, where_);
  Column column{.name = name};
  for (std::size_t row = 0; row < csv_.rows.size(); ++row) {
    const auto number = parse_finite(field(row, position));
    if (!number) input_error("{}: '{}' is not a finite number", place(row, name), field(row, position));
    column.numbers.push_back(*number);
  }
  return column;
}

Column ColumnReader::categorical(const std::string& name, std::vector<std::string> levels,
                                 const std::function<std::string(const std::string&)>& rename) const {
  const std::size_t position = csv_.column(name, where_);
  std::vector<std::string> words;
  for (std::size_t row = 0; row < csv_.rows.size(); ++row) {
    if (field(row, position).empty()) input_error("{} is empty", place(row, name));
    words.push_back(rename ? rename(field(row, position)) : field(row, position));
  }
  if (levels.empty()) {
    levels = words;
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  }

  std::unordered_map<std::string, std::int64_t> code;
  for (const std::string& level : levels) code.emplace(level, static_cast<std::int64_t>(code.size()));
  Column column{.name = name, .levels = std::move(levels)};
  for (std::size_t row = 0; row < words.size(); ++row) {
    const auto found = code.find(words[row]);
    if (found == code.end())
      input_error("{}: unknown value '{}'{}", place(row, name), words[row], suggestion(words[row], column.levels));
    column.codes.push_back(found->second);
  }
  return column;
}

Column ColumnReader::inferred(const std::string& name) const {
  const std::size_t position = csv_.column(name, where_);
  bool numeric_fields = true;
  for (std::size_t row = 0; row < csv_.rows.size(); ++row) {
    if (field(row, position).empty()) input_error("{} is empty", place(row, name));
    numeric_fields = numeric_fields && parse_finite(field(row, position)).has_value();
  }
  return numeric_fields ? numeric(name) : categorical(name);
}

std::vector<OptionSpec> encoding_options() {
  return {{"encoding", "minmax", one_of({"minmax", "standard", "raw"}), "how numbers are scaled"},
          {"drop_first", false, anything(), "leave out the first level of each category"}};
}

Encoding encoding_of(const Options& options) {
  const std::string& scale = options.word("encoding");
  return {.scale = scale == "minmax"     ? Encoding::Scale::kMinMax
                   : scale == "standard" ? Encoding::Scale::kStandard
                                         : Encoding::Scale::kRaw,
          .drop_first = options.flag("drop_first")};
}

EncodedTable encode(const Table& table, const Encoding& encoding, std::span<const std::int64_t> training_rows) {
  return Encoder(table, encoding, training_rows).finish();
}

}  // namespace holdfast::data

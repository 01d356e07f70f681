#include "tables.h"

#include <algorithm>
#include <cctype>

#include "holdfast/core/files.h"
#include "holdfast/core/torch.h"

namespace holdfast::data {

std::vector<OptionSpec> table_options(std::vector<OptionSpec> own) {
  std::vector<OptionSpec> options = encoding_options();
  options.insert(options.end(), own.begin(), own.end());
  return options;
}

Dataset table_dataset(const Table& table, const Column& labels, Split split, const Encoding& encoding) {
  EncodedTable encoded = encode(table, encoding, split.train);
  Dataset dataset;
  dataset.inputs = at::tensor(encoded.values, at::kFloat).view({encoded.rows, encoded.schema.layout.inputs()});
  dataset.labels = at::tensor(labels.codes, at::kLong);
  dataset.schema = std::move(encoded.schema);
  dataset.schema.classes = labels.levels;
  dataset.train = std::move(split.train);
  dataset.validation = std::move(split.validation);
  dataset.test = std::move(split.test);
  if (encoding.drop_first)
    dataset.notes.emplace_back("the first level of each category has no column, so the schema has no groups");
  return dataset;
}

CsvTable read_arff(const std::string& path, const std::vector<std::string>& names) {
  std::string text = read_text(path);
  std::string small = text;  // ARFF's keywords may have capitals
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t found = small.find("\n@data\n");
  if (found == std::string::npos) input_error("{} has no line @data; expected Weka's file of that name", path);
  const std::size_t rows = text.find('\n', found + 1);
  const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(rows), '\n');
  text.replace(0, rows, std::string(static_cast<std::size_t>(lines), '\n'));
  std::ranges::replace(text, '\'', '"');
  CsvTable csv = parse_csv(text, {.header = false}, path);
  if (csv.rows.empty()) input_error("{} has no rows", path);
  csv.names = names;
  if (csv.rows[0].size() != csv.names.size())
    input_error("{}:{}: {} fields, expected {}", path, csv.lines[0], csv.rows[0].size(), csv.names.size());
  return csv;
}

}  // namespace holdfast::data

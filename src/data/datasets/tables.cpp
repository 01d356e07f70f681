#include "tables.h"

#include "holdfast/core/torch.h"

namespace holdfast::data {

std::vector<OptionSpec> table_options(std::vector<OptionSpec> own) {
  std::vector<OptionSpec> options = encoding_options();
  options.insert(options.end(), own.begin(), own.end());
  return options;
}

Table read_columns(const ColumnReader& reader, const std::vector<TableColumn>& columns) {
  Table table;
  for (const TableColumn& column : columns)
    table.push_back(column.levels.empty() ? reader.numeric(column.name) : reader.categorical(column.name, column.levels));
  return table;
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

}  // namespace holdfast::data

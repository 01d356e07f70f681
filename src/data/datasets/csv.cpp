// csv: a table of the user's own.
//
// Without a schema, column types are inferred: a column is numeric when every field of it is a number, otherwise categorical;
// `categorical=` names columns of numbers that are categories (codes). With `schema=FILE` the table is taken to be encoded
// already: the columns that the schema's features name, in its order, as they stand.
#include <algorithm>

#include "holdfast/data/dataset.h"
#include "tables.h"

namespace holdfast::data::csv {

// More levels than this make a column an identifier or free text rather than a category.
constexpr std::size_t kMostLevels = 200;

const MethodInfo kInfo{
    .name = "csv",
    .summary = "a table of your own: types inferred, or already encoded with a schema",
    .options =
        table_options({{"path", "", anything(), "the file"},
                       {"label", "", anything(), "column of the class; default the last"},
                       {"separator", "comma", one_of({"comma", "semicolon", "tab", "space"}), "what stands between fields"},
                       {"schema", "", anything(), "JSON file; its features name the columns, which are then taken as they stand"},
                       {"categorical", "", anything(), "columns of numbers that are categories, with ; between them"},
                       {"drop", "", anything(), "columns not to use, with ; between them"},
                       {"validation", 0.2, between(0, 1), "share of the rows"},
                       {"test", 0.2, between(0, 1), "share of the rows"}}),
    .notes = "an empty field or one that is not a finite number in a numeric column is an error: fill it or drop the row first"};

char separator_of(const std::string& word) {
  if (word == "semicolon") return ';';
  if (word == "tab") return '\t';
  return word == "space" ? ' ' : ',';
}

std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(';', start), text.size());
    if (end > start) words.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void refuse_identifiers(const Column& column, const std::string& path) {
  if (column.levels.size() > kMostLevels) {
    input_error("{}: column '{}' has {} different values, more than {}; leave it out with drop={}", path, column.name,
                column.levels.size(), kMostLevels, column.name);
  }
}

// The classes are the values found: whole numbers in their order, words sorted.
Column read_labels_column(const ColumnReader& reader, const std::string& name, const std::vector<std::string>& classes,
                          const std::string& path) {
  if (!classes.empty()) return reader.categorical(name, classes);
  Column column = reader.inferred(name);
  if (!column.is_numeric()) {
    refuse_identifiers(column, path);
    return column;
  }
  std::vector<double> values = column.numbers;
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  const bool whole = std::all_of(values.begin(), values.end(), [](double value) { return value == std::floor(value); });
  if (!whole || values.size() > kMostLevels) {
    input_error("{}: label column '{}' holds {} different numbers; classes are needed (at most {} whole numbers or words)", path,
                name, values.size(), kMostLevels);
  }
  for (const double value : values) column.levels.push_back(fmt::format("{}", value));
  for (const double number : column.numbers)
    column.codes.push_back(std::lower_bound(values.begin(), values.end(), number) - values.begin());
  return column;
}

// Columns are asked for by name, so a second one of the same name would silently be the first again.
void refuse_repeated_names(std::vector<std::string> names, const std::string& path) {
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end()) input_error("{}: two columns are called '{}'", path, *repeated);
}

class Csv final : public DatasetLoader {
 public:
  explicit Csv(const Options& options)
      : encoding_(encoding_of(options)),
        path_(options.word("path")),
        label_(options.word("label")),
        separator_(separator_of(options.word("separator"))),
        schema_(options.word("schema")),
        categorical_(listed(options.word("categorical"))),
        drop_(listed(options.word("drop"))),
        shares_{.validation = options.real("validation"), .test = options.real("test")} {
    if (!schema_.empty() &&
        (options.given("encoding") || options.given("drop_first") || !categorical_.empty() || !drop_.empty())) {
      usage_error("csv(schema={}): columns are taken as they stand; encoding, drop_first, categorical and drop do not apply",
                  schema_);
    }
  }

  Dataset load(const LoadContext& context) const override {
    if (path_.empty()) usage_error("csv: name the file, as in csv(path=table.csv)");
    const CsvTable csv = read_csv(path_, {.separator = separator_});
    if (csv.rows.empty()) input_error("{} has no rows", path_);
    refuse_repeated_names(csv.names, path_);
    const ColumnReader reader(csv, path_);
    const std::string label = label_.empty() ? csv.names.back() : label_;
    if (schema_.empty()) {
      const Column labels = read_labels_column(reader, label, {}, path_);
      return table_dataset(columns(csv, reader, label), labels, stratified_split(labels.codes, context.seed, shares_), encoding_);
    }

    const Schema schema = read_schema(schema_);
    const Column labels = read_labels_column(reader, label, schema.classes, path_);
    Dataset dataset = table_dataset(encoded_columns(reader, schema), labels,
                                    stratified_split(labels.codes, context.seed, shares_), {.scale = Encoding::Scale::kRaw});
    const std::vector<std::string> classes = std::move(dataset.schema.classes);
    dataset.schema = schema;
    dataset.schema.classes = classes;
    return dataset;
  }

 private:
  Table columns(const CsvTable& csv, const ColumnReader& reader, const std::string& label) const {
    for (const auto* names : {&categorical_, &drop_}) {
      for (const std::string& name : *names) csv.column(name, path_);  // throws for a name that is not there
    }
    Table table;
    for (const std::string& name : csv.names) {
      if (name == label || contains(drop_, name)) continue;
      table.push_back(contains(categorical_, name) ? reader.categorical(name) : reader.inferred(name));
      refuse_identifiers(table.back(), path_);
    }
    if (table.empty()) input_error("{} has no column beside the label '{}'", path_, label);
    return table;
  }

  Table encoded_columns(const ColumnReader& reader, const Schema& schema) const {
    if (schema.layout.kind != Layout::Kind::kVector || schema.layout.sides != 1) {
      input_error("{}: a table needs the layout of a vector, not a {}", schema_, schema.layout.describe());
    }
    if (schema.features.empty()) input_error("{}: features are needed to name the columns of {}", schema_, path_);
    Table table;
    for (const Feature& feature : schema.features) table.push_back(reader.numeric(feature.name));
    return table;
  }

  Encoding encoding_;
  std::string path_, label_;
  char separator_;
  std::string schema_;
  std::vector<std::string> categorical_, drop_;
  SplitShares shares_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Csv>(kInfo);
}

}  // namespace holdfast::data::csv

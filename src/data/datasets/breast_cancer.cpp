// Wisconsin Diagnostic Breast Cancer, as scikit-learn ships it: 569 images of cell nuclei, ten measurements of each, as mean,
// standard error and worst. The file's first line holds counts and class names; the last column is the class.
#include <array>

#include "holdfast/core/files.h"
#include "holdfast/data/dataset.h"
#include "tables.h"

namespace holdfast::data::breast_cancer {

const MethodInfo kInfo{
    .name = "breast_cancer",
    .summary = "measurements of cell nuclei: malignant or benign (Wisconsin Diagnostic)",
    .citation = "Wolberg, Mangasarian, Street and Street, Breast Cancer Wisconsin (Diagnostic), UCI, 1993, doi:10.24432/C5DW2B",
    .options = table_options(),
    .notes = "569 rows, 30 features; ships with scikit-learn, so that nothing need be downloaded where that is installed"};

constexpr std::array kMeasurements = {"radius",      "texture",   "perimeter",      "area",     "smoothness",
                                      "compactness", "concavity", "concave points", "symmetry", "fractal dimension"};

std::vector<std::string> column_names() {
  std::vector<std::string> names;
  for (const char* measurement : kMeasurements) names.push_back(fmt::format("mean {}", measurement));
  for (const char* measurement : kMeasurements) names.push_back(fmt::format("{} error", measurement));
  for (const char* measurement : kMeasurements) names.push_back(fmt::format("worst {}", measurement));
  return names;
}

class BreastCancer final : public DatasetLoader {
 public:
  explicit BreastCancer(const Options& options) : encoding_(encoding_of(options)) {}

  Source source() const override {
    return {
        .folder = "breast_cancer",
        .files =
            {{.path = "breast_cancer.csv",
              .sha256 = {"fed3eb72d0575ef6192293f5093c6e801b1476b577d0386bf4455504522172ed"},
              .url =
                  "https://raw.githubusercontent.com/scikit-learn/scikit-learn/1.5.2/sklearn/datasets/data/breast_cancer.csv"}},
        .licence = "CC BY 4.0",
        .homepage = "https://archive.ics.uci.edu/dataset/17/breast+cancer+wisconsin+diagnostic",
        .package = "scikit-learn",
        .package_folders = python_package_folders("sklearn/datasets/data")};
  }

  Dataset load(const LoadContext& context) const override {
    const std::string path = require_source(kInfo.name, source(), context.folder) + "/breast_cancer.csv";
    std::string text = read_text(path);
    const CsvTable heading = parse_csv(text.substr(0, text.find('\n')), {.header = false}, path);
    if (heading.rows.empty() || heading.rows[0].size() != 4)
      input_error("{}:1: expected rows, columns and two class names", path);
    // Emptied rather than removed, so that messages name the right line.
    text.erase(0, std::min(text.find('\n'), text.size()));
    CsvTable csv = parse_csv(text, {.header = false}, path);
    csv.names = column_names();
    csv.names.push_back("diagnosis");
    if (csv.rows.empty()) input_error("{} has no rows", path);
    if (csv.rows[0].size() != csv.names.size())
      input_error("{}:2: {} fields, expected {}", path, csv.rows[0].size(), csv.names.size());

    const ColumnReader reader(csv, path);
    Table table;
    for (const std::string& name : column_names()) table.push_back(reader.numeric(name));
    Column labels = reader.categorical("diagnosis", {"0", "1"});
    labels.levels = {heading.rows[0][2], heading.rows[0][3]};
    return table_dataset(table, labels, stratified_split(labels.codes, context.seed), encoding_);
  }

 private:
  Encoding encoding_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<BreastCancer>(kInfo);
}

}  // namespace holdfast::data::breast_cancer

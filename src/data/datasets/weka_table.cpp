#include "weka_table.h"

#include "arff.h"

namespace holdfast::data {
namespace {

const std::string kWekaFolder =
    "https://raw.githubusercontent.com/bnjmn/weka/cf0496df4b900e92805d7e35c3deeaa92fed4d09/wekadocs/data/";

}  // namespace

Source weka_source(const std::string& folder, const std::string& file, const std::string& sha256, const std::string& licence,
                   const std::string& homepage) {
  return {.folder = folder,
          .files = {{.path = file, .sha256 = {sha256}, .url = kWekaFolder + file}},
          .licence = licence,
          .homepage = homepage,
          .package = "weka",
          .package_folders = {"/usr/share/doc/weka/examples"}};
}

Dataset WekaTable::load(const LoadContext& context) const {
  const std::string path = require_source(source_.folder, source_, context.folder) + "/" + source_.files[0].path;
  std::vector<std::string> names;
  for (const TableColumn& column : columns_) names.push_back(column.name);
  names.emplace_back("class");
  const CsvTable csv = read_arff(path, names);
  const ColumnReader reader(csv, path);
  const Column labels = reader.categorical("class", classes_);
  return table_dataset(read_columns(reader, columns_), labels, stratified_split(labels.codes, context.seed), encoding_);
}

}  // namespace holdfast::data

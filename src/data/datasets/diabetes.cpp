// Pima Indians Diabetes, as Weka ships it (diabetes.arff): does a test for diabetes turn out positive?
// Eight numbers; zeros that stand for missing values are left as they are.
#include "holdfast/data/dataset.h"
#include "arff.h"
#include "tables.h"

namespace holdfast::data::diabetes {

const MethodInfo kInfo{.name = "diabetes",
                       .summary = "medical measurements: tested positive for diabetes or not (Pima Indians Diabetes)",
                       .citation =
                           "Smith, Everhart, Dickson, Knowler and Johannes, Using the ADAP learning algorithm to forecast the "
                           "onset of diabetes mellitus, 1988",
                       .options = table_options(),
                       .notes = "768 rows, 268 of them positive; 8 numbers. The file is Weka's, Debian's package weka"};

const std::vector<std::string> kColumns{"pregnancies", "glucose", "pressure", "skin", "insulin", "mass", "pedigree", "age"};

class Diabetes final : public DatasetLoader {
 public:
  explicit Diabetes(const Options& options) : encoding_(encoding_of(options)) {}

  Source source() const override {
    return {.folder = "diabetes",
            .files = {{.path = "diabetes.arff",
                       .sha256 = {"01c38ba089121a39a4ee5bafb3c9bddd71e4337d8f0268c85a999a37c1a027e6"},
                       .url = "https://raw.githubusercontent.com/bnjmn/weka/cf0496df4b900e92805d7e35c3deeaa92fed4d09/wekadocs/"
                              "data/diabetes.arff"}},
            .licence = "not stated",
            .homepage = "https://www.openml.org/d/37",
            .package = "weka",
            .package_folders = {"/usr/share/doc/weka/examples"}};
  }

  Dataset load(const LoadContext& context) const override {
    const std::string path = require_source(kInfo.name, source(), context.folder) + "/diabetes.arff";
    std::vector<std::string> names = kColumns;
    names.emplace_back("class");
    const CsvTable csv = read_arff(path, names);
    const ColumnReader read(csv, path);
    Table table;
    for (const std::string& name : kColumns) table.push_back(read.numeric(name));
    const Column labels = read.categorical("class", {"tested_negative", "tested_positive"});
    return table_dataset(table, labels, stratified_split(labels.codes, context.seed), encoding_);
  }

 private:
  Encoding encoding_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Diabetes>(kInfo);
}

}  // namespace holdfast::data::diabetes

// Statlog German Credit, as Weka ships it (credit-g.arff): is an applicant for a loan a good or a bad risk?
// 7 numbers and 13 categories with 54 levels. Two levels that the file declares and no row has (a vacation as the purpose, single
// women) are left out.
#include "holdfast/data/dataset.h"
#include "arff.h"
#include "tables.h"

namespace holdfast::data::german_credit {

const MethodInfo kInfo{.name = "german_credit",
                       .summary = "applications for loans: a good or a bad risk (Statlog German Credit)",
                       .citation = "Hofmann, Statlog (German Credit Data), UCI, 1994, doi:10.24432/C5NC77",
                       .options = table_options(),
                       .notes =
                           "1,000 rows, 300 of them bad; 7 numbers and 13 categories: 61 features, 48 with "
                           "drop_first. The file is Weka's, Debian's package weka"};

// The columns in the file's order; one without levels is a number.
struct GermanColumn {
  const char* name;
  std::vector<std::string> levels = {};
};

const std::vector<GermanColumn>& german_columns() {
  static const std::vector<GermanColumn> columns{
      {"checking_status", {"<0", "0<=X<200", ">=200", "no checking"}},
      {"duration"},
      {"credit_history",
       {"no credits/all paid", "all paid", "existing paid", "delayed previously", "critical/other existing credit"}},
      {"purpose",
       {"new car", "used car", "furniture/equipment", "radio/tv", "domestic appliance", "repairs", "education", "retraining",
        "business", "other"}},
      {"credit_amount"},
      {"savings_status", {"<100", "100<=X<500", "500<=X<1000", ">=1000", "no known savings"}},
      {"employment", {"unemployed", "<1", "1<=X<4", "4<=X<7", ">=7"}},
      {"installment_commitment"},
      {"personal_status", {"male div/sep", "female div/dep/mar", "male single", "male mar/wid"}},
      {"other_parties", {"none", "co applicant", "guarantor"}},
      {"residence_since"},
      {"property_magnitude", {"real estate", "life insurance", "car", "no known property"}},
      {"age"},
      {"other_payment_plans", {"bank", "stores", "none"}},
      {"housing", {"rent", "own", "for free"}},
      {"existing_credits"},
      {"job", {"unemp/unskilled non res", "unskilled resident", "skilled", "high qualif/self emp/mgmt"}},
      {"num_dependents"},
      {"own_telephone", {"none", "yes"}},
      {"foreign_worker", {"yes", "no"}}};
  return columns;
}

class GermanCredit final : public DatasetLoader {
 public:
  explicit GermanCredit(const Options& options) : encoding_(encoding_of(options)) {}

  Source source() const override {
    return {.folder = "german_credit",
            .files = {{.path = "credit-g.arff",
                       .sha256 = {"bd94085134e4eb845c96b34c93ed65a223f89d089bacb273ef96f57509ce0bed"},
                       .url = "https://raw.githubusercontent.com/bnjmn/weka/cf0496df4b900e92805d7e35c3deeaa92fed4d09/wekadocs/"
                              "data/credit-g.arff"}},
            .licence = "CC BY 4.0",
            .homepage = "https://archive.ics.uci.edu/dataset/144/statlog+german+credit+data",
            .package = "weka",
            .package_folders = {"/usr/share/doc/weka/examples"}};
  }

  Dataset load(const LoadContext& context) const override {
    const std::string path = require_source(kInfo.name, source(), context.folder) + "/credit-g.arff";
    std::vector<std::string> names;
    for (const GermanColumn& column : german_columns()) names.emplace_back(column.name);
    names.emplace_back("class");
    const CsvTable csv = read_arff(path, names);
    const ColumnReader read(csv, path);
    Table table;
    for (const GermanColumn& column : german_columns())
      table.push_back(column.levels.empty() ? read.numeric(column.name) : read.categorical(column.name, column.levels));
    const Column labels = read.categorical("class", {"good", "bad"});
    return table_dataset(table, labels, stratified_split(labels.codes, context.seed), encoding_);
  }

 private:
  Encoding encoding_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<GermanCredit>(kInfo);
}

}  // namespace holdfast::data::german_credit

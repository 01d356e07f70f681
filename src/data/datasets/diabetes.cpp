// Pima Indians Diabetes, as Weka ships it (diabetes.arff): does a test for diabetes turn out positive?
// Eight numbers; zeros that stand for missing values are left as they are.
#include "weka_table.h"

namespace holdfast::data::diabetes {

const MethodInfo kInfo{.name = "diabetes",
                       .summary = "medical measurements: tested positive for diabetes or not (Pima Indians Diabetes)",
                       .citation =
                           "Smith, Everhart, Dickson, Knowler and Johannes, Using the ADAP learning algorithm to forecast the "
                           "onset of diabetes mellitus, 1988",
                       .options = table_options(),
                       .notes = "768 rows, 268 of them positive; 8 numbers. The file is Weka's, Debian's package weka"};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add(kInfo, [](const Options& options) {
    const std::vector<TableColumn> columns{{"pregnancies"}, {"glucose"}, {"pressure"}, {"skin"},
                                           {"insulin"},     {"mass"},    {"pedigree"}, {"age"}};
    const Source source =
        weka_source("diabetes", "diabetes.arff", "01c38ba089121a39a4ee5bafb3c9bddd71e4337d8f0268c85a999a37c1a027e6", "not stated",
                    "https://www.openml.org/d/37");
    return std::make_unique<WekaTable>(source, columns, std::vector<std::string>{"tested_negative", "tested_positive"}, options);
  });
}

}  // namespace holdfast::data::diabetes

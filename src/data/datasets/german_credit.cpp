// Statlog German Credit, as Weka ships it (credit-g.arff): is an applicant for a loan a good or a bad risk?
// 7 numbers and 13 categories with 54 levels. Two levels that the file declares and no row has (a vacation as the purpose, single
// women) are left out.
#include "weka_table.h"

namespace holdfast::data::german_credit {

const MethodInfo kInfo{.name = "german_credit",
                       .summary = "applications for loans: a good or a bad risk (Statlog German Credit)",
                       .citation = "Hofmann, Statlog (German Credit Data), UCI, 1994, doi:10.24432/C5NC77",
                       .options = table_options(),
                       .notes =
                           "1,000 rows, 300 of them bad; 7 numbers and 13 categories: 61 features, 48 with "
                           "drop_first. The file is Weka's, Debian's package weka"};

std::vector<TableColumn> columns() {
  return {{"checking_status", {"<0", "0<=X<200", ">=200", "no checking"}},
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
}

void add_to(Registry<DatasetLoader>& registry) {
  registry.add(kInfo, [](const Options& options) {
    const Source source =
        weka_source("german_credit", "credit-g.arff", "bd94085134e4eb845c96b34c93ed65a223f89d089bacb273ef96f57509ce0bed",
                    "CC BY 4.0", "https://archive.ics.uci.edu/dataset/144/statlog+german+credit+data");
    return std::make_unique<WekaTable>(source, columns(), std::vector<std::string>{"good", "bad"}, options);
  });
}

}  // namespace holdfast::data::german_credit

// r2et/specific, from numbers to the verdict: whether some network is robust and specific at hardly a loss of AUC.
#pragma once

#include <string>
#include <vector>

#include "claims.h"

namespace holdfast::experiment::paper::r2et::robust {

// The numbers of one network on the samples of a table.
struct Row {
  double kept, between, lift, sets, own;
};

// One number of all networks.
std::vector<double> column(const std::vector<Row>& rows, double Row::*number);

// The networks of one method, by seed. `losses`: AUC minus the best Vanilla's.
struct Networks {
  std::string method;
  std::vector<Row> rows;
  std::vector<double> losses;
};

// Holds where lift, effective sets and own advantage surely reach their limits, does not hold where one of them surely does not.
Judgement is_robust_and_specific(const std::vector<Row>& rows);

// What one table says about the claim.
struct TableFinding {
  std::string dataset;
  Judgement judgement = Judgement::kDoesNotHold;  // holds: some method's networks meet all of it surely
  std::string best = {};                          // by lift
  Value lift = {};
};
TableFinding judge_table(const std::string& dataset, const std::vector<Networks>& methods);

// Holds on three of six tables; tables that were not tried decide nothing.
Finding judge(const std::vector<TableFinding>& tables);

}  // namespace holdfast::experiment::paper::r2et::robust

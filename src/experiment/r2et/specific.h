// r2et/specific, from numbers to the verdict: whether some network is robust and specific at hardly a loss of AUC.
#pragma once

#include <string>
#include <vector>

#include "claims.h"

namespace holdfast::experiment::paper::r2et::robust {

inline constexpr double kMostLoss = 0.003;  // of AUC, below Vanilla's at its best epoch

// Weights of a method on short trainings, as they are compared.
struct CandidateScore {
  std::string method;
  double area, lift, between;           // area: AUC; NaN, undefined, is worst
  bool is_robust_and_specific = false;  // by its numbers as they are
};
// Positions of the best weights of each method, whose weights stand together. Of those with an area of at least `least`, the ones
// that are robust and specific come first, the highest area before the others; then come the others, the highest lift first. If
// two tie, the one with the lower between level is taken, whose explanations differ more between samples. The highest area where
// none reaches `least`.
std::vector<std::size_t> choose(const std::vector<CandidateScore>& candidates, double least);

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
  std::vector<std::string> met_by = {};           // those methods
  std::string best = {};                          // by lift
  Value lift = {};
};
TableFinding judge_table(const std::string& dataset, const std::vector<Networks>& methods);

// Holds on three of six tables; tables that were not tried decide nothing.
Finding judge(const std::vector<TableFinding>& tables);

}  // namespace holdfast::experiment::paper::r2et::robust

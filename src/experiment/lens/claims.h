// How the LENS experiments come from numbers to verdicts, where a table alone does not say it.
#pragma once

#include <string>
#include <vector>

#include "../paper/run.h"

namespace holdfast::experiment::paper::lens {

// L7: shares of samples below two limits, by dataset. The paper does not say how it counts, so that it is decided only where both
// readings agree.
struct SharesBelow {
  double limit;
  std::vector<Case> datasets;
};
Finding judge_small_share(const std::vector<SharesBelow>& readings, double most);

// L8: the diverse form minus the plain one by row, turned where the paper's row has it the other way round. It decides only with
// networks of the paper's kind.
Finding judge_order(const std::vector<Value>& gains, bool is_the_papers);

// L11: the largest ratio of distances after and before smoothing; at most 1 by the proposition. A pair has no error, so that one
// above 1 is enough against it.
Judgement judge_contraction(double largest, std::int64_t pairs);

// What `ours` of lens/beyond needs beside its differences: a number and the limit that it must stay below, or above.
struct Condition {
  Case number;
  double limit;
  bool is_above;

  Judgement judgement() const;
};
std::string in_words(const std::vector<Condition>& conditions);
// A verdict about all cases holds only where all conditions surely hold: in part where one is surely missed. A missed condition
// refutes what is open.
Judgement with_conditions(Judgement of_cases, const std::vector<Condition>& conditions);

// Answers of people, by the measure that they side with.
struct Answers {
  std::int64_t lens = 0, top_k = 0, undecided = 0;
};
Answers count_answers(const std::string& path);

void draw_pictures(paper::PaperRun& run);
void score_survey(paper::PaperRun& run);

}  // namespace holdfast::experiment::paper::lens

// From numbers with intervals to verdicts, of all papers. A case speaks for a claim, or against it, where its whole 95 % interval
// does; all others are open. A number without an interval decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/experiment/reproduce.h"

namespace holdfast {

bool surely_above(const Value& value, double limit);
bool surely_below(const Value& value, double limit);

// A value and what it is of.
struct Case {
  std::string name;
  Value value;
};
std::string words(const Value& value, int digits = 3);  // "0.412 [0.380, 0.444]"
std::string words(const std::vector<Case>& cases);      // "NAME 0.412 [0.380, 0.444]; NAME ...": undefined ones are left out

// How many cases speak for a claim and against it. Undefined ones are not counted.
struct Tally {
  std::int64_t in_favour = 0, against = 0, likely = 0, all = 0;  // likely: by their mean alone

  void add_above(const Value& value, double limit);  // above `limit` is in favour
  void add_below(const Value& value, double limit);
  std::int64_t open() const { return all - in_favour - against; }
  // The share that is likely in favour, from the share that surely is to the share that is not surely against.
  Value share() const;
  std::string words() const;  // "5 for it, 1 against it, 1 open"
};

// Of a claim about most cases: "holds" where more than half are surely in favour, "does not hold" where half or more are surely
// against, else "not decided".
std::string judge_most(const Tally& tally);
// Of a claim about all cases: "holds" where more than half are surely in favour and none is against, "does not hold" where more
// than half are surely against, "holds in part" where there are some of both, else "not decided".
std::string judge_all(const Tally& tally);
// Of one number that is claimed to be above `limit`, or below it.
std::string judge_above(const Value& value, double limit);
std::string judge_below(const Value& value, double limit);
// Of a mean over datasets that is claimed to be above `limit`: only in part where a dataset is surely below.
std::string judge_mean_above(const std::vector<Case>& datasets, double limit);
// Of a claim that can be read in several ways: decided where it is judged alike in all of them.
std::string agreed(const std::vector<std::string>& readings);
// Of a claim in several parts: "holds" and "does not hold" where all do, "holds in part" where any does, else "not decided".
std::string combined(const std::vector<std::string>& parts);

// The one whose interval reaches lowest; undefined ones are passed over. Null where there is none.
const Case* lowest_of(const std::vector<Case>& cases);
// Mean over datasets, whose networks have nothing in common: the ends' distances add as squares.
Value mean_over(const std::vector<Case>& datasets);
Value negative(const Value& value);

// The why's last blanks go: it is often put together of sentences.
Verdict make_verdict(const std::string& claim, const std::string& says, const std::string& verdict, const std::string& why,
                     const Value& number, std::int64_t seeds);

}  // namespace holdfast

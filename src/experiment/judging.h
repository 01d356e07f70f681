// How experiments come from numbers with intervals to verdicts. A case speaks for a claim, or against it, where its whole 95 %
// interval does; all others are open. A number without an interval decides nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/experiment/reproduce.h"

namespace holdfast::experiment {

bool surely_above(const Value& value, double limit);
bool surely_below(const Value& value, double limit);

// A value and what it is of.
struct Case {
  std::string name;
  Value value;
};
std::string words(const Value& value, int digits = 3);  // "0.412 [0.380, 0.444]"
std::string words(const std::vector<Case>& cases);      // "NAME 0.412 [0.380, 0.444]; NAME ...": undefined ones are left out

// How many times as many seeds would make the interval leave the limit, if the mean stays as it is: intervals shrink with the
// root of the number. Infinite where the mean is at the limit, or where there is no interval.
double seeds_needed(const Value& value, double limit);
// "About 3 times as many seeds would decide it, if the mean stays as it is."
std::string what_decides(const Value& value, double limit);

// How many cases speak for a claim and against it. Undefined ones are not counted.
struct Tally {
  std::int64_t in_favour = 0, against = 0, likely = 0, all = 0;  // likely: by their mean alone
  std::vector<double> needed = {};                               // seeds_needed of each open case
  std::vector<std::string> for_it = {}, against_it = {};         // names of the cases that are decided, where they have one

  void add_above(const Value& value, double limit, const std::string& name = "");  // above `limit` is in favour
  void add_below(const Value& value, double limit, const std::string& name = "");
  std::int64_t open() const { return all - in_favour - against; }
  // The share that is likely in favour, from the share that surely is to the share that is not surely against.
  Value share() const;
  std::string words() const;  // "5 for it, 1 against it, 1 open"
  // "About 3 times as many seeds would decide more than half of the cases, if the means stay as they are."
  std::string what_decides() const;
  // How many times as many seeds that is; infinite where no number would.
  double times() const;
};

// A claim about most cases: "holds" where more than half are surely in favour, "does not hold" where half or more are surely
// against, else "not decided".
Judgement judge_most(const Tally& tally);
// A claim about all cases: "holds" where more than half are surely in favour and none is against, "does not hold" where some are
// surely against and none is in favour, or more than half are against; "holds in part" where there are some of both, else "not
// decided".
Judgement judge_all(const Tally& tally);
// One number that is claimed to be above `limit`, or below it.
Judgement judge_above(const Value& value, double limit);
Judgement judge_below(const Value& value, double limit);
// A mean over datasets that is claimed to be above `limit`: only in part where a dataset is surely below.
Judgement judge_mean_above(const std::vector<Case>& datasets, double limit);
// A claim that can be read in several ways: decided where it is judged alike in all of them.
Judgement agreed(const std::vector<Judgement>& readings);
// A claim in several parts: "holds" where all do. "Holds in part" where one surely holds and one is surely refuted; a part that
// holds in part is both. "Does not hold" where one is refuted and none holds. Else "not decided": what holds beside what is open
// is no verdict on the whole.
Judgement combined(const std::vector<Judgement>& parts);
Judgement combined(const std::vector<ClaimPart>& parts);

// How many times as many seeds would decide an open verdict; nothing where it is decided, or no number that can be planned with
// would.
std::optional<double> times_of(Judgement judgement, const Tally& tally);
// Of a claim in parts: that of the open part that needs most.
std::optional<double> times_of(const std::vector<ClaimPart>& parts);
// What became of a claim, in one sentence for who has not read the paper; `claim` goes on after "whether".
std::string plain_sentence(Judgement judgement, const std::string& claim);

// A part with its verdict and, where it is open, what would decide it.
ClaimPart part_of_most(const std::string& name, const Tally& tally);
ClaimPart part_of_all(const std::string& name, const Tally& tally);
ClaimPart part_above(const std::string& name, const Value& value, double limit);
ClaimPart part_below(const std::string& name, const Value& value, double limit);
ClaimPart part_mean_above(const std::string& name, const std::vector<Case>& datasets, double limit);
// "Surely holds: A. Surely refuted: B; C. Open: D (about 3 times as many seeds would decide it ...)."
std::string in_words(const std::vector<ClaimPart>& parts);
// A verdict about all cases: which decided it where it holds in part, and what would decide it where it is open; else empty.
std::string what_settles(Judgement judgement, const Tally& tally);

// The one whose interval reaches lowest; undefined ones are passed over. Null where there is none.
const Case* lowest_of(const std::vector<Case>& cases);
// Mean over datasets, whose networks have nothing in common: the ends' distances add as squares.
Value mean_over(const std::vector<Case>& datasets);
Value negative(const Value& value);

// The why's last blanks go: it is often put together of sentences.
Verdict make_verdict(const std::string& claim, const std::string& says, Judgement judgement, const std::string& why,
                     const Value& number, std::int64_t seeds);

Tally tally_above(const std::vector<Case>& cases, double limit);
// "2 cases: 1 for it, 0 against it, 1 open".
std::string outcome_above(const std::vector<Case>& cases, double limit);
// A claim that every case is above `limit`. The number is the share of the cases that are (Tally::share), or that of the only
// one. The why says `what` is held against the limit, how many cases speak for the claim and against it, has `also`, and all
// cases.
Verdict all_above(double limit, const std::string& claim, const std::string& says, const std::string& what,
                  const std::vector<Case>& cases, const std::string& also, std::int64_t seeds);

}  // namespace holdfast::experiment

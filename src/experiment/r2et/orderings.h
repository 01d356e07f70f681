// Who wins, and whether two orderings of methods agree: for tables 1 and 2 and for what remains of them under other attacks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../judging.h"
#include "zoo.h"

namespace holdfast::r2et {

// The numbers of one dataset by method, ours and the paper's; NaN where there is none.
struct Ordering {
  Setting setting;
  std::vector<const Method*> methods = {};
  std::vector<std::vector<std::vector<double>>> values = {};   // by method, member and sample
  std::vector<double> means = {}, published = {}, areas = {};  // by method; areas: AUC of the test part

  void add(const Entry& entry, std::vector<std::vector<double>> by_member, const std::string& column);
  // Position of a method; methods.size() where it is not there.
  std::size_t place_of(const std::string& name) const;
  std::vector<double> member_means(std::size_t method) const;
};

// Methods as the paper prints them: those with a row there, ReLU where there is a choice.
bool as_printed(const Method& method);
// As its authors' code runs: R2ET with softplus.
bool as_coded(const Method& method);
// Both: all rows but the linear model's and ours.
bool of_paper(const Method& method);

// In the paper's encoding, or without a choice.
bool as_encoded(const std::string& encoding);
// The fewest trained networks behind a number.
std::int64_t fewest_members(const std::vector<Ordering>& orderings);

// Kendall's tau-b of the methods' means and the paper's numbers, over the methods that count. The interval is a bootstrap over
// methods and networks together: 2000 times both are drawn anew.
Value agreement(const Ordering& ordering, bool (*counts)(const Method&), std::uint64_t seed);
// Of two orderings of the same methods, those of the paper; the same networks are drawn for both.
Value agreement(const Ordering& first, const Ordering& second, std::uint64_t seed);

// The paper's method with the highest mean; null when there is none.
const Method* best(const Ordering& ordering);

// The highest mean of an R2ET variant, with softplus or with ReLU, minus the highest of all other methods of the paper, paired by
// member. `accurate`: among methods whose AUC is within kAucLoss of Vanilla's; where no variant of R2ET is, the variant is null.
struct Lead {
  const Method *variant = nullptr, *other = nullptr;
  Value value = {};
};
Lead lead(const Ordering& ordering, bool softplus, bool accurate, std::uint64_t seed);

// Orderings that one sentence is about: "under er".
struct Comparison {
  std::string under;
  std::vector<Ordering> orderings;
};
// R2 (R10): a variant of R2ET is the best of the paper's methods on most datasets. The claim is about the paper's encoding, as
// printed and as coded; it holds in part alone where it does not in the other encodings, or among accurate methods.
Verdict judge_best(const std::string& claim, const std::string& says, const std::vector<Comparison>& groups, std::uint64_t seed);
// R4: the Hessian-only methods gain no more than .02 over Vanilla.
Verdict judge_hessian_only(const Comparison& group, const std::string& says, std::uint64_t seed);

}  // namespace holdfast::r2et

// Who wins, and whether two orderings of methods agree: for tables 1 and 2 and for what remains of them under other attacks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../paper/run.h"

namespace holdfast::experiment::paper::r2et {

// The numbers of one dataset by method, ours and the paper's; NaN where there is none.
struct Ordering {
  Setting setting;
  std::vector<Method> methods = {};
  std::vector<BySeed> values = {};                             // by method
  std::vector<double> means = {}, published = {}, areas = {};  // by method; areas: AUC of the test part
  std::vector<bool> left_out = {};                             // by method: its networks do not count; empty: all count
  bool is_counted = true;                                      // the dataset

  bool counts(std::size_t method) const { return left_out.empty() || !left_out[method]; }

  void add(const MethodNetworks& networks, BySeed by_seed, std::optional<double> printed);
  // Position of a method; methods.size() where it is not there.
  std::size_t place_of(const std::string& name) const;
  std::vector<double> member_means(std::size_t method) const;
};

// One ordering for each setting of a table, by a column; `published` is the column of the paper's numbers. `numbers` may change
// the column's numbers, `choice` names the choice of the networks whose AUC counts.
std::vector<Ordering> orderings_of(PaperRun& run, const std::string& table, const std::string& column,
                                   const std::string& published, Numbers (*numbers)(const Numbers&) = nullptr,
                                   bool strong_choice = false);

// The datasets that count.
std::vector<Ordering> counted(const std::vector<Ordering>& orderings);

// Methods as the paper prints them: those with a row there, ReLU where there is a choice.
bool is_as_printed(const Method& method);
// Methods as the authors' code runs them: R2ET with softplus.
bool is_as_coded(const Method& method);
// Both: all rows but the linear model's and ours.
bool is_of_paper(const Method& method);
// Whether the data is encoded as in the paper, or can be encoded in one way only.
bool is_papers_encoding(const Setting& setting);
// The fewest trained networks behind a number.
std::int64_t fewest_members(const std::vector<Ordering>& orderings);

// Kendall's tau-b of the methods' means and the paper's numbers, over the methods that count. The interval is a bootstrap over
// methods and networks together: 2000 times both are drawn anew.
Value agreement(const Ordering& ordering, bool (*counts)(const Method&), std::uint64_t seed);
// The same of two orderings of the same methods, those of the paper; the same networks are drawn for both.
Value agreement(const Ordering& first, const Ordering& second, std::uint64_t seed);

// Position of the paper's method with the highest mean, of those whose networks count and that `counts` takes; methods.size()
// where there is none.
std::size_t highest(const Ordering& ordering, const std::function<bool(std::size_t)>& counts);
// The name of the highest of all; "-" when there is none.
std::string best(const Ordering& ordering);

// The highest mean of an R2ET variant, with softplus or with ReLU, minus the highest of all other methods of the paper, paired by
// network. `accurate`: among methods whose AUC is within kAucLoss of Vanilla's; where no variant of R2ET is, the variant is
// empty.
struct Lead {
  std::string variant = {}, other = {};
  Value value = {};
};
Lead lead(const Ordering& ordering, bool softplus, bool accurate, std::uint64_t seed);

}  // namespace holdfast::experiment::paper::r2et

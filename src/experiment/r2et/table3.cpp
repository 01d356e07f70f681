// r2et/table3: are explanations of R2ET models as faithful as others'?
#include <fmt/format.h>

#include "claims.h"

namespace holdfast::experiment::paper::r2et {
namespace {

struct Measure {
  std::string column;
  bool higher_is_better, by_zero;
};
const std::vector<Measure> kMeasures{{"DFFOT", false, true},
                                     {"COMP", true, true},
                                     {"SUFF", false, true},
                                     {"COMP, resampled", true, false},
                                     {"SUFF, resampled", false, false}};

// Mean over methods of each network.
std::vector<double> mean_of_methods(const std::vector<std::vector<double>>& by_method) {
  std::vector<double> means;
  for (std::size_t i = 0; !by_method.empty() && i < by_method.front().size(); ++i) {
    std::vector<double> all;
    for (const std::vector<double>& method : by_method) all.push_back(method[i]);
    means.push_back(defined_mean(all));
  }
  return means;
}

}  // namespace

Tally& FaithfulCounts::of(bool by_zero, bool softplus) {
  return by_zero ? (softplus ? zero_softplus : zero) : (softplus ? resampled_softplus : resampled);
}

void FaithfulCounts::add(const std::vector<const MeasuredRow*>& rows, std::size_t column, bool higher_is_better, bool by_zero,
                         double margin) {
  std::vector<std::vector<double>> others;  // of the methods of the paper that are not R2ET
  std::vector<double> plain;
  for (const MeasuredRow* row : rows) {
    const Method& method = row->networks->method;
    if (!is_of_paper(method) || method.is_r2et() || !row->networks->counts()) continue;
    others.push_back(row->numbers[column].means());
    if (method.name == "Vanilla") plain = others.back();
  }
  const std::vector<double> usual = mean_of_methods(others);
  for (const MeasuredRow* row : rows) {
    const Method& method = row->networks->method;
    if (!method.is_r2et() || !row->networks->counts() || plain.empty()) continue;
    const auto ahead = [&](const std::vector<double>& theirs) {
      const Value difference = difference_over_seeds(row->numbers[column].means(), theirs);
      return higher_is_better ? difference : negative(difference);
    };
    of(by_zero, method.is_softplus()).add_above(ahead(usual), -margin);
    if (by_zero && !method.is_softplus()) vanilla.add_above(ahead(plain), -margin);
  }
}

std::vector<ClaimPart> FaithfulCounts::parts() const {
  std::vector<ClaimPart> parts{part_of_all("removing by zero, ReLU", zero),
                               part_of_all("removing by zero, softplus", zero_softplus)};
  if (resampled.all > 0)
    parts.insert(parts.end(), {part_of_all("removing by resampling, ReLU", resampled),
                               part_of_all("removing by resampling, softplus", resampled_softplus)});
  return parts;
}

void analyse_table3(PaperRun& run) {
  const MeasuredTable& table = run.measured("faithfulness");
  const double margin = run.claim("R8").limits[0];
  FaithfulCounts counts;
  for (const auto& rows : table.by_setting()) {
    if (!is_papers_encoding(*rows.front()->setting)) continue;
    for (const Measure& measure : kMeasures) {
      const std::size_t column = table.column(measure.column);
      if (!rows.front()->numbers[column].is_empty()) counts.add(rows, column, measure.higher_is_better, measure.by_zero, margin);
    }
  }
  if (counts.zero.all == 0) return;
  Words words{{"margin", fmt::format("{}", margin)}};
  for (const auto& [name, tally] : {std::pair("zero", counts.zero),
                                    {"zero_softplus", counts.zero_softplus},
                                    {"resampled", counts.resampled},
                                    {"resampled_softplus", counts.resampled_softplus},
                                    {"vanilla", counts.vanilla}}) {
    words[name] = tally.words();
    words[std::string(name) + "_all"] = std::to_string(tally.all);
  }
  run.judge("R8", found_in(counts.parts(), words, counts.zero.share()), run.fewest_members());
}

}  // namespace holdfast::experiment::paper::r2et

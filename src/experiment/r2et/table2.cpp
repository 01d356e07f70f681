// r2et/table2: model-level thickness beside P@k. The paper says that the method whose rankings hold best is the thickest.
//
// Thickness is the paper's indicator form, to points drawn uniformly from the l2 ball of the attack's radius; the paper does not
// say how many: 64 endpoints and 16 points on the way to each (16 and 8 on images and graphs, at cpu scale).
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments.h"
#include "orderings.h"
#include "thickness.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kTable2Info{
    .name = "r2et/table2", .summary = "ranking thickness of each method beside its P@k", .citation = kPaper};

class Table2 final : public Experiment {
 public:
  explicit Table2(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "Thickness of rankings and their robustness", .paper = kPaper};
    ResultTable table{
        .name = "thickness",
        .caption = "Model-level thickness (share of pairs across rank k in order on the way to points of the ball) and P@k.",
        .keys = {"dataset", "method"},
        .columns = {"thickness", "P@k, er", "P@k, gauntlet"}};
    ResultTable agreements{.name = "thickness and P@k",
                           .caption =
                               "Kendall's tau over the paper's methods between thickness and P@k, interval by a bootstrap over "
                               "methods and seeds, and the methods that lead.",
                           .keys = {"dataset", "best P@k, er", "thickest"},
                           .columns = {"tau, er", "tau, gauntlet", "thickness with the paper's"}};
    Findings found;
    for (const Setting& setting : settings(context, Which::kAll)) {
      if (setting.encoding == "projected" || setting.dataset == "CIFAR-10") continue;  // the paper has no CIFAR-10 here
      const std::vector<Entry> entries = zoo(context, setting, paper_methods(), Chooser::kEr);
      if (entries.empty()) continue;
      const auto attacked = [&](const std::string& attack, Select select) {
        return compute(context, fmt::format("{}: {}", setting.name(), attack), entries,
                       [&](const Member& member) { return attack_cell(setting, member, attack, select, context.seed); });
      };
      const Cells er = attacked(setting.er(), Select::kLast);
      const Cells strong = setting.tabular ? attacked(strong_attack(context), Select::kWorst) : Cells{};
      const Cells thick = compute(context, setting.name() + ": thickness", entries,
                                  [&](const Member& member) { return thickness_job(context, setting, member); });
      Ordering by_er{.setting = setting}, by_strong{.setting = setting}, by_thickness{.setting = setting};
      for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::string& paper = entries[i].method->paper;
        Value thickness = plain_value(thick[i], "values", context.seed), robust = attacked_value(er[i], context.seed);
        thickness.published = published("thickness", paper, setting.dataset);
        robust.published = published("er", paper, setting.dataset);
        table.add({setting.name(), entries[i].method->name},
                  {thickness, robust, strong.empty() ? Value{} : attacked_value(strong[i], context.seed)});
        by_er.add(entries[i], metric_values(er[i]), "er");
        if (!strong.empty()) by_strong.add(entries[i], metric_values(strong[i]), "er");
        by_thickness.add(entries[i], values_of(thick[i]), "thickness");
      }
      const Method *robust = best(by_er), *thickest = best(by_thickness);
      const Value tau = agreement(by_thickness, by_er, context.seed);
      agreements.add({setting.name(), robust->name, thickest->name},
                     {tau, strong.empty() ? Value{} : agreement(by_thickness, by_strong, context.seed),
                      agreement(by_thickness, as_printed, context.seed)});
      found.add(by_er, by_thickness, tau, context.seed);
    }
    result.tables = {table, agreements};
    result.settings["choice"] = kChoiceRule;
    if (!found.taus.empty()) result.verdicts = {judge(found)};
    return result;
  }

 private:
  // Endpoints that are drawn tell the third digit apart and no more.
  static constexpr double kAlike = 0.001;

  // For each dataset, tables as in the paper: are the methods that may be the best (P@k not surely below the highest) those that
  // are among the thickest?
  struct Findings {
    Tally tally = {};
    std::vector<std::string> datasets = {};
    std::vector<Case> taus = {};
    std::int64_t seeds = 0;

    void add(const Ordering& robust, const Ordering& thick, const Value& tau, std::uint64_t seed) {
      if (!as_encoded(robust.setting.encoding)) return;
      const std::size_t best_one = robust.place_of(best(robust)->name), thickest = thick.place_of(best(thick)->name);
      bool surely_all = true, maybe_one = false;
      for (std::size_t i = 0; i < robust.methods.size(); ++i) {
        if (!of_paper(*robust.methods[i]) ||
            surely_below(difference_over_seeds(robust.values[i], robust.values[best_one], seed), 0))
          continue;
        const Value gap = difference_over_seeds(thick.values[i], thick.values[thickest], seed);
        surely_all = surely_all && surely_above(gap, -kAlike);
        maybe_one = maybe_one || !surely_below(gap, -kAlike);
      }
      const Value gap = difference_over_seeds(thick.values[best_one], thick.values[thickest], seed);
      ++tally.all;
      tally.likely += gap.value >= -kAlike ? 1 : 0;
      tally.in_favour += surely_all ? 1 : 0;
      tally.against += maybe_one ? 0 : 1;
      datasets.push_back(fmt::format("{}: {}, thickest {}", robust.setting.dataset, robust.methods[best_one]->name,
                                     thick.methods[thickest]->name));
      taus.push_back({robust.setting.dataset, tau});
      seeds = seeds == 0 ? robust.setting.members : std::min(seeds, robust.setting.members);
    }
  };

  static Verdict judge(const Findings& found) {
    return make_verdict(
        "R5", "the best method on a dataset has the largest model-level thickness", judge_all(found.tally),
        fmt::format(
            "Number: share of {} datasets (tables as in the paper) where the method with the best P@k under er is the "
            "thickest of the paper's methods, within {}. It surely is where this holds, with the whole paired interval, for "
            "all methods that may be the best; surely not where it may hold for none of them: {}. {}. Kendall's tau between "
            "thickness and P@k: {}.",
            found.tally.all, kAlike, found.tally.words(), fmt::join(found.datasets, "; "), words(found.taus)),
        found.tally.share(), found.seeds);
  }
};

}  // namespace

void add_table2(Registry<Experiment>& registry) {
  registry.add<Table2>(kTable2Info);
}

}  // namespace holdfast::r2et

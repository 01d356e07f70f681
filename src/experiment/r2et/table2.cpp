// r2et/table2: model-level thickness beside P@k. The paper says that the method whose rankings hold best is the thickest.
//
// Thickness is the paper's indicator form, to points drawn uniformly from the l2 ball of the attack's radius; the paper does not
// say how many: 64 endpoints and 16 points on the way to each (16 and 8 on images and graphs, at cpu scale).
#include <cmath>

#include <fmt/format.h>

#include "experiments.h"
#include "holdfast/measure/proportion.h"
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
                           .caption = "Kendall's tau over methods between thickness and P@k, and the methods that lead.",
                           .keys = {"dataset", "best P@k, er", "thickest"},
                           .columns = {"tau, er", "tau, gauntlet", "thickness with the paper's"}};
    std::int64_t same = 0, all = 0;
    std::vector<double> taus;
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
      const auto any = [](const Method&) { return true; };
      const Method *robust = best(by_er, any), *thickest = best(by_thickness, any);
      const Value tau = agreement(by_thickness, by_er, context.seed);
      agreements.add({setting.name(), robust->name, thickest->name},
                     {tau, strong.empty() ? Value{} : agreement(by_thickness, by_strong, context.seed),
                      agreement(by_thickness, as_printed, context.seed)});
      taus.push_back(tau.value);
      ++all;
      same += is_among_thickest(by_er, by_thickness) ? 1 : 0;
    }
    result.tables = {table, agreements};
    result.settings["choice"] = kChoiceRule;
    if (all > 0) result.verdicts.push_back(judge(same, all, taus, context.by_scale(2, 5, 5)));
    return result;
  }

 private:
  // Within the third digit, which is all that the endpoints drawn can tell apart.
  static bool is_among_thickest(const Ordering& robust, const Ordering& thick) {
    std::size_t top = 0;
    double most = 0;
    for (std::size_t i = 0; i < robust.methods.size(); ++i) {
      if (robust.methods[i]->paper.empty()) continue;
      if (robust.methods[top]->paper.empty() || robust.means[i] > robust.means[top]) top = i;
      most = std::max(most, thick.means[i]);
    }
    return thick.means[top] >= most - 0.001;
  }

  static Verdict judge(std::int64_t same, std::int64_t all, const std::vector<double>& taus, std::int64_t seeds) {
    const Interval share = proportion_interval(same, all);
    return {.claim = "R5",
            .says = "the best method on a dataset has the largest model-level thickness",
            .verdict = verdict_of_share(share.mean),
            .why = fmt::format(
                "share of {} datasets and encodings where the method with the best P@k under er is the thickest (within .001); "
                "Kendall's tau between the two over methods is {:.2f} in the mean",
                all, defined_mean(taus)),
            .number = share.mean,
            .low = share.low,
            .high = share.high,
            .seeds = seeds};
  }
};

}  // namespace

void add_table2(Registry<Experiment>& registry) {
  registry.add<Table2>(kTable2Info);
}

}  // namespace holdfast::r2et

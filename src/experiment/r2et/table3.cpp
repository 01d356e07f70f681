// r2et/table3: faithfulness. DFFOT (less is better), COMP (more) and SUFF (less), removing by zero as in the paper; on tables
// also by resampling from the data, which the one-hot gauge cannot fool.
#include <cmath>

#include <fmt/format.h>

#include "experiments.h"
#include "holdfast/measure/proportion.h"
#include "thickness.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kTable3Info{
    .name = "r2et/table3", .summary = "faithfulness of each method's explanations: DFFOT, COMP, SUFF", .citation = kPaper};

struct Column {
  std::string name, measure, published;
  bool higher_is_better;
};
const std::vector<Column> kColumns{{"DFFOT", "dffot", "dffot", false},
                                   {"COMP", "comp", "comp", true},
                                   {"SUFF", "suff", "suff", false},
                                   {"COMP, resampled", "comp(remove=resample)", "", true},
                                   {"SUFF, resampled", "suff(remove=resample)", "", false}};

// Of the R2ET variants against Vanilla: how often they are as faithful.
struct Count {
  std::int64_t cases = 0, not_worse = 0, by_zero = 0, by_zero_not_worse = 0;
};

class Table3 final : public Experiment {
 public:
  explicit Table3(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "Faithfulness of robust explanations", .paper = kPaper};
    result.settings["choice"] = kChoiceRule;
    ResultTable table{
        .name = "faithfulness",
        .caption =
            "DFFOT: share of features whose removal flips the prediction, less is better; COMP: more is better; SUFF: less.",
        .keys = {"dataset", "method"},
        .columns = {}};
    for (const Column& column : kColumns) table.columns.push_back(column.name);
    Count count;
    for (const Setting& setting : settings(context, Which::kAll)) {
      if (setting.encoding == "projected" || setting.dataset == "CIFAR-10") continue;  // the paper has no CIFAR-10 here
      const std::vector<Entry> entries = zoo(context, setting, paper_methods(), Chooser::kEr);
      if (!entries.empty()) add_rows(context, setting, entries, table, count);
    }
    result.tables.push_back(table);
    if (count.cases > 0) result.verdicts.push_back(judge(count, context.by_scale(2, 5, 5)));
    return result;
  }

 private:
  static void add_rows(ExperimentContext& context, const Setting& setting, const std::vector<Entry>& entries, ResultTable& table,
                       Count& count) {
    std::vector<Cells> cells;  // by column
    for (const Column& column : kColumns) {
      const bool measured = setting.tabular || column.measure.find("resample") == std::string::npos;
      cells.push_back(
          !measured ? Cells{} : compute(context, setting.name() + ": " + column.name, entries, [&](const Member& member) {
            return measure_job(subject_of(setting, member), column.measure, setting.epsilon, context.seed);
          }));
    }
    const auto vanilla = static_cast<std::size_t>(find(entries, "Vanilla") - entries.data());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::vector<Value> values;
      for (std::size_t j = 0; j < kColumns.size(); ++j) {
        Value value = cells[j].empty() ? Value{} : plain_value(cells[j][i], "values", context.seed);
        if (!kColumns[j].published.empty())
          value.published = published(kColumns[j].published, entries[i].method->paper, setting.dataset);
        values.push_back(value);
        if (!cells[j].empty() && entries[i].method->is_r2et())
          compare(kColumns[j], values_of(cells[j][i]), values_of(cells[j][vanilla]), context.seed, count);
      }
      table.add({setting.name(), entries[i].method->name}, values);
    }
  }

  // Not worse than Vanilla: by no more than .01 in the mean.
  static void compare(const Column& column, const std::vector<std::vector<double>>& ours,
                      const std::vector<std::vector<double>>& vanilla, std::uint64_t seed, Count& count) {
    const double difference = difference_over_seeds(ours, vanilla, seed).value;
    const bool not_worse = (column.higher_is_better ? difference : -difference) > -0.01;
    ++count.cases;
    count.not_worse += not_worse ? 1 : 0;
    if (column.published.empty()) return;
    ++count.by_zero;
    count.by_zero_not_worse += not_worse ? 1 : 0;
  }

  static Verdict judge(const Count& count, std::int64_t seeds) {
    const Interval share = proportion_interval(count.by_zero_not_worse, count.by_zero);
    const std::int64_t resampled = count.cases - count.by_zero;
    const double other = resampled == 0
                             ? std::nan("")
                             : static_cast<double>(count.not_worse - count.by_zero_not_worse) / static_cast<double>(resampled);
    return {.claim = "R8",
            .says = "explanations of R2ET models are as faithful as others' or more",
            .verdict = verdict_of_share(share.mean),
            .why = fmt::format(
                "share of {} (dataset, R2ET variant, measure) no more than .01 worse than Vanilla's, removing by zero; "
                "resampling from the data {:.2f}",
                count.by_zero, other),
            .number = share.mean,
            .low = share.low,
            .high = share.high,
            .seeds = seeds};
  }
};

}  // namespace

void add_table3(Registry<Experiment>& registry) {
  registry.add<Table3>(kTable3Info);
}

}  // namespace holdfast::r2et

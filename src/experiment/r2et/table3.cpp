// r2et/table3: faithfulness. DFFOT (less is better), COMP (more) and SUFF (less), removing by zero as in the paper; on tables
// also by resampling from the data, which the one-hot gauge cannot fool.
#include <algorithm>

#include <fmt/format.h>

#include "experiments.h"
#include "orderings.h"
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

// Of the R2ET variants, tables as in the paper: how many are as faithful as others, by zero as in the paper and by resampling.
struct Counts {
  Tally zero, zero_softplus, resampled, resampled_softplus;  // against the mean of the other methods; with ReLU, with softplus
  Tally vanilla;                                             // by zero, with ReLU, against Vanilla
  std::int64_t seeds = 0;

  Tally& of(bool by_zero, bool softplus) {
    return by_zero ? (softplus ? zero_softplus : zero) : (softplus ? resampled_softplus : resampled);
  }
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
    Counts counts;
    for (const Setting& setting : settings(context, Which::kAll)) {
      if (setting.encoding == "projected" || setting.dataset == "CIFAR-10") continue;  // the paper has no CIFAR-10 here
      const std::vector<Entry> entries = zoo(context, setting, paper_methods(), Chooser::kEr);
      if (!entries.empty()) add_rows(context, setting, entries, table, counts);
    }
    result.tables.push_back(table);
    if (counts.zero.all > 0) result.verdicts = {judge(counts)};
    return result;
  }

 private:
  static void add_rows(ExperimentContext& context, const Setting& setting, const std::vector<Entry>& entries, ResultTable& table,
                       Counts& counts) {
    std::vector<Cells> cells;  // by column
    for (const Column& column : kColumns) {
      const bool measured = setting.tabular || column.measure.find("resample") == std::string::npos;
      cells.push_back(
          !measured ? Cells{} : compute(context, setting.name() + ": " + column.name, entries, [&](const Member& member) {
            return measure_job(subject_of(setting, member), column.measure, setting.epsilon, context.seed);
          }));
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::vector<Value> values;
      for (std::size_t j = 0; j < kColumns.size(); ++j) {
        Value value = cells[j].empty() ? Value{} : plain_value(cells[j][i], "values", context.seed);
        if (!kColumns[j].published.empty())
          value.published = published(kColumns[j].published, entries[i].method->paper, setting.dataset);
        values.push_back(value);
      }
      table.add({setting.name(), entries[i].method->name}, values);
    }
    if (!as_encoded(setting.encoding)) return;
    counts.seeds = counts.seeds == 0 ? setting.members : std::min(counts.seeds, setting.members);
    for (std::size_t j = 0; j < kColumns.size(); ++j) {
      if (!cells[j].empty()) compare(kColumns[j], entries, cells[j], counts);
    }
  }

  static std::vector<double> member_means(const std::vector<Json>& cells) {
    std::vector<double> means;
    for (const std::vector<double>& samples : values_of(cells)) means.push_back(defined_mean(samples));
    return means;
  }

  // More is better after the turn; as faithful is no more than kMargin worse.
  static void compare(const Column& column, const std::vector<Entry>& entries, const Cells& cells, Counts& counts) {
    std::vector<std::vector<double>> others(cells.front().size());  // by member, of the methods of the paper that are not R2ET
    std::vector<double> vanilla;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!of_paper(*entries[i].method) || entries[i].method->is_r2et()) continue;
      const std::vector<double> means = member_means(cells[i]);
      for (std::size_t j = 0; j < means.size(); ++j) others[j].push_back(means[j]);
      if (entries[i].method->name == "Vanilla") vanilla = means;
    }
    std::vector<double> usual;
    for (const std::vector<double>& means : others) usual.push_back(defined_mean(means));
    const auto ahead = [&](const std::vector<Json>& ours, const std::vector<double>& theirs) {
      const Value difference = difference_over_seeds(member_means(ours), theirs);
      return column.higher_is_better ? difference : negative(difference);
    };
    const bool by_zero = !column.published.empty();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].method->is_r2et()) continue;
      const bool softplus = entries[i].method->is_softplus();
      counts.of(by_zero, softplus).add_above(ahead(cells[i], usual), -kMargin);
      if (by_zero && !softplus) counts.vanilla.add_above(ahead(cells[i], vanilla), -kMargin);
    }
  }

  static Verdict judge(const Counts& counts) {
    std::vector<std::string> parts{judge_all(counts.zero), judge_all(counts.zero_softplus)};
    if (counts.resampled.all > 0) parts.insert(parts.end(), {judge_all(counts.resampled), judge_all(counts.resampled_softplus)});
    return make_verdict(
        "R8", "explanations of R2ET models are as faithful as others' or more", combined(parts),
        fmt::format("Number: share of {} cases (dataset, tables as in the paper; R2ET variant with ReLU; DFFOT, COMP or SUFF, "
                    "removing by zero) that are no more than {} worse than the mean of the paper's other methods, from the share "
                    "whose whole paired interval is to the share whose interval is not below; {}. With softplus, of {}: {}. "
                    "Removing by resampling from the data, which no gauge can fool, on tables: ReLU, of {}: {}; softplus, of {}: "
                    "{}. Against Vanilla instead (ReLU, by zero), of {}: {}.",
                    counts.zero.all, kMargin, counts.zero.words(), counts.zero_softplus.all, counts.zero_softplus.words(),
                    counts.resampled.all, counts.resampled.words(), counts.resampled_softplus.all,
                    counts.resampled_softplus.words(), counts.vanilla.all, counts.vanilla.words()),
        counts.zero.share(), counts.seeds);
  }

  static constexpr double kMargin = 0.01;
};

}  // namespace

void add_table3(Registry<Experiment>& registry) {
  registry.add<Table3>(kTable3Info);
}

}  // namespace holdfast::r2et

// lens/fig8: natural, PGD and IG-SUM-NORM training under the three measures.
#include <fmt/ranges.h>

#include "cells.h"
#include "charts.h"
#include "experiments.h"
#include "holdfast/experiment/reproduce_statistics.h"
#include "verdicts.h"

namespace holdfast::lens {
namespace {

const MethodInfo kFig8Info{.name = "lens/fig8",
                           .summary = "natural, PGD and IG-SUM-NORM training under top-k, 1-LENS-prec and 1-LENS-recall",
                           .citation = kPaper,
                           .notes = "Flower as in the paper; MNIST beside it, and Fashion-MNIST but at `cpu` scale."};

class Fig8 final : public Experiment {
 public:
  explicit Fig8(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "Robust training under three measures (figure 8)", .paper = kPaper};
    std::vector<Setting> settings{setting(context, "flower"), setting(context, "mnist")};
    if (context.scale != Scale::kCpu) settings.push_back(setting(context, "fashion_mnist"));  // there its trainings take too long
    std::vector<DatasetCase> cases = trained_cases(context, settings, {"natural", "pgd", "ig_sum_norm"}, result.settings);
    Plan plan;
    for (DatasetCase& one : cases) {
      for (const Subject& subject : one.subjects) {
        one.groups.push_back(plan.add(subject, *one.data,
                                      {.rows = rows_of(*one.data, one.setting),
                                       .explainer = integrated_gradients(one.setting),
                                       .attack = top_t(one.setting),
                                       .epsilon = one.setting.epsilon,
                                       .measures = measures(one.setting)}));
      }
    }
    const std::vector<Group> groups = plan.run(context, "fig8");
    result.tables = {table(context, cases, groups)};
    result.figures = {figure(result.tables[0])};
    result.verdicts = {more_robust(context, cases, groups)};
    return result;
  }

 private:
  static std::vector<std::string> shown(const Setting& setting) {
    return {top_k(setting), precision(setting, 1), recall(setting, 1)};
  }

  static ResultTable table(ExperimentContext& context, const std::vector<DatasetCase>& cases, const std::vector<Group>& groups) {
    ResultTable table{
        .name = "values",
        .caption =
            "Integrated gradients under the top-t attack. Robust accuracy: PGD of 20 steps on the first 500 test samples "
            "or fewer. The paper's figure has no numbers.",
        .keys = {"dataset", "training"},
        .columns = {"top-k", "1-LENS-prec", "1-LENS-recall", "test accuracy", "robust accuracy"}};
    table.columns.insert(table.columns.end(), kCounts.begin(), kCounts.end());
    for (const DatasetCase& one : cases) {
      for (std::size_t i = 0; i < one.subjects.size(); ++i) {
        std::vector<Value> values;
        for (const std::string& measure : shown(one.setting))
          values.push_back(value_of(groups[one.groups[i]], measure, context.seed));
        values.push_back(accuracy_of(one.subjects[i]));
        values.push_back(share(over_seeds(robust_accuracies(context, one.subjects[i], *one.data, one.setting))));
        add_counts(values, groups[one.groups[i]]);
        table.add({one.setting.name, one.subjects[i].training}, std::move(values));
      }
    }
    return table;
  }

  static Figure figure(const ResultTable& table) {
    std::vector<Json> points;
    for (const ResultTable::Row& row : table.rows) {
      for (std::size_t i = 0; i < 3; ++i)
        points.push_back(
            chart_point({{"measure", table.columns[i]}, {"training", row.keys[1]}, {"dataset", row.keys[0]}}, row.values[i]));
    }
    return {.name = "fig8",
            .caption = "Integrated gradients under the top-t attack, by training",
            .spec = chart(points, {.x = "measure", .colour = "training", .column = "dataset", .y_title = "share that stays"})};
  }

  // L6: robust minus natural, for every measure and dataset.
  static Verdict more_robust(const ExperimentContext& context, const std::vector<DatasetCase>& cases,
                             const std::vector<Group>& groups) {
    std::vector<Case> differences;
    std::vector<std::string> datasets;
    std::string accuracies;
    for (const DatasetCase& one : cases) {
      accuracies += accuracies_in_words(one) + " ";
      datasets.push_back(one.setting.name);
      for (std::size_t i = 1; i < one.subjects.size(); ++i) {
        for (const std::string& measure : shown(one.setting))
          differences.push_back({fmt::format("{}, {}, {}", one.setting.name, one.subjects[i].training, measure),
                                 difference_of(groups[one.groups[i]], measure, groups[one.groups[0]], measure, context.seed)});
      }
    }
    return all_above(0, "L6",
                     fmt::format("PGD and IG-SUM-NORM are more robust than natural training under every measure and dataset "
                                 "(here {}; top-t attack)",
                                 fmt::join(datasets, ", ")),
                     "robust minus natural, integrated gradients under the top-t attack", differences, accuracies,
                     context.quick() ? 1 : 3);
  }
};

}  // namespace

void add_fig8(Registry<Experiment>& registry) {
  registry.add<Fig8>(kFig8Info);
}

}  // namespace holdfast::lens

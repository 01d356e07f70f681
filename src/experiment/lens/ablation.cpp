// lens/ablation: what was tried for steady_map, and what each of its parts brings. From the recipe of lens/beyond one option at a
// time is knocked out or changed; every variant is trained as the others are and attacked by `gauntlet` on each measure.
//
// The networks and attacked cells that lens/beyond has too are the same: with common folders they are made once.
#include <algorithm>
#include <cmath>

#include "cells.h"
#include "experiments.h"
#include "holdfast/experiment/reproduce_statistics.h"
#include "holdfast/train/objective.h"

namespace holdfast::lens {
namespace {

const MethodInfo kAblationInfo{.name = "lens/ablation",
                               .summary = "steady_map with its parts knocked out and changed one at a time, under gauntlet",
                               .citation = {},
                               .options = {{"effort", "light", one_of({"light", "standard", "heavy"}), "of gauntlet"}}};

class Ablation final : public Experiment {
 public:
  explicit Ablation(const Options& options) : Experiment(options.canonical()), effort_(options.word("effort")) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "What each part of steady_map brings", .paper = kPaper};
    Setting mnist = setting(context, "mnist");
    lighten(context, mnist);
    const std::vector<Entry> entries = entries_of(context, mnist);
    std::vector<std::string> trainings;
    for (const Entry& entry : entries) trainings.push_back(entry.training);
    const std::vector<DatasetCase> cases = trained_cases(context, {mnist}, trainings, result.settings);
    result.settings["gauntlet"] = {{"effort", effort_}};
    if (cases.empty()) return result;  // the context has noted what is missing
    const std::vector<Standing> standings = measured(context, entries, cases.front());
    result.tables = {values_table(context, standings, effort_), differences_table(context, standings)};
    result.figures = {figure(standings, result.tables[0])};
    return result;
  }

 private:
  // A row of the tables.
  struct Entry {
    std::string training, differs;  // as recipe_of takes it; in words, for a reader
  };

  // What was measured of an entry.
  struct Standing {
    Entry entry;
    std::vector<double> accuracy, robust_accuracy;  // one a seed
    std::vector<Group> groups;                      // one for each of columns()
    std::vector<std::string> measures;              // theirs
    double evaluations = 0;                         // gradient evaluations a sample and training step
  };

  static constexpr const char* kShipped = "steady_map";

  static const std::vector<std::string>& columns() {
    static const std::vector<std::string> names{"saliency, top-k", "saliency, 1-LENS-prec", "integrated gradients, top-k",
                                                "integrated gradients, 1-LENS-prec"};
    return names;
  }

  // What is changed in steady_map, one thing at a time. The first three knock a part out: `quick` has one of them, `cpu` has
  // seven, the rest would take it a night.
  static std::vector<Entry> variants(const ExperimentContext& context, const Setting& setting) {
    const std::int64_t steps = objectives().options(recipe_of(context, setting, kShipped)).integer("steps");
    std::vector<Entry> all{{"weight=0", "maps may change: what remains is PGD whose maps are kept apart"},
                           {"power=1", "maps compared as they are, not by their roots"},
                           {"apart=0", "maps of different samples may be alike"},
                           {"weight=2", "less against the change of maps"},
                           {"weight=10", "more against the change of maps"},
                           {"explanation=both,path_steps=3", "the maps that must hold"},
                           {fmt::format("steps={}", steps / 2), "half as many inner steps, each longer"},
                           {"apart=4", "more against likeness of different samples' maps"},
                           {"explanation=integrated_gradients,path_steps=3", "the map that must hold"},
                           {"window=1", "a shift by a pixel costs little, as in 1-LENS"},
                           {"ramp=0", "full weights from the first step"},
                           {"sharpness=100", "the worst point is sought on a network that is hardly smoothed"},
                           {fmt::format("steps={}", 2 * steps), "twice as many inner steps, each shorter"}};
    all.resize(context.by_scale<std::size_t>(1, 7, all.size()));
    for (Entry& entry : all) entry.training = fmt::format("{}({})", kShipped, entry.training);
    return all;
  }

  static std::vector<Entry> entries_of(const ExperimentContext& context, const Setting& setting) {
    std::vector<std::string> others{"natural", "pgd", "pgd_long", "ig_sum_norm"};
    if (context.quick()) others.resize(1);
    std::vector<Entry> entries;
    for (const std::string& other : others) entries.push_back({other, "another training"});
    entries.push_back({kShipped, "as shipped"});
    for (Entry& variant : variants(context, setting)) entries.push_back(std::move(variant));
    return entries;
  }

  std::vector<Standing> measured(ExperimentContext& context, const std::vector<Entry>& entries, const DatasetCase& one) const {
    const std::vector<std::string> measures{top_k(one.setting), precision(one.setting, 1)};
    Plan plan;
    for (const Subject& subject : one.subjects) {
      for (const std::string& explainer : {saliency(), integrated_gradients(one.setting)}) {
        for (const std::string& measure : measures)
          plan.add(subject, *one.data,
                   {.rows = rows_of(*one.data, one.setting),
                    .explainer = explainer,
                    .attack = "gauntlet(effort=" + effort_ + ")",
                    .epsilon = one.setting.epsilon,
                    .select = measure,
                    .measures = {measure}});
      }
    }
    const std::vector<Group> groups = plan.run(context, "ablation");
    std::vector<Standing> standings;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Subject& subject = one.subjects[i];
      const auto first = groups.begin() + static_cast<std::ptrdiff_t>(i * columns().size());
      standings.push_back({.entry = entries[i],
                           .accuracy = accuracies(subject),
                           .robust_accuracy = robust_accuracies(context, subject, *one.data, one.setting),
                           .groups = {first, first + static_cast<std::ptrdiff_t>(columns().size())},
                           .measures = {measures[0], measures[1], measures[0], measures[1]},
                           .evaluations = evaluations_of(recipe_of(context, one.setting, subject.training))});
    }
    return standings;
  }

  static ResultTable values_table(const ExperimentContext& context, const std::vector<Standing>& standings,
                                  const std::string& effort) {
    ResultTable table{
        .name = "values",
        .caption = fmt::format("Accuracy of the test samples; robust accuracy under PGD of 20 steps; what "
                               "gauntlet(effort={}) leaves of each measure; gradient evaluations a sample and training "
                               "step.",
                               effort),
        .keys = {"training", "what differs"},
        .columns = {"test accuracy", "robust accuracy"}};
    table.columns.insert(table.columns.end(), columns().begin(), columns().end());
    table.columns.emplace_back("gradient evaluations");
    for (const Standing& one : standings) {
      std::vector<Value> values{share(over_seeds(one.accuracy)), share(over_seeds(one.robust_accuracy))};
      for (std::size_t i = 0; i < columns().size(); ++i) values.push_back(value_of(one.groups[i], one.measures[i], context.seed));
      values.push_back({.value = one.evaluations});
      table.add({one.entry.training, one.entry.differs}, std::move(values));
    }
    return table;
  }

  static ResultTable differences_table(const ExperimentContext& context, const std::vector<Standing>& standings) {
    ResultTable table{.name = "differences",
                      .caption =
                          "Each training minus steady_map as shipped, paired by seed (one seed: by sample); between: of the "
                          "levels, where less is better.",
                      .keys = {"training"},
                      .columns = {"test accuracy", "robust accuracy"}};
    for (const std::string& column : columns()) {
      table.columns.push_back(column);
      table.columns.push_back(column + ", between");
    }
    const auto shipped = std::ranges::find_if(standings, [](const Standing& one) { return one.entry.training == kShipped; });
    for (const Standing& one : standings) {
      if (&one == &*shipped) continue;
      std::vector<Value> values{share_difference(one.accuracy, shipped->accuracy),
                                share_difference(one.robust_accuracy, shipped->robust_accuracy)};
      for (std::size_t i = 0; i < columns().size(); ++i) {
        const std::string& measure = one.measures[i];
        values.push_back(difference_of(one.groups[i], measure, shipped->groups[i], measure, context.seed));
        values.push_back(share_difference(between_of(one.groups[i], measure), between_of(shipped->groups[i], measure)));
      }
      table.add({one.entry.training}, std::move(values));
    }
    return table;
  }

  // Up and to the left is a map that is the same for all samples; down and to the right is what is wanted.
  static Figure figure(const std::vector<Standing>& standings, const ResultTable& table) {
    Json dots = Json::array();
    const auto number = [](double value) { return std::isnan(value) ? Json() : Json(value); };
    for (std::size_t i = 0; i < standings.size(); ++i) {
      for (const auto& [explainer, first] : {std::pair<const char*, std::size_t>{"saliency", 2}, {"integrated gradients", 4}}) {
        const std::vector<Value>& values = table.rows[i].values;
        const Value &top = values[first], &near = values[first + 1];
        dots.push_back({{"training", standings[i].entry.training},
                        {"what differs", standings[i].entry.differs},
                        {"explainer", explainer},
                        {"1-LENS-prec", number(near.value)},
                        {"low", number(near.low.value_or(near.value))},
                        {"high", number(near.high.value_or(near.value))},
                        {"top-k", number(top.value)},
                        {"between", number(top.between.value_or(std::nan("")))},
                        {"accuracy", number(values[0].value)}});
      }
    }
    Json spec = Json::parse(R"json({"$schema": "https://vega.github.io/schema/vega-lite/v5.json",
      "facet": {"column": {"field": "explainer", "type": "nominal", "title": null, "sort": null}}, "spec": {
      "width": 260, "height": 240, "encoding": {
      "y": {"field": "between", "type": "quantitative", "title": "between level of top-k", "scale": {"zero": false}},
      "color": {"field": "training", "type": "nominal", "title": null, "sort": null, "scale": {"range": [
                "#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#00a5c5", "#f032e6", "#808000", "#9a6324", "#000000",
                "#000090", "#8c8c8c", "#d4a800", "#800000", "#00806a", "#ff8fa8", "#84c400", "#a58cff"]},
                "legend": {"labelLimit": 400, "symbolLimit": 0, "symbolOpacity": 1, "symbolType": "circle"}}}, "layer": [
      {"mark": {"type": "rule", "opacity": 0.4}, "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}},
      {"mark": {"type": "point", "filled": true, "size": 60, "opacity": 1}, "encoding": {
      "x": {"field": "1-LENS-prec", "type": "quantitative", "title": "1-LENS-prec under gauntlet", "scale": {"zero": false}},
      "tooltip": [{"field": "training"}, {"field": "what differs"}, {"field": "1-LENS-prec"}, {"field": "top-k"},
                  {"field": "between"}, {"field": "accuracy"}]}}]}})json");
    spec["data"]["values"] = dots;
    return {
        .name = "ablation",
        .caption = "Right: 1-LENS-prec holds under gauntlet. Up: maps of different samples are alike. Down and right is better.",
        .spec = spec};
  }

  std::string effort_;
};

}  // namespace

void add_ablation(Registry<Experiment>& registry) {
  registry.add<Ablation>(kAblationInfo);
}

}  // namespace holdfast::lens

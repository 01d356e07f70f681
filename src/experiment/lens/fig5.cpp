// lens/fig5: what a wider neighbourhood does to LENS-prec and to its diverse form, under three attacks, on a small and a large
// dataset.
#include "cells.h"
#include "charts.h"
#include "experiments.h"
#include "verdicts.h"

namespace holdfast::lens {
namespace {

const MethodInfo kFig5Info{
    .name = "lens/fig5", .summary = "LENS-prec and its diverse form for w from 0 to 5, three attacks", .citation = kPaper};

constexpr std::int64_t kWidest = 5;

// w = 0 is top-k itself.
std::string plain_at(const Setting& setting, std::int64_t w) {
  return w == 0 ? top_k(setting) : precision(setting, w);
}
std::string diverse_at(const Setting& setting, std::int64_t w) {
  return w == 0 ? top_k_div(setting) : precision_div(setting, w);
}

class Fig5 final : public Experiment {
 public:
  explicit Fig5(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "Wider neighbourhoods (figure 5)", .paper = kPaper};
    const std::vector<Setting> settings{setting(context, "mnist"), setting(context, "imagenet")};
    std::vector<std::shared_ptr<const ExperimentData>> data;
    std::vector<Subject> nets;
    nets.reserve(settings.size());
    Plan plan;
    std::vector<Cell> cells;
    for (const Setting& one : settings) {
      data.push_back(data_of(context, one));
      if (!data.back()) continue;
      result.settings[one.name] = to_json(one);
      const bool trained = one.steps > 0;
      nets.push_back(trained ? subjects(context, one, *data.back(), {"natural"}).front()
                             : published(context, "natural", one.architecture + ":pretrained"));
      const Chosen chosen = trained ? Chosen{rows_of(*data.back(), one)} : right_rows(nets.back(), *data.back(), one.images);
      for (const auto& [attack, call] : {std::pair<std::string, std::string>{"random_sign", random_sign(one)},
                                         {"top_t", top_t(one)},
                                         {"mass_center", mass_center(one)}}) {
        cells.push_back({&one, attack,
                         plan.add(nets.back(), *data.back(),
                                  {.rows = chosen.rows,
                                   .explainer = integrated_gradients(one),
                                   .attack = call,
                                   .epsilon = one.epsilon,
                                   .measures = measures(one)}),
                         chosen.passed_over});
      }
    }
    const std::vector<Group> groups = plan.run(context, "fig5");
    result.tables = {table(context, cells, groups, /*diverse=*/false), table(context, cells, groups, /*diverse=*/true)};
    result.figures = {figure(result.tables)};
    result.verdicts = {grows(context, cells, groups), diversity(context, cells, groups), shrinks(context, cells, groups)};
    return result;
  }

 private:
  struct Cell {
    const Setting* setting;
    std::string attack;
    std::size_t group = 0;
    std::int64_t passed_over = 0;
  };

  static ResultTable table(const ExperimentContext& context, const std::vector<Cell>& cells, const std::vector<Group>& groups,
                           bool diverse) {
    ResultTable table{.name = diverse ? "precision_div" : "precision",
                      .caption = diverse ? "LENS-prec of diverse sets, integrated gradients, natural networks."
                                         : "LENS-prec, integrated gradients, natural networks; w = 0 is top-k.",
                      .keys = {"dataset", "attack"},
                      .columns = {}};
    for (std::int64_t w = 0; w <= kWidest; ++w) table.columns.push_back(fmt::format("w={}", w));
    table.columns.insert(table.columns.end(), kCounts.begin(), kCounts.end());
    for (const Cell& cell : cells) {
      std::vector<Value> values;
      for (std::int64_t w = 0; w <= kWidest; ++w) {
        const std::string measure = diverse ? diverse_at(*cell.setting, w) : plain_at(*cell.setting, w);
        values.push_back(value_of(groups[cell.group], measure, context.seed));
      }
      add_counts(values, groups[cell.group], cell.passed_over);
      table.add({cell.setting->name, cell.attack}, std::move(values));
    }
    return table;
  }

  static Figure figure(const std::vector<ResultTable>& tables) {
    std::vector<Json> points;
    for (const ResultTable& table : tables) {
      for (const ResultTable::Row& row : table.rows) {
        for (std::size_t w = 0; w <= kWidest; ++w) {
          points.push_back(
              chart_point({{"w", w},
                           {"measure and attack", (table.name == "precision" ? "prec, " : "prec-div, ") + row.keys[1]},
                           {"dataset", row.keys[0]}},
                          row.values[w]));
        }
      }
    }
    return {.name = "fig5",
            .caption = "LENS-prec against the neighbourhood's radius",
            .spec = chart(
                points,
                {.x = "w", .colour = "measure and attack", .column = "dataset", .y_title = "share that stays", .lines = true})};
  }

  static const Cell* find(const std::vector<Cell>& cells, const std::string& dataset, const std::string& attack) {
    for (const Cell& cell : cells) {
      if (cell.setting->name == dataset && cell.attack == attack) return &cell;
    }
    return nullptr;
  }

  // Whether the attack leaves surely more of the top k than chance would.
  static bool is_left(const ExperimentContext& context, const Cell& cell, const std::vector<Group>& groups) {
    const Value top = value_of(groups[cell.group], top_k(*cell.setting), context.seed);
    return surely_above(top, top.chance.value_or(1));
  }

  // L3: that it grows follows from the definition. Is the gain from w = 0 to 1 under top-t above that under each other attack?
  static Verdict grows(const ExperimentContext& context, const std::vector<Cell>& cells, const std::vector<Group>& groups) {
    std::vector<Case> leads, gains, adjusted;
    std::string floor;
    for (const Cell& cell : cells) {
      const Group& group = groups[cell.group];
      const std::string local = precision(*cell.setting, 1), plain = top_k(*cell.setting),
                        name = cell.setting->name + ", " + cell.attack;
      gains.push_back({name, gain_of(group, local, plain, context.seed)});
      adjusted.push_back({name, adjusted_gain_of(group, local, plain, context.seed)});
      if (!is_left(context, cell, groups)) floor += (floor.empty() ? "" : "; ") + name;
      if (cell.attack == "top_t") continue;
      const Group& top = groups[find(cells, cell.setting->name, "top_t")->group];
      leads.push_back({cell.setting->name + ", against " + cell.attack, gain_lead_of(top, group, local, plain, context.seed)});
    }
    return all_above(
        0, "L3", "w-LENS grows with w; the top-t attack gains most",
        "gain of LENS-prec from w = 0 to 1 under top-t minus that under another attack", leads,
        fmt::format("That it grows is true by definition (Proposition 1) and decides nothing. {}Gains: {}. With "
                    "chance taken out: {}.",
                    floor.empty()
                        ? ""
                        : fmt::format("Not surely more of the top k than by chance is left for a window to find: {}. ", floor),
                    words(gains), words(adjusted)),
        context.quick() ? 1 : 3);
  }

  // L5 for precision at w = 1.
  static Verdict diversity(const ExperimentContext& context, const std::vector<Cell>& cells, const std::vector<Group>& groups) {
    std::vector<Case> gains, adjusted;
    for (const Cell& cell : cells) {
      const std::string diverse = precision_div(*cell.setting, 1), plain = precision(*cell.setting, 1),
                        name = cell.setting->name + ", " + cell.attack;
      gains.push_back({name, gain_of(groups[cell.group], diverse, plain, context.seed)});
      adjusted.push_back({name, adjusted_gain_of(groups[cell.group], diverse, plain, context.seed)});
    }
    return all_above(0, "L5", "diversity with locality raises the measure further", "1-LENS-prec-div minus 1-LENS-prec", gains,
                     fmt::format("With chance taken out {}. On MNIST most of a diverse set are pixels whose attribution is "
                                 "zero, chosen by their position alone.",
                                 outcome_above(adjusted, 0)),
                     context.quick() ? 1 : 3);
  }

  // L12: what locality adds with chance taken out, on MNIST minus on ImageNet, for each attack. A ratio would not do: where top-k
  // is near 1 there is nothing left to add. Nor do attacks that leave no more of the top k than chance: nothing is left there
  // that a window could find, and the gain is negative whatever the dataset.
  static Verdict shrinks(const ExperimentContext& context, const std::vector<Cell>& cells, const std::vector<Group>& groups) {
    const auto gain = [&](const Cell& cell) {
      return adjusted_gain_of(groups[cell.group], precision(*cell.setting, 1), top_k(*cell.setting), context.seed);
    };
    std::vector<Case> differences;
    std::string why, floor;
    for (const Cell& large : cells) {
      const Cell* small = find(cells, "mnist", large.attack);
      if (large.setting->name != "imagenet" || small == nullptr) continue;
      why += fmt::format("{}: {} on ImageNet, {} on MNIST. ", large.attack, words(gain(large)), words(gain(*small)));
      if (is_left(context, large, groups) && is_left(context, *small, groups)) {
        differences.push_back({large.attack, independent_difference(gain(*small), gain(large))});
      } else {
        floor += (floor.empty() ? "" : ", ") + large.attack;
      }
    }
    if (why.empty()) why = "It takes both MNIST and ImageNet. ";
    if (!floor.empty())
      floor = fmt::format("Not judged, because top-k is not surely above its chance level on both: {}. ", floor);
    return all_above(0, "L12", "the advantage of locality shrinks on larger datasets (ImageNet)",
                     "gain of LENS-prec from w = 0 to 1 with chance taken out, MNIST minus ImageNet", differences,
                     floor + "Gains: " + why, context.quick() ? 1 : 3);
  }
};

}  // namespace

void add_fig5(Registry<Experiment>& registry) {
  registry.add<Fig5>(kFig5Info);
}

}  // namespace holdfast::lens

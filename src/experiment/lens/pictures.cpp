// lens/fig1, fig3, fig6, fig7: flowers before and after the top-t attack on integrated gradients, with the pixels that the
// measures compare: the top k, their neighbourhoods, the diverse top k; and the same of robustly trained networks.
#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "cells.h"
#include "experiments.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/reproduce_statistics.h"
#include "holdfast/metric/diverse.h"
#include "holdfast/metric/neighborhood.h"
#include "holdfast/metric/top_k.h"
#include "verdicts.h"

namespace holdfast::lens {
namespace {

// What is marked in a picture.
struct Marking {
  std::string title;
  bool diverse = false;
  std::int64_t window = 0;  // grown by
};

struct Row {  // of the table: a measure and the paper's caption
  std::string name;
  std::string (*measure)(const Setting&, std::int64_t);
  std::int64_t w = 0;
  std::optional<double> published = {};
};

std::string plain(const Setting& setting, std::int64_t) {
  return top_k(setting);
}
std::string diverse(const Setting& setting, std::int64_t) {
  return top_k_div(setting);
}

struct Form {
  MethodInfo info;
  std::string title, caption;
  std::vector<std::string> trainings;
  std::vector<Marking> markings;
  std::vector<Row> rows;
};

const Marking kTop{"the top k"}, kNear{"windows of 3 x 3 round the top k", false, 1},
    kWide{"windows of 5 x 5 round the top k", false, 2};
const Marking kApart{"the diverse top k", true, 0}, kApartNear{"windows of 3 x 3 round the diverse top k", true, 1};

std::vector<Form> forms() {
  return {
      {{.name = "lens/fig1",
        .summary = "flowers before and after the attack: the top k moves by a few pixels",
        .citation = kPaper},
       "A flower before and after the attack (figure 1)",
       "Flowers and their integrated gradients before and after the top-t attack, with the top k.",
       {"natural"},
       {kTop},
       {{"top-k", plain}, {"1-LENS-prec", precision, 1}}},
      {{.name = "lens/fig3",
        .summary = "flowers: the top k and its neighbourhoods of 3 x 3 and 5 x 5 pixels",
        .citation = kPaper},
       "Neighbourhoods of the top k (figure 3)",
       "The same attacked flowers three times: with the top k, and with its windows of 3 x 3 and of 5 x 5 pixels. What looks "
       "lost in the first is near by in the others.",
       {"natural"},
       {kTop, kNear, kWide},
       {{"top-k", plain, 0, .14},
        {"1-LENS-recall", recall, 1, .25},
        {"1-LENS-prec", precision, 1, .37},
        {"2-LENS-recall", recall, 2, .40},
        {"2-LENS-prec", precision, 2, .62}}},
      {{.name = "lens/fig6", .summary = "flowers: the diverse top k and its neighbourhoods", .citation = kPaper},
       "The diverse top k (figure 6)",
       "The same attacked flowers twice: with the diverse top k, no two of which are neighbours, and with its windows of 3 x 3 "
       "pixels.",
       {"natural"},
       {kApart, kApartNear},
       {{"top-k-div", diverse, 0, .22},
        {"1-LENS-recall-div", recall_div, 1, .87},
        {"1-LENS-prec-div", precision_div, 1, .86},
        {"2-LENS-recall-div", recall_div, 2, .95},
        {"2-LENS-prec-div", precision_div, 2, .93}}},
      {{.name = "lens/fig7", .summary = "flowers: natural, PGD and IG-SUM-NORM training side by side", .citation = kPaper},
       "The top k by training (figure 7)",
       "The top k of the same flowers, each attacked on its own network: after natural, PGD and IG-SUM-NORM training.",
       {"natural", "pgd", "ig_sum_norm"},
       {kTop},
       {{"top-k", plain}, {"1-LENS-prec", precision, 1}, {"1-LENS-recall", recall, 1}}}};
}

std::vector<std::int64_t> marked(const MapView& map, const Setting& setting, const Marking& marking) {
  const Neighborhood window(map.schema, marking.window), apart(map.schema, setting.diversity);
  FeatureSet set;
  window.reset(set);
  if (marking.diverse) {
    diverse_top_k(map.values, setting.k, apart, set);
  } else {
    top_k_bits(map.values, setting.k, set);
  }
  window.grow(set);
  return set.members();
}

std::string class_name(const Dataset& data, std::int64_t label) {
  const auto at = static_cast<std::size_t>(label);
  return at < data.schema.classes.size() ? data.schema.classes[at] : std::to_string(label);
}

class Pictures final : public Experiment {
 public:
  Pictures(const Options& options, Form form) : Experiment(options.canonical()), form_(std::move(form)) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = form_.title, .paper = kPaper};
    const Setting flower = setting(context, "flower");
    const auto data = data_of(context, flower);
    if (!data) return result;
    result.settings["flower"] = to_json(flower);
    const std::vector<Subject> nets = subjects(context, flower, *data, form_.trainings);
    const std::vector<std::int64_t> rows =
        shown_rows(*nets.front().seeds.front().model, data->data, context.by_scale<std::size_t>(2, 4, 6));
    if (rows.empty()) {
      context.note("no picture: the natural network classifies none of the test images rightly");
      return result;
    }
    ResultTable table{.name = "values",
                      .caption = "Means over the flowers shown; the paper's are its captions', of one flower.",
                      .keys = {"training"},
                      .columns = {}};
    for (const Row& row : form_.rows) table.columns.push_back(row.name);
    ResultTable pictures{.name = "pictures",
                         .caption = "Each picture alone: what lens/table1 asks people about.",
                         .keys = {"training", "sample", "label", "predicted"},
                         .columns = {"top-k", "3-LENS-prec"}};
    Figure figure{.name = parse_method_call(name()).name.substr(5), .caption = {}};
    for (const Subject& net : nets) {
      const CellResult attacked = attack(context, *net.seeds.front().model, data->data, flower, rows);
      const MapBatch clean = fold_maps(attacked.original_maps, data->data.schema),
                     moved = fold_maps(attacked.perturbed_maps, data->data.schema);
      table.add({net.training}, values(context, flower, clean, moved));
      add_pictures_of(net.training, data->data, flower, rows, attacked, clean, moved, pictures);
      for (const Marking& marking : form_.markings)
        figure.panels.push_back(panel(context, net.training, marking, data->data, flower, rows, attacked, clean, moved));
    }
    figure.caption = caption(pictures);
    result.tables = {table, pictures};
    result.figures = {figure};
    if (form_.info.name == "lens/fig6") result.verdicts = {diversity(table)};
    return result;
  }

 private:
  // Test images that the natural network classifies rightly, the first of different classes.
  static std::vector<std::int64_t> shown_rows(const Model& model, const Dataset& data, std::size_t count) {
    const at::Tensor predicted =
        predicted_class(predict(model, data.inputs_of(data.test), data.schema.layout, {.threads = 1}).cpu());
    std::vector<std::int64_t> rows, seen;
    for (std::size_t i = 0; i < data.test.size() && rows.size() < count; ++i) {
      const std::int64_t row = data.test[i], label = data.labels[row].item<std::int64_t>();
      if (predicted[static_cast<std::int64_t>(i)].item<std::int64_t>() != label ||
          std::find(seen.begin(), seen.end(), label) != seen.end())
        continue;
      rows.push_back(row);
      seen.push_back(label);
    }
    return rows;
  }

  // What a person who is asked about a picture is held against (lens/table1).
  static void add_pictures_of(const std::string& training, const Dataset& data, const Setting& setting,
                              const std::vector<std::int64_t>& rows, const CellResult& attacked, const MapBatch& clean,
                              const MapBatch& moved, ResultTable& table) {
    const auto exact = metrics().make(top_k(setting)), near = metrics().make(precision(setting, 3));
    for (std::int64_t i = 0; i < clean.count; ++i) {
      const std::int64_t row = rows[static_cast<std::size_t>(i)];
      table.add({training, std::to_string(row), class_name(data, data.labels[row].item<std::int64_t>()),
                 class_name(data, attacked.targets[i].item<std::int64_t>())},
                {{.value = exact->compare(clean[i], moved[i])}, {.value = near->compare(clean[i], moved[i])}});
    }
  }

  // The form's words, what the colours mean, and which pictures a network takes for something else.
  std::string caption(const ResultTable& pictures) const {
    std::vector<std::string> wrong;
    for (const ResultTable::Row& row : pictures.rows) {
      if (row.keys[2] != row.keys[3])
        wrong.push_back(
            fmt::format("{}, sample {} (label {}, predicted {})", row.keys[0], row.keys[1], row.keys[2], row.keys[3]));
    }
    return fmt::format("{} Green pixels are marked before and after the attack, red ones only before, blue ones only after. {}",
                       form_.caption,
                       wrong.empty() ? "Every picture is classified rightly."
                                     : fmt::format("Misclassified already before the attack: {}.", fmt::join(wrong, "; ")));
  }

  // The class that the network predicts is explained, whether it is right or not: the robust ones are shown on the same flowers.
  static CellResult attack(const ExperimentContext& context, const Model& model, const Dataset& data, const Setting& setting,
                           const std::vector<std::int64_t>& rows) {
    const auto explainer = explainers().make(integrated_gradients(setting));
    const auto attack = attacks().make(top_t(setting));
    const auto metric = metrics().make("kendall");
    const ThreatModel threat = ThreatModel::make({.norm = Norm::kLinf, .epsilons = {setting.epsilon}, .box = std::pair(0.0, 1.0)}, data.schema);
    const AttackTask task{.model = model,
                          .explainer = *explainer,
                          .metric = *metric,
                          .threat = threat,
                          .samples = samples_of(data, rows),
                          .seed = context.seed};
    check_cell(*attack, task);
    return run_cell(*attack, task, {.size = 1, .threads = context.threads});
  }

  std::vector<Value> values(const ExperimentContext& context, const Setting& setting, const MapBatch& clean,
                            const MapBatch& moved) const {
    std::vector<Value> all;
    for (const Row& row : form_.rows) {
      const auto metric = metrics().make(row.measure(setting, row.w));
      std::vector<double> each, chances;
      for (std::int64_t i = 0; i < clean.count; ++i) {
        each.push_back(metric->compare(clean[i], moved[i]));
        chances.push_back(metric->chance(clean[i]).value_or(std::numeric_limits<double>::quiet_NaN()));
      }
      Value value = over_seeds({each}, context.seed);
      value.published = row.published;
      value.chance = defined_mean(chances);
      const holdfast::Levels base = compute_levels(*metric, clean, {}, {.seed = context.seed});
      if (!std::isnan(base.between)) value.between = base.between;
      all.push_back(value);
    }
    return all;
  }

  static Panel panel(ExperimentContext& context, const std::string& training, const Marking& marking, const Dataset& data,
                     const Setting& setting, const std::vector<std::int64_t>& rows, const CellResult& attacked,
                     const MapBatch& clean, const MapBatch& moved) {
    PanelSamples samples{.inputs = data.inputs_of(rows),
                         .perturbed = attacked.perturbed,
                         .original_maps = attacked.original_maps,
                         .perturbed_maps = attacked.perturbed_maps,
                         .ids = rows};
    const auto metric =
        metrics().make(marking.diverse ? precision_div(setting, marking.window) : precision(setting, marking.window));
    for (std::int64_t i = 0; i < clean.count; ++i) {
      samples.labels.push_back(data.labels[rows[static_cast<std::size_t>(i)]].item<std::int64_t>());
      samples.predictions.push_back(attacked.targets[i].item<std::int64_t>());
      samples.values.push_back(metric->compare(clean[i], moved[i]));
      samples.top_original.push_back(marked(clean[i], setting, marking));
      samples.top_perturbed.push_back(marked(moved[i], setting, marking));
    }
    return context.panel(fmt::format("{} training: {}; {}", training, marking.title, metric->name()), data.schema, samples);
  }

  // L5 as the captions have it: top-k-div far below its LENS forms. A few pictures decide nothing.
  static Verdict diversity(const ResultTable& table) {
    const Value &apart = table.rows[0].values[0], &near = table.rows[0].values[2];
    return make_verdict(
        "L5", "diversity with locality raises the measure further", "not decided",
        fmt::format("Number: 1-LENS-prec-div on the flowers shown; top-k-div is {:.3f}; chance {:.3f}. A few pictures "
                    "decide nothing alone.",
                    apart.value, near.chance.value_or(0)),
        near, 1);
  }

  Form form_;
};

}  // namespace

void add_pictures(Registry<Experiment>& registry) {
  for (const Form& form : forms())
    registry.add(form.info, [form](const Options& options) { return std::make_unique<Pictures>(options, form); });
}

}  // namespace holdfast::lens

// lens/fig1, fig3, fig6, fig7: flowers before and after the top-t attack on integrated gradients, with the pixels that the
// measures compare: the top k, their neighbourhoods, the diverse top k; and the same of robustly trained networks.
#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "claims.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/diverse.h"
#include "holdfast/metric/neighborhood.h"
#include "holdfast/metric/top_k.h"

namespace holdfast::experiment::paper::lens {
namespace {

// What is marked in a picture, as the figure's fields say it: "windows of 3 x 3 round the top k: plain 1".
struct Marking {
  explicit Marking(const std::string& field)
      : title(field.substr(0, field.find(": "))),
        is_diverse(field.find(": diverse") != std::string::npos),
        window(std::stoll(field.substr(field.rfind(' ')))) {}

  std::string title;
  bool is_diverse;
  std::int64_t window;  // the sets are grown by it
};

std::vector<std::int64_t> marked(const MapView& map, const Setting& setting, const Marking& marking) {
  const Neighborhood window(map.schema, marking.window), apart(map.schema, setting.diversity);
  FeatureSet set;
  window.reset(set);
  if (marking.is_diverse) {
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

// Test images that the network classifies rightly, the first of different classes.
std::vector<std::int64_t> shown_rows(const Model& model, const Dataset& data, std::size_t count) {
  const at::Tensor predicted =
      predicted_class(predict(model, data.inputs_of(data.test), data.schema.layout, {.threads = 1}).cpu());
  std::vector<std::int64_t> rows, seen;
  for (std::size_t i = 0; i < data.test.size() && rows.size() < count; ++i) {
    const std::int64_t row = data.test[i], label = data.labels[row].item<std::int64_t>();
    if (predicted[static_cast<std::int64_t>(i)].item<std::int64_t>() != label || std::ranges::find(seen, label) != seen.end())
      continue;
    rows.push_back(row);
    seen.push_back(label);
  }
  return rows;
}

// The attacked pictures of one training. The class that the network predicts is explained, whether it is right or not: the robust
// ones are shown on the same flowers.
struct Pictures {
  const Setting& setting;
  std::string training;
  StudiedNetwork subject;
  CellResult attacked;
  MapBatch clean, moved;

  const Dataset& data() const { return subject.data->data; }
  std::int64_t label(std::int64_t i) const {
    return data().labels[subject.rows.positions[static_cast<std::size_t>(i)]].item<std::int64_t>();
  }
  std::int64_t predicted(std::int64_t i) const { return attacked.targets[i].item<std::int64_t>(); }
};

Pictures attack(PaperRun& run, const Setting& setting, const MethodNetworks& networks, const std::vector<std::int64_t>& rows) {
  StudiedNetwork subject = subject_of(setting, networks.members.front());
  subject.rows = {rows, ""};
  subject.explains_labels = false;
  PaperAttack choice = attack_of(setting, setting.fill(run.paper.call("top_t")), {run.plan.aim}, "worst");
  CellResult attacked = attack_maps(subject, choice, run.seed, run.context.threads);
  const Schema& schema = subject.data->data.schema;
  MapBatch clean = fold_maps(attacked.original_maps, schema), moved = fold_maps(attacked.perturbed_maps, schema);
  return {setting, networks.method.name, std::move(subject), std::move(attacked), std::move(clean), std::move(moved)};
}

std::vector<Value> values_of(const PaperRun& run, const TablePlan& table, const Pictures& pictures) {
  std::vector<Value> all;
  for (const ColumnPlan& column : table.columns) {
    const auto metric = metrics().make(pictures.setting.fill(run.paper.call(column.metric)));
    Numbers numbers{.values = {{}}, .chance = {{}}};
    for (std::int64_t i = 0; i < pictures.clean.count; ++i) {
      numbers.values[0].push_back(metric->compare(pictures.clean[i], pictures.moved[i]));
      numbers.chance[0].push_back(metric->chance(pictures.clean[i]).value_or(kUndefined));
    }
    Value value = plain_value(numbers, run.seed);
    if (!column.published.empty())
      value.published = run.paper.published(column.published, pictures.training, pictures.setting.dataset);
    value.chance = defined_mean(numbers.chance[0]);
    const Levels levels = compute_levels(*metric, pictures.clean, {}, {.seed = run.seed});
    if (!std::isnan(levels.between)) value.between = levels.between;
    all.push_back(value);
  }
  return all;
}

// What a person who is asked about a picture is held against (lens/table1).
void add_pictures(const PaperRun& run, const Pictures& pictures, ResultTable& table) {
  const auto exact = metrics().make(pictures.setting.fill(run.paper.call("top-k"))),
             near = metrics().make(pictures.setting.fill(run.paper.call("3-LENS-prec")));
  for (std::int64_t i = 0; i < pictures.clean.count; ++i) {
    const MapView &clean = pictures.clean[i], &moved = pictures.moved[i];
    table.add({pictures.training, std::to_string(pictures.subject.rows.positions[static_cast<std::size_t>(i)]),
               class_name(pictures.data(), pictures.label(i)), class_name(pictures.data(), pictures.predicted(i))},
              {{.value = exact->compare(clean, moved)}, {.value = near->compare(clean, moved)}});
  }
}

Panel panel_of(PaperRun& run, const Pictures& pictures, const Marking& marking) {
  PanelSamples samples{.inputs = inputs_of(pictures.subject),
                       .perturbed = pictures.attacked.perturbed,
                       .original_maps = pictures.attacked.original_maps,
                       .perturbed_maps = pictures.attacked.perturbed_maps,
                       .ids = pictures.subject.rows.positions};
  const std::string form =
      marking.is_diverse ? "lens_precision_div(k={k},w=W,diversity={diversity})" : "lens_precision(k={k},w=W)";
  std::string call = pictures.setting.fill(form);
  const auto metric = metrics().make(call.replace(call.find('W'), 1, std::to_string(marking.window)));
  for (std::int64_t i = 0; i < pictures.clean.count; ++i) {
    samples.labels.push_back(pictures.label(i));
    samples.predictions.push_back(pictures.predicted(i));
    samples.values.push_back(metric->compare(pictures.clean[i], pictures.moved[i]));
    samples.top_original.push_back(marked(pictures.clean[i], pictures.setting, marking));
    samples.top_perturbed.push_back(marked(pictures.moved[i], pictures.setting, marking));
  }
  return run.context.panel(fmt::format("{} training: {}; {}", pictures.training, marking.title, metric->name()),
                           pictures.data().schema, samples);
}

// What the colours mean, and which pictures a network takes for something else.
std::string caption_of(const ResultTable& pictures) {
  std::vector<std::string> wrong;
  for (const ResultTable::Row& row : pictures.rows) {
    if (row.keys[2] != row.keys[3])
      wrong.push_back(fmt::format("{}, sample {} (label {}, predicted {})", row.keys[0], row.keys[1], row.keys[2], row.keys[3]));
  }
  return fmt::format(" Green pixels are marked before and after the attack, red ones only before, blue ones only after. {}",
                     wrong.empty() ? "Every picture is classified rightly."
                                   : fmt::format("Misclassified already before the attack: {}.", fmt::join(wrong, "; ")));
}

}  // namespace

void draw_pictures(PaperRun& run) {
  if (run.settings.empty() || run.networks(run.settings[0]).empty()) return;
  const Setting& flower = run.settings[0];
  const std::vector<MethodNetworks>& networks = run.networks(flower);
  if (run.context.plans()) return;  // pictures of networks that are not there
  const Member& first = networks.front().members.front();
  const std::vector<std::int64_t> rows =
      shown_rows(*first.trained.model, first.data->data, run.context.by_scale<std::size_t>(2, 4, 6));
  if (rows.empty()) {
    run.context.note("no picture: the natural network classifies none of the test images rightly");
    return;
  }
  const FigurePlan& plan = run.plan.figures.front();
  for (const MethodNetworks& one : networks) {
    const Pictures pictures = attack(run, flower, one, rows);
    run.table("values").add({one.method.name}, values_of(run, run.plan.tables.front(), pictures));
    add_pictures(run, pictures, run.table("pictures"));
    for (const std::string& field : plan.fields) run.figure(plan.name).panels.push_back(panel_of(run, pictures, Marking(field)));
  }
  run.figure(plan.name).caption += caption_of(run.table("pictures"));
  if (run.plan.claims.empty()) return;
  // The paper's captions have top-k-div far below its LENS forms.
  const std::vector<Value>& values = run.table("values").rows[0].values;
  const Words words{{"apart", fmt::format("{:.3f}", values[0].value)},
                    {"chance", fmt::format("{:.3f}", values[2].chance.value_or(0))}};
  run.judge("L5", {Judgement::kNotDecided, words, values[2]}, 1);
}

}  // namespace holdfast::experiment::paper::lens

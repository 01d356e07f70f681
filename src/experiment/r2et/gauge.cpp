// r2et/gauge: a change of weights that no prediction feels, and which gains over Vanilla survive without the gauge.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "claims.h"
#include "holdfast/core/torch.h"

namespace holdfast::experiment::paper::r2et {
namespace {

constexpr double kSize = 30;  // C, in units of the largest first-layer weight

// Groups with `wanted` columns in all; empty where no choice of groups has as many.
std::vector<Group> groups_with(const std::vector<Group>& groups, std::size_t wanted, std::size_t from = 0) {
  if (wanted == 0) return {};
  for (std::size_t i = from; i < groups.size(); ++i) {
    const std::size_t size = groups[i].columns.size();
    if (size > wanted) continue;
    std::vector<Group> rest = groups_with(groups, wanted - size, i + 1);
    if (size < wanted && rest.empty()) continue;
    rest.insert(rest.begin(), groups[i]);
    return rest;
  }
  return {};
}

at::Tensor tensor_named(const Network& network, const std::string& name) {
  for (const Parameter& parameter : network.parameters()) {
    if (parameter.name == name) return parameter.tensor;
  }
  HOLDFAST_CHECK(false);
  return {};
}

// The same predictions on valid rows, in double precision.
Network transformed(const Network& plain, const std::vector<Group>& groups) {
  const at::NoGradGuard no_grad;
  Network network = plain.to(at::kDouble);
  at::Tensor weight = tensor_named(network, "hidden1.weight"), bias = tensor_named(network, "hidden1.bias");
  const at::Tensor output = tensor_named(network, "output.weight");
  const at::Tensor shift = kSize * weight.abs().max() * (output[1] - output[0]).sign();  // [hidden]
  for (const Group& group : groups) {
    for (const std::int64_t column : group.columns) weight.select(1, column).add_(shift);
    bias.sub_(shift);
  }
  return network;
}

// The largest change of a logit over the rows that are attacked, in double precision.
Value logit_change(const std::vector<StudiedNetwork>& plain, const std::vector<StudiedNetwork>& moved) {
  double largest = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const at::Tensor inputs = inputs_of(plain[i]).to(at::kDouble);
    const at::Tensor before = plain[i].model->in_double()->logits(inputs), after = moved[i].model->logits(inputs);
    largest = std::max(largest, (before - after).abs().max().item<double>());
  }
  return {.value = largest, .count = static_cast<std::int64_t>(plain.size())};
}

// A column of the first table: an attack on one explainer, or a measure.
struct GaugeColumn {
  std::string call, explainer;
  bool is_measure = false;
  std::vector<std::size_t> cells = {};
};

std::vector<Value> values_of(PaperRun& run, const Setting& setting, const std::vector<StudiedNetwork>& subjects) {
  const std::string er = setting.fill("er(steps={steps})"), mse = setting.fill("mse(steps={steps})"),
                    bare = "saliency(project=none)", projected = "saliency(project=groups)",
                    metric = setting.fill("top_k(k={k})");
  std::vector<GaugeColumn> columns{{er, bare},
                                   {mse, bare},
                                   {setting.strong, bare},
                                   {er, projected},
                                   {setting.strong, projected},
                                   {"comp", bare, true},
                                   {"comp(remove=resample)", bare, true}};
  CellBatch batch(run.seed);
  for (GaugeColumn& column : columns) {
    for (StudiedNetwork subject : subjects) {
      subject.explainer = column.explainer;
      column.cells.push_back(column.is_measure ? batch.measure(subject, column.call, setting.epsilon)
                                               : batch.attack(subject, attack_of(setting, column.call, {metric}, "worst")));
    }
  }
  batch.run(run.context, setting.name + ": gauge");
  std::vector<Value> values;
  for (const GaugeColumn& column : columns) {
    Numbers measured;
    std::vector<AttackedCell> attacked;
    for (const std::size_t cell : column.cells) {
      if (column.is_measure) measured.values.push_back(batch.measured(cell).values);
      if (!column.is_measure) attacked.push_back(batch.attacked(cell));
    }
    values.push_back(value_of(column.is_measure ? measured : numbers_of(attacked, metric), run.seed));
  }
  return values;
}

// The rows of Vanilla as trained and transformed; P@8 that the transformed network reaches under the three attacks.
std::vector<double> transform(PaperRun& run, const Setting& setting, const std::vector<Group>& groups) {
  std::vector<StudiedNetwork> plain, moved;
  for (const Member& member : find(run.networks(setting), "Vanilla")->members) {
    plain.push_back(subject_of(setting, member));
    moved.push_back(plain.back());
    moved.back().model = make_model(transformed(*member.trained.model->network(), groups), member.data->data.schema.layout);
    moved.back().key += fmt::format("; gauge {} on the first groups with {} columns", kSize, setting.k);
  }
  std::vector<double> reached;
  for (const bool is_changed : {false, true}) {
    std::vector<Value> values = values_of(run, setting, is_changed ? moved : plain);
    for (std::size_t i = 0; is_changed && i < 3; ++i) reached.push_back(values[i].value);
    values.insert(values.begin(), is_changed ? logit_change(plain, moved) : Value{.value = 0});
    run.table("transformed").add({setting.dataset, is_changed ? "Vanilla, transformed" : "Vanilla"}, values);
  }
  return reached;
}

// Gains over Vanilla in the three encodings of a dataset, which follow each other; --only may have left some out.
void add_gains(PaperRun& run) {
  const auto all = run.measured("er").by_setting();
  for (std::size_t i = 0; i + 2 < all.size(); ++i) {
    const Setting& setting = *all[i].front()->setting;
    if (setting.encoding != "one-hot" || all[i + 2].front()->setting->dataset != setting.dataset) continue;
    for (std::size_t m = 0; m < all[i].size(); ++m) {
      if (all[i][m]->method() == "Vanilla") continue;
      std::vector<Value> gains;
      for (std::size_t j = i; j < i + 3; ++j) {
        const MeasuredRow& vanilla = *run.measured("er").like(*all[j][m], {{"method", "Vanilla"}});
        gains.push_back(difference(all[j][m]->numbers[0], vanilla.numbers[0], run.seed));
      }
      run.table("gains over Vanilla").add({setting.dataset, all[i][m]->method()}, gains);
    }
  }
}

// How many of R2ET's gains, by their intervals, are left without the gauge.
void note_survivors(PaperRun& run) {
  const ResultTable& table = run.table("gains over Vanilla");
  int gains = 0, projected = 0, dropped = 0;
  for (const ResultTable::Row& row : table.rows) {
    if (!run.paper.method(row.keys[1]).is_r2et() || !surely_above(row.values[0], 0)) continue;
    ++gains;
    projected += surely_above(row.values[1], 0) ? 1 : 0;
    dropped += surely_above(row.values[2], 0) ? 1 : 0;
  }
  if (table.rows.empty()) return;
  run.context.note(
      fmt::format("R2ET variants have a gain over Vanilla with the whole interval above 0 in {} cases (dataset, variant, "
                  "activation) with one-hot columns as they are; it is left in {} of these when projected and in {} with one "
                  "level dropped",
                  gains, projected, dropped));
}

}  // namespace

void analyse_gauge(PaperRun& run) {
  std::vector<double> reached;
  for (const Setting& setting : run.settings) {
    if (setting.encoding != "one-hot" || run.networks(setting).empty()) continue;
    const std::vector<Group> groups =
        groups_with(run.networks(setting)[0].members[0].data->data.schema.groups, static_cast<std::size_t>(setting.k));
    if (groups.empty()) {
      run.context.note(fmt::format("{}: no one-hot groups have {} columns in all", setting.dataset, setting.k));
      continue;
    }
    for (const Group& group : groups) run.result.settings["groups"][setting.dataset].push_back(group.name);
    for (const double value : transform(run, setting, groups)) reached.push_back(value);
  }
  add_gains(run);
  note_survivors(run);
  if (!reached.empty())
    run.context.note(fmt::format("after the change P@8 without projection is {:.3f} in the mean over datasets and attacks",
                                 defined_mean(reached)));
}

}  // namespace holdfast::experiment::paper::r2et

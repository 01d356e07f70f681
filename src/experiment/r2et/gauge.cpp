// r2et/gauge: P@k for nothing. On valid rows the columns of a one-hot group add up to 1, so a constant c added to all of a
// group's columns in a unit of the first layer and taken from its bias changes no prediction on any valid row:
//     W_hj += c_h for j in the group,   b_h -= c_h,   c_h = C sign(v_h),   v the weights of the logit margin
// but it raises the gradient of these columns above all others. Done after training, on groups that have k columns in all, it
// makes the top k the same set everywhere, under every attack. Projecting the gradient to what valid rows can feel takes it away
// again. The second table asks which of the gains over Vanilla in table 1 survive that projection.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../judging.h"
#include "experiments.h"
#include "holdfast/core/torch.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kGaugeInfo{
    .name = "r2et/gauge", .summary = "a change of weights that no prediction feels makes P@8 = 1", .citation = kPaper};

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

class Gauge final : public Experiment {
 public:
  explicit Gauge(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "The one-hot gauge", .paper = kPaper};
    ResultTable table{.name = "transformed",
                      .caption =
                          "Vanilla as trained, and with the change that no prediction on a valid row feels. COMP: mean fall of "
                          "the probability without the most "
                          "important features, replaced by zero or by other rows' values.",
                      .keys = {"dataset", "network"},
                      .columns = {"largest change of a logit", "P@8, er", "P@8, mse", "P@8, gauntlet", "P@8 projected, er",
                                  "P@8 projected, gauntlet", "COMP, zero", "COMP, resampled"}};
    std::vector<double> reached;
    for (const Setting& setting : settings(context, Which::kTabularOneHot)) {
      static const std::vector<Method> vanilla{method("Vanilla")};
      const std::vector<Entry> entries = zoo(context, setting, vanilla, Chooser::kEr);
      if (entries.empty()) continue;
      const std::vector<Group> groups =
          groups_with(entries[0].members[0].data->data.schema.groups, static_cast<std::size_t>(setting.k));
      if (groups.empty()) {
        context.note(fmt::format("{}: no one-hot groups have {} columns in all", setting.dataset, setting.k));
        continue;
      }
      std::vector<std::string> names;
      for (const Group& group : groups) names.push_back(group.name);
      result.settings["groups"][setting.dataset] = names;
      add_rows(context, setting, entries[0].members, groups, table, reached);
    }
    result.tables = {table, survival(context)};
    note_survivors(context, result.tables.back());
    if (!reached.empty())
      context.note(fmt::format("after the change P@8 without projection is {:.3f} in the mean over datasets and attacks",
                               defined_mean(reached)));
    return result;
  }

 private:
  static void add_rows(ExperimentContext& context, const Setting& setting, const std::vector<Member>& members,
                       const std::vector<Group>& groups, ResultTable& table, std::vector<double>& reached) {
    std::vector<CellSubject> plain, moved;
    for (const Member& member : members) {
      plain.push_back(subject_of(setting, member));
      moved.push_back(plain.back());
      moved.back().model = make_model(transformed(*member.trained.model->network(), groups), member.data->data.schema.layout);
      moved.back().key += fmt::format("; gauge {} on the first groups with {} columns", kSize, setting.k);
    }
    const std::string strong = strong_attack(context);
    for (const bool changed : {false, true}) {
      const std::vector<CellSubject>& subjects = changed ? moved : plain;
      const auto attacked_by = [&](const std::string& attack, const std::string& explainer) {
        std::vector<Job> jobs;
        for (CellSubject subject : subjects) {
          subject.explainer = explainer;
          jobs.push_back(
              attack_job(subject, {.attack = attack, .metrics = {setting.top_k()}, .epsilon = setting.epsilon}, context.seed));
        }
        return attacked_value(context.compute(fmt::format("{}: {}", setting.name(), attack), jobs), context.seed);
      };
      const auto faithful = [&](const std::string& measure) {
        std::vector<Job> jobs;
        for (const CellSubject& subject : subjects) jobs.push_back(measure_job(subject, measure, setting.epsilon, context.seed));
        return plain_value(context.compute(fmt::format("{}: {}", setting.name(), measure), jobs), "values", context.seed);
      };
      const std::string bare = "saliency(project=none)", projected = "saliency(project=groups)";
      const std::vector<Value> values{changed ? logit_change(plain, moved) : Value{.value = 0},
                                      attacked_by(setting.er(), bare),
                                      attacked_by(setting.mse(), bare),
                                      attacked_by(strong, bare),
                                      attacked_by(setting.er(), projected),
                                      attacked_by(strong, projected),
                                      faithful("comp"),
                                      faithful("comp(remove=resample)")};
      if (changed) {
        for (std::size_t i = 1; i <= 3; ++i) reached.push_back(values[i].value);
      }
      table.add({setting.dataset, changed ? "Vanilla, transformed" : "Vanilla"}, values);
    }
  }

  // Over the rows that are attacked, in double precision.
  static Value logit_change(const std::vector<CellSubject>& plain, const std::vector<CellSubject>& moved) {
    double largest = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const at::Tensor inputs = rows_of(plain[i]).inputs.to(at::kDouble);
      const at::Tensor before = plain[i].model->in_double()->logits(inputs), after = moved[i].model->logits(inputs);
      largest = std::max(largest, (before - after).abs().max().item<double>());
    }
    return {.value = largest, .count = static_cast<std::int64_t>(plain.size())};
  }

  // Gain of P@k over Vanilla under er with one-hot columns as they are, projected, and with one level dropped.
  static ResultTable survival(ExperimentContext& context) {
    ResultTable table{
        .name = "gains over Vanilla",
        .caption = "P@8 minus Vanilla's under er, paired by seed, in each encoding: a gain in the first alone is the gauge's.",
        .keys = {"dataset", "method"},
        .columns = {"one-hot", "projected", "one level dropped"}};
    const std::vector<Setting> all = settings(context, Which::kTabular);
    for (std::size_t i = 0; i < all.size(); ++i) {
      // The three encodings of a dataset follow each other; --only may have left some out.
      if (i + 2 >= all.size() || all[i].encoding != "one-hot" || all[i + 2].dataset != all[i].dataset) continue;
      std::vector<std::vector<Value>> gains;  // by encoding and method
      std::vector<const Method*> methods;
      for (std::size_t j = i; j < i + 3; ++j) gains.push_back(gains_over_vanilla(context, all[j], methods));
      if (gains.front().empty()) continue;
      for (std::size_t m = 0; m < methods.size(); ++m)
        table.add({all[i].dataset, methods[m]->name}, {gains[0][m], gains[1][m], gains[2][m]});
    }
    return table;
  }

  // How many of R2ET's gains, by their intervals, are left without the gauge.
  static void note_survivors(ExperimentContext& context, const ResultTable& table) {
    int gains = 0, projected = 0, dropped = 0;
    for (const ResultTable::Row& row : table.rows) {
      if (!method(row.keys[1]).is_r2et() || !surely_above(row.values[0], 0)) continue;
      ++gains;
      projected += surely_above(row.values[1], 0) ? 1 : 0;
      dropped += surely_above(row.values[2], 0) ? 1 : 0;
    }
    if (table.rows.empty()) return;
    context.note(
        fmt::format("R2ET variants have a gain over Vanilla with the whole interval above 0 in {} cases (dataset, variant, "
                    "activation) with one-hot columns as they are; it is left in {} of these when projected and in {} with one "
                    "level dropped",
                    gains, projected, dropped));
  }

  static std::vector<Value> gains_over_vanilla(ExperimentContext& context, const Setting& setting,
                                               std::vector<const Method*>& methods) {
    const std::vector<Entry> entries = zoo(context, setting, paper_methods(), Chooser::kEr);
    if (entries.empty()) return {};
    const Cells er = compute(context, setting.name() + ": er", entries, [&](const Member& member) {
      return attack_cell(setting, member, setting.er(), Select::kLast, context.seed);
    });
    const auto vanilla = static_cast<std::size_t>(find(entries, "Vanilla") - entries.data());
    std::vector<Value> gains;
    methods.clear();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i == vanilla) continue;
      methods.push_back(entries[i].method);
      gains.push_back(difference_over_seeds(metric_values(er[i]), metric_values(er[vanilla]), context.seed));
    }
    return gains;
  }
};

}  // namespace

void add_gauge(Registry<Experiment>& registry) {
  registry.add<Gauge>(kGaugeInfo);
}

}  // namespace holdfast::r2et

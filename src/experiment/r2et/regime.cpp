// r2et/regime: P@k over what the paper leaves open: optimiser, batch, width and the number of optimiser steps, which is read from
// snapshots of one training.
#include "regime.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "claims.h"

namespace holdfast::experiment::paper::r2et {
namespace {

constexpr std::size_t kShownPlaces = 5;  // of the regimes that keep the AUC, and of the others

// A training: one method with one of its weights, on one table.
struct RegimeTraining {
  Regime regime;  // without steps
  Method method;
  std::string weights;
};

// The networks of one training after so many steps, one for each seed.
struct Measured {
  Regime regime;
  Method method;
  std::string weights;
  Numbers kept;
  std::vector<double> areas = {};  // AUC on validation samples
  bool works = true;
  bool is_admissible = true;

  double area() const { return defined_mean(areas); }
  double kept_mean() const { return defined_mean(kept.means()); }
};

// What was measured on one table.
struct TableResults {
  const Setting* setting;
  std::vector<Measured> all = {};

  std::vector<const Measured*> of(const Regime& regime, const std::string& method) const {
    std::vector<const Measured*> found;
    for (const Measured& one : all) {
      if (one.regime == regime && one.method.name == method) found.push_back(&one);
    }
    return found;
  }
};

// Which trainings of the grid are made.
using Wanted = std::function<bool(const Method&, const Regime&)>;

bool is_vanilla(const Method& method) {
  return method.name == "Vanilla";
}

// The expensive ones first, so that no thread is left with one at the end.
std::vector<RegimeTraining> trainings_of(const PaperRun& run, const Setting& setting, const Wanted& wanted) {
  const std::vector<std::string>&batches = run.plan.factor("batch"), &widths = run.plan.factor("width");
  std::vector<RegimeTraining> all;
  for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) {
    for (auto width = widths.rbegin(); width != widths.rend(); ++width) {
      std::vector<Method> methods = methods_for(setting, run.plan.methods);
      std::ranges::reverse(methods);
      for (const Method& method : methods) {
        for (const std::string& optimizer : run.plan.factor("optimizer")) {
          if (!wanted(method, {optimizer, *batch, *width})) continue;
          const bool has_weights = std::ranges::find(run.plan.factors, method.name, &Factor::name) != run.plan.factors.end();
          for (const std::string& weights : has_weights ? run.plan.factor(method.name) : std::vector<std::string>{""})
            all.push_back({{optimizer, *batch, *width}, method, weights});
        }
      }
    }
  }
  return all;
}

// The snapshots that lie within the paper's maximal number of epochs.
TrainOptions options_of(const PaperRun& run, const Setting& setting, const RegimeTraining& one, const Dataset& data,
                        std::uint64_t seed) {
  Setting own = setting;
  own.optimizer = one.regime.optimizer;
  own.batch_size = one.regime.batch == "all" ? std::ssize(data.train) : std::stoll(one.regime.batch);
  own.architecture = fmt::format("mlp(hidden={})", one.regime.width);
  const auto an_epoch = static_cast<std::int64_t>(epoch_batches(data.train, own.batch_size, 0, 0).size());
  std::vector<std::int64_t> snapshots;
  for (const std::string& text : run.plan.factor("steps")) {
    if (const std::int64_t step = std::stoll(text); step <= setting.epochs * an_epoch) snapshots.push_back(step);
  }
  const std::int64_t steps = snapshots.empty() ? an_epoch : snapshots.back();
  TrainOptions options = training(own, one.method, one.weights, (steps + an_epoch - 1) / an_epoch, seed);
  options.snapshots = snapshots;
  return options;
}

// Trains on one table and attacks every snapshot on validation samples.
void measure_table(PaperRun& run, TableResults& results, const Wanted& wanted) {
  const Setting& setting = *results.setting;
  const std::shared_ptr<const ExperimentData> data = run.context.dataset(setting.data);
  const std::vector<RegimeTraining> trainings = trainings_of(run, setting, wanted);
  const auto seeds = static_cast<std::size_t>(setting.members);
  std::vector<TrainedModel> trained;
  for (std::vector<TrainedModel>&all : train_members(
           run.context, *data, setting, trainings.size(),
           [&](std::size_t i, std::uint64_t member) {
             return options_of(run, setting, trainings[i], data->data, run.seed + kChoiceSeeds + member);
           },
           setting.name + ": training"))
    std::ranges::move(all, std::back_inserter(trained));
  const std::string metric = setting.fill("top_k(k={k})");
  const PaperAttack attack = attack_of(setting, setting.fill(run.paper.call("er")), {metric}, "last");
  CellBatch batch(run.seed);
  for (const TrainedModel& model : trained) {
    for (const TrainedModel& snapshot : model.snapshots) {
      StudiedNetwork subject = subject_of(setting, {data, snapshot});
      subject.rows = first_rows(data->data, "validation", setting.samples);
      batch.attack(subject, attack);
    }
  }
  batch.run(run.context, setting.name + ": er");

  std::size_t cell = 0;
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    const std::size_t steps = trained[i * seeds].snapshots.size();
    std::vector<std::vector<AttackedCell>> cells(steps);
    std::vector<Measured> own(steps);
    for (std::size_t seed = 0; seed < seeds; ++seed) {
      for (std::size_t j = 0; j < steps; ++j) {
        const TrainedModel& snapshot = trained[i * seeds + seed].snapshots[j];
        cells[j].push_back(batch.attacked(cell++));
        own[j].areas.push_back(snapshot.validation->auc.mean);
        own[j].works = own[j].works && snapshot.validation->auc.low > kLeastAuc;
        own[j].regime = trainings[i].regime;
        own[j].regime.steps = snapshot.step;
      }
    }
    for (std::size_t j = 0; j < steps; ++j) {
      own[j].method = trainings[i].method;
      own[j].weights = trainings[i].weights;
      own[j].kept = numbers_of(std::move(cells[j]), metric);
      results.all.push_back(std::move(own[j]));
    }
  }
}

// Of a method's weights the one with the highest P@k among those whose AUC is within kAucLoss of Vanilla's in the same regime.
void choose_weights(TableResults& results) {
  std::vector<Measured> chosen;
  for (const Measured& one : results.all) {
    const std::vector<const Measured*> weights = results.of(one.regime, one.method.name);
    if (weights.front() != &one) continue;
    const double vanilla = results.of(one.regime, "Vanilla").front()->area();
    std::vector<WeightScore> scores;
    for (const Measured* each : weights) scores.push_back({0, each->weights, each->area(), each->kept_mean()});
    const ChosenWeight best = best_weights(scores, 1, vanilla - kAucLoss).front();
    chosen.push_back(**std::ranges::find(weights, best.weights, [](const Measured* each) { return each->weights; }));
    chosen.back().is_admissible = best.is_admissible;
  }
  results.all = std::move(chosen);
}

std::vector<RegimeFit> fits_of(const PaperRun& run, const std::vector<TableResults>& tables) {
  std::vector<RegimeFit> fits;
  for (const TableResults& table : tables) {
    for (const Measured& one : table.all) {
      if (one.method.name != "Vanilla") continue;
      auto place = std::ranges::find(fits, one.regime, &RegimeFit::regime);
      if (place == fits.end()) place = fits.insert(fits.end(), {one.regime, {}});
      const std::optional<double> published = run.paper.published("er", "Vanilla", table.setting->dataset);
      place->tables.push_back({table.setting->dataset, one.kept, published.value_or(kUndefined), one.area(), one.works});
    }
  }
  return fits;
}

Value kept_value(const Numbers& numbers, std::optional<double> published, std::uint64_t seed) {
  Value value = value_of(numbers, seed);
  value.published = published;
  return value;
}

void add_nearest(PaperRun& run, const std::vector<RegimeFit>& fits) {
  std::map<bool, std::size_t> shown;
  for (const RegimeFit& fit : fits) {
    if (shown[fit.keeps_auc()]++ >= kShownPlaces) continue;
    for (const VanillaOnTable& table : fit.tables)
      run.table("nearest").add({fit.keeps_auc() ? "yes" : "no", fit.regime.optimizer, fit.regime.batch, fit.regime.width,
                                fmt::format("{}", fit.regime.steps), table.dataset},
                               {kept_value(table.kept, table.published, run.seed),
                                {.value = table.difference()},
                                {.value = fit.distance()},
                                {.value = table.area},
                                {.value = fit.lost}});
  }
}

// "gap=0.1", "no admissible weight (gap=0.01)", "loses AUC".
std::string weights_in_words(const Measured& one) {
  if (one.is_admissible) return one.weights;
  return one.weights.empty() ? kLosesAuc : fmt::format("{} ({})", kNoWeight, one.weights);
}

// All methods with the nearest regime.
void add_methods(PaperRun& run, const std::vector<TableResults>& tables, const Regime& nearest) {
  for (const TableResults& table : tables) {
    for (const Method& method : methods_for(*table.setting, run.plan.methods)) {
      for (const Measured* one : table.of(nearest, method.name)) {
        const std::optional<double> published = run.paper.published("er", method.paper, table.setting->dataset);
        run.table("methods").add({table.setting->dataset, method.name, weights_in_words(*one)},
                                 {kept_value(one->kept, published, run.seed), share(over_seeds(one->areas)),
                                  difference_over_seeds(one->areas, table.of(nearest, "Vanilla").front()->areas)});
      }
    }
  }
}

// Vanilla where one of the four is not as in the nearest regime.
void add_factors(PaperRun& run, const std::vector<TableResults>& tables, const Regime& nearest) {
  const std::vector<std::pair<std::string, std::string Regime::*>> words{
      {"optimizer", &Regime::optimizer}, {"batch", &Regime::batch}, {"width", &Regime::width}};
  for (const TableResults& table : tables) {
    const auto add = [&](const std::string& factor, const std::string& level, const Regime& regime) {
      for (const Measured* one : table.of(regime, "Vanilla"))
        run.table("factors").add({table.setting->dataset, factor, level},
                                 {kept_value(one->kept, {}, run.seed), share(over_seeds(one->areas))});
    };
    for (const auto& [factor, word] : words) {
      for (const std::string& level : run.plan.factor(factor)) {
        Regime regime = nearest;
        regime.*word = level;
        add(factor, level, regime);
      }
    }
    for (const std::string& level : run.plan.factor("steps")) {
      Regime regime = nearest;
      regime.steps = std::stoll(level);
      add("steps", level, regime);
    }
  }
}

// P@k against steps: all methods with the batch and the width of the nearest regime, and Vanilla with all others.
void draw_steps(PaperRun& run, const std::vector<TableResults>& tables, const Regime& nearest) {
  const auto drawn = [](double number) { return std::isnan(number) ? Json() : Json(std::round(number * 1e4) / 1e4); };
  Json points = Json::array();
  for (const TableResults& table : tables) {
    for (const Measured& one : table.all) {
      const bool is_near = one.regime.batch == nearest.batch && one.regime.width == nearest.width;
      const std::optional<double> published = run.paper.published("er", one.method.paper, table.setting->dataset);
      points.push_back({{"dataset", table.setting->dataset},
                        {"method", one.method.name},
                        {"weights", one.weights},
                        {"optimizer", one.regime.optimizer},
                        {"batch", one.regime.batch},
                        {"width", one.regime.width},
                        {"steps", one.regime.steps},
                        {"near", is_near},
                        {"admissible", one.is_admissible},
                        {"value", drawn(one.kept_mean())},
                        {"AUC", drawn(one.area())},
                        {"paper", drawn(published.value_or(kUndefined))}});
    }
  }
  run.draw("steps", points);
}

}  // namespace

std::string Regime::words() const {
  return fmt::format("{}, batch {}, width {}, {} steps", optimizer, batch, width, steps);
}

double VanillaOnTable::difference() const {
  return defined_mean(kept.means()) - published;
}

double RegimeFit::distance() const {
  double sum = 0;
  for (const VanillaOnTable& table : tables) sum += std::abs(table.difference());
  return sum / static_cast<double>(tables.size());
}

bool RegimeFit::works() const {
  return std::ranges::all_of(tables, &VanillaOnTable::works);
}

std::vector<RegimeFit> ranked(std::vector<RegimeFit> fits) {
  std::size_t all = 0;
  std::map<std::string, double> best;  // AUC, by table
  for (const RegimeFit& fit : fits) {
    all = std::max(all, fit.tables.size());
    for (const VanillaOnTable& table : fit.tables) best[table.dataset] = std::max(best[table.dataset], table.area);
  }
  std::erase_if(fits, [&](const RegimeFit& fit) { return fit.tables.size() < all || !fit.works(); });
  for (RegimeFit& fit : fits) {
    for (const VanillaOnTable& table : fit.tables) fit.lost = std::max(fit.lost, best[table.dataset] - table.area);
  }
  std::ranges::stable_sort(fits, {}, [](const RegimeFit& fit) { return std::pair(!fit.keeps_auc(), fit.distance()); });
  return fits;
}

Value distance(const VanillaOnTable& table, std::uint64_t seed) {
  const Value kept = value_of(table.kept, seed);
  Value result{.value = std::abs(table.difference()), .count = kept.count};
  if (!kept.low || !kept.high) return result;
  const double low = *kept.low - table.published, high = *kept.high - table.published;
  result.low = std::max({0.0, low, -high});
  result.high = std::max(std::abs(low), std::abs(high));
  return result;
}

Finding judge_regime(const RegimeFit& nearest, double near, std::uint64_t seed) {
  std::vector<ClaimPart> parts;
  std::vector<Case> cases;
  Value furthest{.value = -1};
  for (const VanillaOnTable& table : nearest.tables) {
    const Value away = distance(table, seed);
    parts.push_back(part_below(table.dataset, away, near));
    cases.push_back({table.dataset, value_of(table.kept, seed)});
    if (away.value > furthest.value) furthest = away;
  }
  return found_in(parts, {{"regime", nearest.regime.words()}, {"near", fmt::format("{}", near)}, {"tables", words(cases)}},
                  furthest);
}

void analyse_regime(PaperRun& run) {
  std::vector<TableResults> tables;
  for (const Setting& setting : run.settings) {
    if (!run.context.dataset(setting.data)) continue;
    tables.push_back({&setting});
    measure_table(run, tables.back(), [](const Method& method, const Regime&) { return is_vanilla(method); });
  }
  const std::vector<RegimeFit> fits = ranked(fits_of(run, tables));
  if (fits.empty()) return;
  const Regime& nearest = fits.front().regime;
  const bool everywhere = run.plan.factor("other methods").front() == "everywhere";
  for (TableResults& table : tables) {
    measure_table(run, table, [&](const Method& method, const Regime& regime) {
      return !is_vanilla(method) && (everywhere || (regime.batch == nearest.batch && regime.width == nearest.width));
    });
    choose_weights(table);
  }
  run.result.settings["nearest"] = {
      {"optimizer", nearest.optimizer}, {"batch", nearest.batch}, {"width", nearest.width}, {"steps", nearest.steps}};
  add_nearest(run, fits);
  add_methods(run, tables, nearest);
  add_factors(run, tables, nearest);
  draw_steps(run, tables, nearest);
  Finding found = judge_regime(fits.front(), run.claim("regime").limits[0], run.seed);
  const RegimeFit& any = *std::ranges::min_element(fits, {}, &RegimeFit::distance);
  found.words["any"] =
      fmt::format("{:.3f} in the mean over the tables with {}, AUC lost {:.3f}", any.distance(), any.regime.words(), any.lost);
  run.judge("regime", found, run.fewest_members());
}

}  // namespace holdfast::experiment::paper::r2et

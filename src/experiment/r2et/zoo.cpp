#include "zoo.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "holdfast/core/torch.h"

namespace holdfast::r2et {
namespace {

const std::vector<std::string>& grid_of(const Method& method, const Setting& setting) {
  return setting.tabular ? method.grid : method.other_grid;
}

// A network of the grid: the position of its method and its weights.
struct GridPoint {
  std::size_t method;
  std::string weights;
};

std::vector<GridPoint> candidates(const std::vector<const Method*>& methods, const Setting& setting, bool quick) {
  std::vector<GridPoint> all;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const std::vector<std::string>& grid = grid_of(*methods[i], setting);
    const std::size_t tried = quick ? std::min<std::size_t>(grid.size(), 2) : grid.size();
    for (std::size_t j = 0; j < tried; ++j) all.push_back({i, grid[j]});
  }
  return all;
}

double validation_auc(const TrainedModel& trained) {
  return trained.validation ? trained.validation->auc.mean : std::nan("");
}

// P@k, where a map that is zero everywhere counts as lost: a network that explains nothing must not be chosen for it.
double kept_share(const Json& cell) {
  const std::vector<double> values = numbers(cell.at("metrics")[0].at("values"));
  double sum = 0;
  for (const double value : values) sum += std::isnan(value) ? 0 : value;
  return sum / static_cast<double>(values.size());
}

// Chosen weights for each method, by kChoiceRule.
std::vector<std::string> choose(ExperimentContext& context, const Setting& setting, const std::vector<const Method*>& methods,
                                const std::shared_ptr<const ExperimentData>& data, Chooser chooser) {
  std::vector<std::string> chosen(methods.size());
  const std::vector<GridPoint> grid = candidates(methods, setting, context.quick());
  if (!setting.choose) {
    context.note(fmt::format("{}: weights are not chosen at this scale, the first of each grid is taken", setting.name()));
    for (std::size_t i = 0; i < methods.size(); ++i) {
      if (!grid_of(*methods[i], setting).empty()) chosen[i] = grid_of(*methods[i], setting).front();
    }
  }
  if (!setting.choose || grid.empty()) return chosen;
  std::vector<TrainOptions> options{training(setting, method("Vanilla"), "", setting.short_epochs, context.seed)};
  for (const GridPoint& one : grid)
    options.push_back(training(setting, *methods[one.method], one.weights, setting.short_epochs, context.seed));
  const std::vector<TrainedModel> trained =
      context.train(*data, options, fmt::format("{}: weights to choose from", setting.name()));

  Setting on_validation = setting;
  on_validation.samples = setting.choice_samples;
  const std::string attack = chooser == Chooser::kEr ? setting.er() : "gauntlet(effort=light)";
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    CellSubject subject = subject_of(on_validation, {data, trained[i + 1]});
    subject.part = "validation";
    jobs.push_back(attack_job(subject,
                              {.attack = attack,
                               .metrics = {setting.top_k()},
                               .epsilon = setting.epsilon,
                               .select = chooser == Chooser::kEr ? Select::kLast : Select::kWorst},
                              context.seed));
  }
  const std::vector<Json> cells = context.compute(fmt::format("{}: choosing weights", setting.name()), jobs);

  const double least = validation_auc(trained.front()) - kAucLoss;
  std::vector<std::pair<bool, double>> best(methods.size(), {false, -1});  // within the loss; P@k, or AUC where none is within
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const double area = validation_auc(trained[i + 1]);
    const bool within = area >= least;
    const std::pair score(within, within ? kept_share(cells[i]) : area);
    if (score <= best[grid[i].method]) continue;
    best[grid[i].method] = score;
    chosen[grid[i].method] = grid[i].weights;
  }
  return chosen;
}

}  // namespace

CellSubject subject_of(const Setting& setting, const Member& member) {
  return {.model = member.trained.model,
          .key = member.trained.key,
          .data = member.data,
          .explainer = setting.saliency(),
          .samples = setting.samples};
}

std::vector<Entry> zoo(ExperimentContext& context, const Setting& setting, const std::vector<Method>& methods, Chooser chooser) {
  const auto first = context.dataset(setting.call);
  if (!first) return {};
  const std::vector<const Method*> fitting = methods_for(setting, methods);
  const std::vector<std::string> weights = choose(context, setting, fitting, first, chooser);

  std::vector<Entry> entries;
  for (std::size_t i = 0; i < fitting.size(); ++i) entries.push_back({fitting[i], weights[i], {}});
  const std::string label = fmt::format("{}: training", setting.name());
  const auto train = [&](const std::shared_ptr<const ExperimentData>& data, const std::vector<std::uint64_t>& seeds) {
    std::vector<TrainOptions> options;
    for (const Entry& entry : entries) {
      for (const std::uint64_t seed : seeds)
        options.push_back(training(setting, *entry.method, entry.weights, setting.epochs, seed));
    }
    std::vector<TrainedModel> trained = context.train(*data, options, label);
    for (std::size_t i = 0; i < trained.size(); ++i) entries[i / seeds.size()].members.push_back({data, std::move(trained[i])});
  };
  if (setting.folds) {
    for (std::int64_t fold = 0; fold < setting.members; ++fold) train(context.dataset(setting.call, 0, fold), {context.seed});
  } else {
    std::vector<std::uint64_t> seeds;
    for (std::int64_t i = 0; i < setting.members; ++i) seeds.push_back(context.seed + static_cast<std::uint64_t>(i));
    train(first, seeds);
  }
  return entries;
}

const Entry* find(const std::vector<Entry>& entries, const std::string& name) {
  for (const Entry& entry : entries) {
    if (entry.method->name == name) return &entry;
  }
  return nullptr;
}

Json chosen_weights(const std::vector<Entry>& entries) {
  Json chosen = Json::object();
  for (const Entry& entry : entries) {
    if (!entry.weights.empty()) chosen[entry.method->name] = entry.weights;
  }
  return chosen;
}

Cells compute(ExperimentContext& context, const std::string& label, const std::vector<Entry>& entries,
              const std::function<Job(const Member&)>& job) {
  std::vector<Job> jobs;
  for (const Entry& entry : entries) {
    for (const Member& member : entry.members) jobs.push_back(job(member));
  }
  const std::vector<Json> results = context.compute(label, jobs);
  Cells cells;
  std::size_t next = 0;
  for (const Entry& entry : entries) {
    const auto begin = results.begin() + static_cast<std::ptrdiff_t>(next);
    next += entry.members.size();
    cells.emplace_back(begin, results.begin() + static_cast<std::ptrdiff_t>(next));
  }
  return cells;
}

Job attack_cell(const Setting& setting, const Member& member, const std::string& attack, Select select, std::uint64_t seed) {
  std::vector<std::string> metrics{setting.top_k(), "l2"};
  if (setting.other_k > 0) metrics.push_back(fmt::format("top_k(k={})", setting.other_k));
  return attack_job(subject_of(setting, member),
                    {.attack = attack, .metrics = std::move(metrics), .epsilon = setting.epsilon, .select = select}, seed);
}

std::vector<std::vector<double>> metric_values(const std::vector<Json>& cells, const char* field, std::size_t index) {
  std::vector<std::vector<double>> values;
  for (const Json& cell : cells) values.push_back(numbers(cell.at("metrics")[index].at(field)));
  return values;
}

Value attacked_value(const std::vector<Json>& cells, std::uint64_t seed, std::size_t index) {
  Value value = share(over_seeds(metric_values(cells, "values", index), seed));
  const auto mean_of = [&](const char* field) -> std::optional<double> {
    std::vector<double> levels;
    for (const Json& cell : cells) {
      const Json& level = cell.at("metrics")[index].at(field);
      levels.push_back(level.is_null() ? std::nan("") : level.get<double>());
    }
    const double mean = defined_mean(levels);
    return std::isnan(mean) ? std::nullopt : std::optional(mean);
  };
  value.chance = mean_of("chance");
  value.between = mean_of("between");
  if (value.between && *value.between < 1) value.specific = (value.value - *value.between) / (1 - *value.between);
  return value;
}

Value plain_value(const std::vector<Json>& cells, const std::string& key, std::uint64_t seed) {
  std::vector<std::vector<double>> by_member;
  for (const Json& cell : cells) {
    const Json& found = cell.at(key);
    by_member.push_back(numbers(found.is_array() ? found : Json::array({found})));
  }
  return share(over_seeds(by_member, seed));
}

void add_counts(std::vector<Value>& values, const std::vector<Json>& cells) {
  double counted = 0, undefined = 0;
  for (const std::vector<double>& samples : metric_values(cells)) {
    for (const double sample : samples) (std::isnan(sample) ? undefined : counted) += 1;
  }
  values.insert(values.end(), {{.value = counted}, {.value = undefined}});
}

Value test_auc(const Entry& entry) {
  std::vector<double> areas;
  for (const Member& member : entry.members) areas.push_back(member.trained.test ? member.trained.test->auc.mean : std::nan(""));
  return share(over_seeds(areas));
}

}  // namespace holdfast::r2et

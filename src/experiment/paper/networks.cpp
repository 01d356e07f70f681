#include "networks.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "numbers.h"

namespace holdfast::experiment::paper {
namespace {

using Data = std::shared_ptr<const ExperimentData>;

const std::vector<std::string>& grid_of(const Method& method, const Setting& setting) {
  return setting.is_table() ? method.grid : method.other_grid;
}

bool takes(const MethodInfo& recipe, const std::string& option) {
  return std::ranges::any_of(recipe.options, [&](const OptionSpec& spec) { return spec.name == option; });
}

// The paper's rate of the residual networks is a tenth in the first 500 of 70,000 steps and after 60,000; here it rises in a line
// over the first 500.
std::string schedule_of(const Setting& setting, std::int64_t an_epoch) {
  if (setting.schedule != "residual") return setting.schedule;
  return fmt::format("step(at={},warmup={})", 60000 / an_epoch, 500.0 / static_cast<double>(an_epoch));
}

// The setting's training for a number of steps: as many whole epochs as come nearest.
TrainOptions step_training(const Setting& setting, const Method& method, const ExperimentData& data, std::uint64_t seed) {
  const auto an_epoch = static_cast<std::int64_t>(epoch_batches(data.data.train, setting.batch_size, 0, 0).size());
  const std::int64_t steps =
      method.name == "natural" && setting.natural_steps > 0 ? setting.natural_steps : setting.training_steps;
  TrainOptions options = training(setting, method, "", std::max<std::int64_t>(1, (steps + an_epoch / 2) / an_epoch), seed);
  options.schedule = schedule_of(setting, an_epoch);
  return options;
}

double validation_auc(const TrainedModel& trained) {
  return trained.validation ? trained.validation->auc.mean : kUndefined;
}

// P@k, where a map that is zero everywhere counts as lost: a network that explains nothing must not be chosen for it.
double kept_share(const AttackedCell& cell) {
  double sum = 0;
  for (const double value : cell.metrics.front().values) sum += std::isnan(value) ? 0 : value;
  return sum / static_cast<double>(cell.metrics.front().values.size());
}

// Weights of a method that are tried.
struct Candidate {
  std::size_t method;
  std::string weights;
};

std::vector<Candidate> candidates_of(const std::vector<Method>& methods, const Setting& setting, bool quick) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const std::vector<std::string>& grid = grid_of(methods[i], setting);
    for (std::size_t j = 0; j < (quick ? std::min<std::size_t>(grid.size(), 2) : grid.size()); ++j) all.push_back({i, grid[j]});
  }
  return all;
}

// The cells of the candidates under the choice's attack, on validation samples.
std::vector<AttackedCell> try_candidates(ExperimentContext& context, const Choice& choice, const Setting& setting,
                                         const Data& data, const std::vector<TrainedModel>& trained) {
  CellBatch batch(context.seed);
  for (std::size_t i = 1; i < trained.size(); ++i) {
    StudiedNetwork subject = subject_of(setting, {data, trained[i]});
    subject.rows = first_rows(data->data, "validation", setting.choice_samples);
    batch.attack(subject, attack_of(setting, setting.fill(choice.attack), {setting.fill("top_k(k={k})")}, choice.select));
  }
  batch.run(context, fmt::format("{}: choosing weights", setting.name));
  std::vector<AttackedCell> cells;
  for (std::size_t i = 1; i < trained.size(); ++i) cells.push_back(batch.attacked(i - 1));
  return cells;
}

std::vector<std::string> choose_weights(ExperimentContext& context, const Paper& paper, const Setting& setting,
                                        const std::vector<Method>& methods, const Data& data, const std::string& choice_name) {
  std::vector<std::string> chosen(methods.size());
  const std::vector<Candidate> candidates = candidates_of(methods, setting, context.quick());
  if (choice_name.empty() || candidates.empty()) return chosen;
  if (setting.weights == "first") {
    context.note(fmt::format("{}: weights are not chosen at this scale, the first of each grid is taken", setting.name));
    for (std::size_t i = 0; i < methods.size(); ++i) {
      if (!grid_of(methods[i], setting).empty()) chosen[i] = grid_of(methods[i], setting).front();
    }
    return chosen;
  }
  const auto choice = std::ranges::find(paper.choices, choice_name, &Choice::name);
  if (choice == paper.choices.end()) usage_error("{} has no choice '{}'", paper.name, choice_name);
  std::vector<TrainOptions> options{training(setting, paper.method("Vanilla"), "", setting.short_epochs, context.seed)};
  for (const Candidate& one : candidates)
    options.push_back(training(setting, methods[one.method], one.weights, setting.short_epochs, context.seed));
  const std::vector<TrainedModel> trained =
      context.train(*data, options, fmt::format("{}: weights to choose from", setting.name));
  const std::vector<AttackedCell> cells = try_candidates(context, *choice, setting, data, trained);

  const double least = validation_auc(trained.front()) - kAucLoss;
  std::vector<std::pair<bool, double>> best(methods.size(), {false, -1});  // within the loss; P@k, or AUC where none is within
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double area = validation_auc(trained[i + 1]);
    const bool within = area >= least;
    const std::pair score(within, within ? kept_share(cells[i]) : area);
    if (score <= best[candidates[i].method]) continue;
    best[candidates[i].method] = score;
    chosen[candidates[i].method] = candidates[i].weights;
  }
  return chosen;
}

// Published weights as the one network of a method.
std::vector<MethodNetworks> published_network(const ExperimentContext& context, const Setting& setting, const Data& data) {
  TrainedModel loaded;
  const std::string file = model_file(setting.model);
  loaded.key = setting.model;
  if (!file.empty() && file_exists(file)) loaded.key += ", content " + sha256_of_file(file).substr(0, 16);
  loaded.model = load_model(setting.model, context.device);
  MethodNetworks networks{.method = {.name = setting.training, .paper = setting.training, .recipe = ""}};
  networks.members.push_back({data, std::move(loaded)});
  return {networks};
}

}  // namespace

const MethodNetworks* find(const std::vector<MethodNetworks>& networks, const std::string& method) {
  const auto found = std::ranges::find_if(networks, [&](const MethodNetworks& one) { return one.method.name == method; });
  return found == networks.end() ? nullptr : &*found;
}

std::vector<Method> methods_for(const Setting& setting, const std::vector<Method>& methods) {
  std::vector<Method> fitting;
  for (const Method& one : methods) {
    if (applies(one.only, setting, one)) fitting.push_back(one);
  }
  return fitting;
}

std::string recipe_call(const Method& method, const Setting& setting, const std::string& weights) {
  if (method.recipe.find('(') != std::string::npos) return setting.fill(method.recipe);
  const MethodInfo& recipe = recipes().info(method.recipe);
  std::vector<std::string> options;
  if (takes(recipe, "top_k")) options.push_back(fmt::format("top_k={}", setting.k));
  if (takes(recipe, "project") && setting.encoding == "one-hot") options.emplace_back("project=none");
  if (takes(recipe, "count") && setting.pairs > 0) options.push_back(fmt::format("count={}", setting.pairs));
  if (!method.options.empty()) options.push_back(method.options);
  if (!weights.empty()) options.push_back(weights);
  return options.empty() ? method.recipe : fmt::format("{}({})", method.recipe, fmt::join(options, ","));
}

TrainOptions training(const Setting& setting, const Method& method, const std::string& weights, std::int64_t epochs,
                      std::uint64_t seed) {
  TrainOptions options{.architecture = method.architecture.empty() ? setting.architecture : method.architecture,
                       .recipe = recipe_call(method, setting, weights),
                       .epochs = epochs,
                       .batch_size = setting.batch_size,
                       .optimizer = setting.optimizer,
                       .learning_rate = setting.learning_rate,
                       .early_stopping = {.restore_best = false},  // the papers': a fixed number of epochs
                       .seed = seed};
  if (method.best_epoch) options.early_stopping = {.metric = "auc"};
  if (!std::isnan(setting.weight_decay)) options.weight_decay = setting.weight_decay;
  return options;
}

std::shared_ptr<const ExperimentData> data_of(ExperimentContext& context, const Setting& setting) {
  const auto whole = context.dataset(setting.data);
  const auto wanted = static_cast<std::size_t>(setting.training_samples);
  if (!whole || wanted == 0 || whole->data.train.size() <= wanted) return whole;
  ExperimentData part = *whole;
  part.data.train.resize(wanted);
  part.key += fmt::format(", first {} training samples", wanted);
  return std::make_shared<const ExperimentData>(std::move(part));
}

std::vector<MethodNetworks> train_networks(ExperimentContext& context, const Paper& paper, const Setting& setting,
                                           const std::vector<Method>& methods, const std::string& choice) {
  const Data first = data_of(context, setting);
  if (!first) return {};
  if (!setting.model.empty()) return published_network(context, setting, first);
  const std::vector<Method> fitting = methods_for(setting, methods);
  const std::vector<std::string> weights = choose_weights(context, paper, setting, fitting, first, choice);
  std::vector<MethodNetworks> all;
  for (std::size_t i = 0; i < fitting.size(); ++i) all.push_back({fitting[i], weights[i], {}});
  const auto train = [&](const Data& data, const std::vector<std::uint64_t>& seeds) {
    std::vector<TrainOptions> options;
    for (const MethodNetworks& one : all) {
      for (const std::uint64_t seed : seeds)
        options.push_back(setting.training_steps > 0 ? step_training(setting, one.method, *data, seed)
                                                     : training(setting, one.method, one.weights, setting.epochs, seed));
    }
    std::vector<TrainedModel> trained = context.train(*data, options, fmt::format("{}: training", setting.name));
    for (std::size_t i = 0; i < trained.size(); ++i) all[i / seeds.size()].members.push_back({data, std::move(trained[i])});
  };
  if (setting.members_are == "folds") {
    for (std::int64_t fold = 0; fold < setting.members; ++fold) train(context.dataset(setting.data, 0, fold), {context.seed});
    return all;
  }
  std::vector<std::uint64_t> seeds;
  for (std::int64_t i = 0; i < setting.members; ++i) seeds.push_back(context.seed + static_cast<std::uint64_t>(i));
  train(first, seeds);
  return all;
}

StudiedNetwork subject_of(const Setting& setting, const Member& member, std::int64_t samples) {
  const Dataset& data = member.data->data;
  const std::int64_t count = samples > 0 ? std::min(samples, setting.samples) : setting.samples;
  return {.model = member.trained.model,
          .key = member.trained.key,
          .data = member.data,
          .explainer = setting.fill(setting.explainer),
          .rows = setting.samples_are == "spread"  ? spread_rows(data, count)
                  : setting.samples_are == "right" ? right_rows(*member.trained.model, data, count)
                                                   : first_rows(data, "test", count),
          .explains_labels = setting.explained == "labels"};
}

AttackChoice attack_of(const Setting& setting, const std::string& attack, const std::vector<std::string>& metrics,
                       const std::string& select) {
  AttackChoice choice{.attack = attack,
                      .aim = {},
                      .metrics = metrics,
                      .norm = parse_norm(setting.norm),
                      .epsilon = setting.epsilon,
                      .select = select.empty() ? Select::kWorst : parse_select(select)};
  if (!setting.box.empty() && setting.box != "unit")
    usage_error("setting '{}': box = \"{}\" must be unit, or left away", setting.name, setting.box);
  if (setting.box == "unit") choice.box = {0.0, 1.0};
  return choice;
}

std::vector<double> test_aucs(const MethodNetworks& networks) {
  std::vector<double> all;
  for (const Member& member : networks.members) all.push_back(member.trained.test ? member.trained.test->auc.mean : kUndefined);
  return all;
}

std::vector<double> test_accuracies(const MethodNetworks& networks) {
  std::vector<double> all;
  for (const Member& member : networks.members)
    all.push_back(member.trained.test ? member.trained.test->accuracy.mean : kUndefined);
  return all;
}

std::vector<double> robust_accuracies(ExperimentContext& context, const MethodNetworks& networks, double epsilon) {
  const std::string call = fmt::format("pgd(epsilon={},steps=20,step_size={})", epsilon, epsilon / 8);
  std::vector<Job<double>> jobs;
  for (const Member& member : networks.members) {
    const SampleRows rows = first_rows(member.data->data, "test", context.by_scale(50, 500, 2000));
    jobs.push_back({fmt::format("robust accuracy; {}; on {}; {}; {}", member.trained.key, member.data->key, rows.words, call),
                    [&member, rows, call] {
                      Network network = *member.trained.model->network();
                      const Dataset& data = member.data->data;
                      const at::Tensor ids = at::tensor(rows.positions, at::kLong);
                      const TrainBatch batch{.inputs = data.inputs_of(rows.positions).to(network.device()),
                                             .labels = data.labels_of(rows.positions).to(network.device()),
                                             .sample_ids = ids,
                                             .schema = data.schema};
                      return loss_of(*objectives().make(call), network, batch).parts.at(1).second.item<double>();
                    }});
  }
  return context.compute("robust accuracy", jobs);
}

double gradient_evaluations(const std::string& recipe) {
  const std::string name = parse_method_call(recipe).name;
  if (name == "vanilla") return 1;
  if (name != "pgd" && name != "steady_map" && !name.starts_with("ig_")) return kUndefined;
  const Options options = objectives().options(recipe);
  const auto steps = static_cast<double>(options.integer("steps"));
  if (name == "pgd") return steps + 1;
  const auto path = static_cast<double>(options.integer("path_steps"));
  if (name == "steady_map") {
    const double points = options.word("explanation") == "saliency" ? 1 : path;
    if (options.real("weight") == 0) return steps + 6 * points;  // the maximum is the prediction's alone
    return 3 * points * steps + points + 6 * points;  // the clean map once for the maximum, both with their graph in the loss
  }
  const double outer = name == "ig_norm" ? path + 1 : path;
  return 3 * static_cast<double>(options.integer("inner_path_steps")) * steps + 3 * outer;
}

}  // namespace holdfast::experiment::paper

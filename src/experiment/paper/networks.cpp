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
TrainOptions step_training(const Setting& setting, const Method& method, const std::string& weights, const ExperimentData& data,
                           std::uint64_t seed) {
  const auto an_epoch = static_cast<std::int64_t>(epoch_batches(data.data.train, setting.batch_size, 0, 0).size());
  const std::int64_t steps =
      method.name == "natural" && setting.natural_steps > 0 ? setting.natural_steps : setting.training_steps;
  TrainOptions options = training(setting, method, weights, std::max<std::int64_t>(1, (steps + an_epoch / 2) / an_epoch), seed);
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

// Whether the weights of the objective's terms change while it trains, as a ramp's do.
bool changes_on_the_way(const TrainOptions& options) {
  const auto objective = objectives().make(recipes().make(options.recipe)->objective);
  const auto weights_at = [&](double progress) {
    std::vector<double> weights;
    for (const Term& term : objective->terms(progress)) weights.push_back(term.weight);
    return weights;
  };
  return weights_at(0) != weights_at(1);
}

// The training of a network that may count: the epoch with the best AUC is kept, unless the setting keeps the last one.
TrainOptions best_training(const Setting& setting, const Method& method, const std::string& weights, const ExperimentData& data,
                           std::uint64_t seed) {
  TrainOptions options = setting.training_steps > 0 ? step_training(setting, method, weights, data, seed)
                                                    : training(setting, method, weights, setting.epochs, seed);
  if (setting.kept_epoch == "last") return options;
  if (setting.kept_epoch != "best")
    usage_error("setting '{}': kept_epoch = \"{}\" must be best or last", setting.name, setting.kept_epoch);
  options.early_stopping = {.metric = "auc", .patience = changes_on_the_way(options) ? 0 : setting.patience};
  return options;
}

// P@k of each network under the choice's attack, on validation samples.
std::vector<double> kept_shares(ExperimentContext& context, const Choice& choice, const Setting& setting, const Data& data,
                                const std::vector<TrainedModel>& trained) {
  CellBatch batch(context.seed);
  for (const TrainedModel& one : trained) {
    StudiedNetwork subject = subject_of(setting, {data, one});
    subject.rows = first_rows(data->data, "validation", setting.choice_samples);
    batch.attack(subject, attack_of(setting, setting.fill(choice.attack), {setting.fill("top_k(k={k})")}, choice.select));
  }
  batch.run(context, fmt::format("{}: choosing weights", setting.name));
  std::vector<double> shares;
  for (std::size_t i = 0; i < trained.size(); ++i) shares.push_back(kept_share(batch.attacked(i)));
  return shares;
}

// Chosen weights, and the AUC on validation samples of Vanilla's networks that they were held against; NaN where nothing was
// chosen.
struct Chosen {
  std::vector<ChosenWeight> weights;
  double vanilla = kUndefined;
};

Chosen choose_weights(ExperimentContext& context, const Paper& paper, const Setting& setting, const std::vector<Method>& methods,
                      const Data& data, const std::string& choice_name) {
  Chosen chosen{.weights = std::vector<ChosenWeight>(methods.size())};
  const std::vector<Candidate> candidates = candidates_of(methods, setting, context.quick());
  if (choice_name.empty() || candidates.empty()) return chosen;
  if (setting.weights == "first") {
    context.note(fmt::format("{}: weights are not chosen at this scale, the first of each grid is taken", setting.name));
    for (std::size_t i = 0; i < methods.size(); ++i) {
      if (!grid_of(methods[i], setting).empty()) chosen.weights[i].weights = grid_of(methods[i], setting).front();
    }
    return chosen;
  }
  const auto choice = std::ranges::find(paper.choices, choice_name, &Choice::name);
  if (choice == paper.choices.end()) usage_error("{} has no choice '{}'", paper.name, choice_name);
  const auto seeds = static_cast<std::size_t>(setting.choice_seeds);
  // A stack's rounding depends on what is in it: each method has its own, so that experiments with other methods have the same
  // networks.
  std::vector<TrainOptions> options;
  std::vector<std::size_t> stacks;
  for (std::size_t i = 0; i <= candidates.size(); ++i) {  // Vanilla first
    const Method& method = i == 0 ? paper.method("Vanilla") : methods[candidates[i - 1].method];
    for (std::size_t seed = 0; seed < seeds; ++seed) {
      options.push_back(
          best_training(setting, method, i == 0 ? "" : candidates[i - 1].weights, *data, context.seed + kChoiceSeeds + seed));
      stacks.push_back(i == 0 ? methods.size() : candidates[i - 1].method);
    }
  }
  const std::vector<TrainedModel> trained =
      context.train(*data, options, fmt::format("{}: weights to choose from", setting.name), stacks);
  const std::vector<double> shares =
      kept_shares(context, *choice, setting, data, {trained.begin() + static_cast<std::ptrdiff_t>(seeds), trained.end()});
  const auto mean_area = [&](std::size_t of) {
    std::vector<double> areas;
    for (std::size_t i = 0; i < seeds; ++i) areas.push_back(validation_auc(trained[of * seeds + i]));
    return defined_mean(areas);
  };
  chosen.vanilla = mean_area(0);
  std::vector<WeightScore> scores;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto first = shares.begin() + static_cast<std::ptrdiff_t>(i * seeds);
    scores.push_back({candidates[i].method, candidates[i].weights, mean_area(i + 1),
                      defined_mean(std::vector<double>(first, first + static_cast<std::ptrdiff_t>(seeds)))});
  }
  chosen.weights = best_weights(scores, methods.size(), chosen.vanilla - kAucLoss);
  return chosen;
}

// Published weights as the one network of a method.
std::vector<MethodNetworks> published_network(const ExperimentContext& context, const Setting& setting, const Data& data) {
  TrainedModel loaded;
  const std::string file = model_file(setting.model);
  loaded.key = loaded.structure = setting.model;
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
  if (setting.schedule != "residual") options.schedule = setting.schedule;
  options.augmentation = setting.augmentation;
  options.precision = setting.precision;
  return options;
}

std::vector<std::vector<TrainedModel>> train_members(
    ExperimentContext& context, const ExperimentData& data, const Setting& setting, std::size_t entries,
    const std::function<TrainOptions(std::size_t entry, std::uint64_t member)>& options, const std::string& label) {
  std::vector<std::vector<TrainedModel>> trained(entries);
  // 0 to 4, 5 to 9, 10 to 19, 20 to 39 and so on, whatever numbers of seeds were asked for.
  const std::int64_t first = setting.first_members > 0 ? setting.first_members : setting.members;
  for (std::int64_t begin = 0, block = first; begin < setting.members; begin = block, block *= 2) {
    const std::int64_t end = std::min(block, setting.members);
    std::vector<TrainOptions> all;
    for (std::size_t entry = 0; entry < entries; ++entry) {
      for (std::int64_t member = begin; member < end; ++member) all.push_back(options(entry, static_cast<std::uint64_t>(member)));
    }
    std::vector<TrainedModel> done = context.train(data, all, label);
    for (std::size_t i = 0; i < done.size(); ++i)
      trained[i / static_cast<std::size_t>(end - begin)].push_back(std::move(done[i]));
  }
  return trained;
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
  const Chosen chosen = choose_weights(context, paper, setting, fitting, first, choice);
  std::vector<MethodNetworks> all;
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    const ChosenWeight& weight = chosen.weights[i];
    all.push_back({fitting[i], weight.weights, {}, weight.is_admissible ? "" : kNoWeight});
  }
  const std::string label = fmt::format("{}: training", setting.name);
  const auto options_of = [&](const ExperimentData& data, const MethodNetworks& one, std::uint64_t seed) {
    return !choice.empty()              ? best_training(setting, one.method, one.weights, data, seed)
           : setting.training_steps > 0 ? step_training(setting, one.method, one.weights, data, seed)
                                        : training(setting, one.method, one.weights, setting.epochs, seed);
  };
  if (setting.members_are == "folds") {
    for (std::int64_t fold = 0; fold < setting.members; ++fold) {
      const Data data = context.dataset(setting.data, 0, fold);
      std::vector<TrainOptions> options;
      for (const MethodNetworks& one : all) options.push_back(options_of(*data, one, context.seed));
      std::vector<TrainedModel> trained = context.train(*data, options, label);
      for (std::size_t i = 0; i < trained.size(); ++i) all[i].members.push_back({data, std::move(trained[i])});
    }
  } else {
    auto trained = train_members(
        context, *first, setting, all.size(),
        [&](std::size_t i, std::uint64_t member) { return options_of(*first, all[i], context.seed + member); }, label);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (TrainedModel& one : trained[i]) all[i].members.push_back({first, std::move(one)});
    }
  }
  if (choice.empty()) return all;
  judge_standing(all, chosen.vanilla);
  for (const MethodNetworks& one : all) {
    if (!one.counts())
      context.note(fmt::format("{}, {}: {}, so that it decides nothing", setting.name, one.method.name, one.standing));
  }
  return all;
}

void judge_standing(std::vector<MethodNetworks>& networks, double vanilla) {
  const auto area = [](const MethodNetworks& one) {
    std::vector<double> areas;
    for (const Member& member : one.members) areas.push_back(validation_auc(member.trained));
    return defined_mean(areas);
  };
  const MethodNetworks* plain = find(networks, "Vanilla");
  if (plain != nullptr) vanilla = area(*plain);
  const bool learns = plain == nullptr || std::ranges::all_of(plain->members, [](const Member& member) {
                        return member.trained.test && member.trained.test->auc.low > kLeastAuc;
                      });
  for (MethodNetworks& one : networks) {
    if (!learns) one.standing = kNotCounted;
    if (one.counts() && area(one) < vanilla - kAucLoss) one.standing = kLosesAuc;
  }
}

std::vector<ChosenWeight> best_weights(const std::vector<WeightScore>& scores, std::size_t methods, double least) {
  std::vector<ChosenWeight> chosen(methods);
  std::vector<std::pair<bool, double>> best(methods, {false, -1});  // admissible; P@k, or AUC where none is
  for (const WeightScore& one : scores) {
    const bool within = one.area >= least;
    const std::pair score(within, within ? one.kept : one.area);
    if (score <= best[one.method]) continue;
    best[one.method] = score;
    chosen[one.method] = {one.weights, within};
  }
  return chosen;
}

SampleRows right_rows_of(const Member& member, std::int64_t count) {
  const Dataset& data = member.data->data;
  if (!member.trained.is_planned) return right_rows(*member.trained.model, data, count);
  return first_rows(data, data.test.empty() ? "all" : "test", count);
}

StudiedNetwork subject_of(const Setting& setting, const Member& member, std::int64_t samples) {
  const Dataset& data = member.data->data;
  const std::int64_t count = samples > 0 ? std::min(samples, setting.samples) : setting.samples;
  return {.model = member.trained.model,
          .key = member.trained.key,
          .data = member.data,
          .explainer = setting.fill(setting.explainer),
          .rows = setting.samples_are == "spread"    ? spread_rows(data, count)
                  : setting.samples_are == "right"   ? right_rows_of(member, count)
                  : setting.samples_are == "classes" ? class_rows(data, count)
                                                     : first_rows(data, "test", count),
          .explains_labels = setting.explained == "labels",
          .structure = member.trained.structure};
}

PaperAttack attack_of(const Setting& setting, const std::string& attack, const std::vector<std::string>& metrics,
                      const std::string& select) {
  PaperAttack choice{.attack = attack,
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
  const auto share_left = [&call](const Member& member, const std::vector<std::int64_t>& rows) {
    Network network = *member.trained.model->network();
    const Dataset& data = member.data->data;
    const at::Tensor ids = at::tensor(rows, at::kLong);
    const TrainBatch batch{.inputs = data.inputs_of(rows).to(network.device()),
                           .labels = data.labels_of(rows).to(network.device()),
                           .sample_ids = ids,
                           .schema = data.schema};
    return loss_of(*objectives().make(call), network, batch).parts.at(1).second.item<double>();
  };
  std::vector<Job<double>> jobs;
  for (const Member& member : networks.members) {
    const SampleRows rows = first_rows(member.data->data, "test", context.by_scale(50, 500, 2000));
    jobs.push_back({fmt::format("robust accuracy; {}; on {}; {}; {}", member.trained.key, member.data->key, rows.words, call),
                    [&member, rows, &share_left] { return share_left(member, rows.positions); },
                    {.kind = fmt::format("{}\n{}\n{}", member.data->key, member.trained.structure, call)},
                    {.units = std::ssize(rows.positions), .few = [&member, rows, &share_left](std::int64_t units) {
                       return share_left(member, {rows.positions.begin(), rows.positions.begin() + units});
                     }}});
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

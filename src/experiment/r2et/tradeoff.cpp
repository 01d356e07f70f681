// r2et/tradeoff: every recipe over its weights and radii, and the contest of the best.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "claims.h"
#include "contest.h"
#include "holdfast/core/number.h"

namespace holdfast::experiment::paper::r2et {
namespace {

const char* const kOurs = "pair hinge";

// Weights of a method, and the network that a short training makes with them.
struct Candidate {
  Method method;
  std::string weights;
  Member member = {};

  double validation_auc() const { return member.trained.validation->auc.mean; }
};

// What was measured of one network at one radius. `specific` is that of metric/levels.h; `counted` is 0 where all samples have
// one explanation, and decides choices and contests.
struct NetworkNumbers {
  double kept, between, specific, counted, certified, comp;
};

std::vector<NetworkNumbers> measure(PaperRun& run, const Setting& setting, const std::vector<StudiedNetwork>& subjects,
                                    double radius, const std::string& label) {
  const std::string metric = setting.fill("top_k(k={k})");
  PaperAttack attack = attack_of(setting, setting.strong, {metric}, "worst");
  attack.epsilon = radius;
  CellBatch batch(run.seed);
  for (const StudiedNetwork& subject : subjects) {
    batch.attack(subject, attack);
    batch.measure(subject, fmt::format("certified_overlap(k={},radius={})", setting.k, radius), 0);
    batch.measure(subject, "comp(remove=resample)", 0);
  }
  batch.run(run.context, fmt::format("{}: {}, radius {}", setting.name, label, radius));
  std::vector<NetworkNumbers> found;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const Numbers numbers = numbers_of({batch.attacked(i)}, metric);
    found.push_back({.kept = numbers.means()[0],
                     .between = numbers.between[0],
                     .specific = specific(numbers).means()[0],
                     .counted = specific_or_zero(numbers).means()[0],
                     .certified = defined_mean(batch.measured(2 * i).values),
                     .comp = defined_mean(batch.measured(2 * i + 1).values)});
  }
  return found;
}

std::vector<Candidate> train_grid(PaperRun& run, const Setting& setting, const std::shared_ptr<const ExperimentData>& data) {
  std::vector<Candidate> candidates;
  std::vector<TrainOptions> options;
  for (const Method& method : methods_for(setting, run.plan.methods)) {
    std::vector<std::string> grid = method.grid.empty() ? std::vector<std::string>{""} : method.grid;
    if (run.context.quick()) grid.resize(1);
    for (const std::string& weights : grid) {
      candidates.push_back({method, weights});
      options.push_back(training(setting, method, weights, setting.short_epochs, run.seed));
    }
  }
  std::vector<TrainedModel> trained = run.context.train(*data, options, setting.name + ": weight grids");
  for (std::size_t i = 0; i < trained.size(); ++i) candidates[i].member = {data, std::move(trained[i])};
  return candidates;
}

std::vector<NetworkNumbers> measure_grid(PaperRun& run, const Setting& setting, const std::vector<Candidate>& candidates,
                                         double radius, Json& dots) {
  std::vector<StudiedNetwork> subjects;
  for (const Candidate& candidate : candidates) {
    subjects.push_back(subject_of(setting, candidate.member));
    subjects.back().rows = first_rows(candidate.member.data->data, "validation", setting.choice_samples);
  }
  const std::vector<NetworkNumbers> all = measure(run, setting, subjects, radius, "grids");
  const auto drawn = [](double number) { return std::round(number * 1e4) / 1e4; };
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    dots.push_back({{"subject", fmt::format("{}, radius {}", setting.dataset, radius)},
                    {"method", candidates[i].method.name},
                    {"weights", candidates[i].weights},
                    {"AUC", drawn(candidates[i].validation_auc())},
                    {"P@8", drawn(all[i].kept)},
                    {"certified", drawn(all[i].certified)},
                    {"between", drawn(all[i].between)},
                    {"specific", drawn(all[i].specific)},
                    {"COMP", drawn(all[i].comp)}});
  }
  return all;
}

std::vector<std::size_t> choose_candidates(const std::vector<Candidate>& candidates, const std::vector<NetworkNumbers>& found) {
  double least = 0;
  std::vector<CandidateScore> scores;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    scores.push_back({candidates[i].method.name, candidates[i].validation_auc(), found[i].counted, found[i].between});
    if (scores.back().method == "Vanilla") least = scores.back().area - kGoalLoss;
  }
  return choose(scores, least);
}

// The numbers of one method, by seed.
struct MethodResult {
  std::vector<NetworkNumbers> networks;
  std::vector<double> areas;

  std::vector<double> column(double NetworkNumbers::*number) const {
    std::vector<double> values;
    for (const NetworkNumbers& one : networks) values.push_back(one.*number);
    return values;
  }
};

// The chosen weights, trained with every seed and looked at on test samples.
std::vector<MethodResult> run_chosen(PaperRun& run, const Setting& setting, const std::shared_ptr<const ExperimentData>& data,
                                     const std::vector<const Candidate*>& chosen, double radius) {
  const auto members = static_cast<std::size_t>(setting.members);
  const std::vector<std::vector<TrainedModel>> trained = train_members(
      run.context, *data, setting, chosen.size(),
      [&](std::size_t i, std::uint64_t member) {
        return training(setting, chosen[i]->method, chosen[i]->weights, setting.epochs, run.seed + member);
      },
      setting.name + ": contest");
  std::vector<StudiedNetwork> subjects;
  for (const std::vector<TrainedModel>& all : trained) {
    for (const TrainedModel& model : all) subjects.push_back(subject_of(setting, {data, model}));
  }
  const std::vector<NetworkNumbers> found = measure(run, setting, subjects, radius, "contest");
  std::vector<MethodResult> results(chosen.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    results[i / members].networks.push_back(found[i]);
    results[i / members].areas.push_back(trained[i / members][i % members].test->auc.mean);
  }
  return results;
}

Contest hold_contest(PaperRun& run, const Setting& setting, const std::shared_ptr<const ExperimentData>& data,
                     const std::vector<const Candidate*>& chosen, double radius) {
  const std::vector<MethodResult> results = run_chosen(run, setting, data, chosen, radius);
  const auto place_of = [&](const char* name) {
    const auto place = std::ranges::find_if(chosen, [&](const Candidate* one) { return one->method.name == name; });
    return static_cast<std::size_t>(place - chosen.begin());
  };
  const std::size_t vanilla = place_of("Vanilla"), ours = place_of(kOurs);
  Contest contest{.dataset = setting.dataset, .radius = radius};
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto mean = [&](double NetworkNumbers::*number) { return share(over_seeds(results[i].column(number))); };
    const Value loss = difference_over_seeds(results[i].areas, results[vanilla].areas);
    Value ahead;
    if (i == ours) {
      contest.loss = loss;
    } else {
      contest.opponents.push_back(compare(chosen[i]->method.name, results[ours].column(&NetworkNumbers::counted),
                                          results[i].column(&NetworkNumbers::counted)));
      ahead = contest.opponents.back().difference;
    }
    run.table("contest").add({setting.dataset, fmt::format("{}", radius), chosen[i]->method.name, chosen[i]->weights},
                             {over_seeds(results[i].column(&NetworkNumbers::specific)), ahead, mean(&NetworkNumbers::kept),
                              mean(&NetworkNumbers::between), mean(&NetworkNumbers::certified),
                              share(over_seeds(results[i].areas)), loss, mean(&NetworkNumbers::comp)});
  }
  return contest;
}

}  // namespace

void analyse_tradeoff(PaperRun& run) {
  std::vector<Contest> contests;
  Json dots = Json::array();
  for (const Setting& setting : run.settings) {
    const auto data = run.context.dataset(setting.data);
    if (!data) continue;
    run.result.settings["attack"] = setting.strong;
    const std::vector<Candidate> candidates = train_grid(run, setting, data);
    for (const NamedCall& named : run.plan.radii) {
      const double radius = parse_quotient(named.name).value();
      const std::vector<NetworkNumbers> found = measure_grid(run, setting, candidates, radius, dots);
      std::vector<const Candidate*> chosen;
      for (const std::size_t i : choose_candidates(candidates, found)) {
        chosen.push_back(&candidates[i]);
        run.table("choice").add({setting.dataset, named.name, candidates[i].method.name, candidates[i].weights},
                                {{.value = found[i].kept},
                                 {.value = found[i].between},
                                 {.value = found[i].specific},
                                 {.value = found[i].certified},
                                 {.value = candidates[i].validation_auc()},
                                 {.value = found[i].comp}});
      }
      if (radius == 0.1 || radius == 0.3) contests.push_back(hold_contest(run, setting, data, chosen, radius));
    }
  }
  add_goals(run.table("goal"), contests);
  run.draw("trade-off", dots);
  if (contests.empty()) return;
  const Finding found = judge_contests(contests);
  run.judge("ours", found, run.fewest_members());
}

}  // namespace holdfast::experiment::paper::r2et

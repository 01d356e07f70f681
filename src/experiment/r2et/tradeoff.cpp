// r2et/tradeoff: robust, specific and accurate at once? Every recipe over its grid of weights and `linear`, one level of each
// category dropped so that there is no gauge, at several radii: P@8 under `gauntlet`, its between level, `specific` = (P@8 -
// between)/(1 - between), certified P@8 (certified_overlap, which no attack can get below), AUC and faithfulness by resampling.
//
// Then the contest: for each method the weights with the highest `specific` on validation samples among those whose AUC there is
// within .003 of Vanilla's (short trainings, first seed), trained with every seed and attacked on test samples; ours is held
// against each of the others, paired by seed. Nothing was tried on German Credit while a method was made; on breast_cancer
// neither, but that ours had lost there led to the stronger hinges of its grid (docs/training.md).
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments.h"
#include "goal.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kTradeoffInfo{
    .name = "r2et/tradeoff",
    .summary = "robust, specific and accurate over weight grids and radii, and a contest of the best",
    .citation = kPaper,
    .notes =
        "Adult, Bank, COMPAS, breast_cancer and German Credit at l2 radii .03, .1, .3 and 1: P@8 under "
        "gauntlet, between, specific and certified P@8, AUC and faithfulness of every recipe over its "
        "weights. Then the best weights of each, 5 seeds: is the pair hinge, which is ours and not the "
        "paper's, ahead of all others at radii .1 and .3?"};

const char* const kOurs = "pair hinge";

struct Candidate {
  const Method* method = nullptr;
  std::string weights;
  Member member;  // on the short training
};

// The numbers of one network at one radius.
struct Standing {
  double kept, between, specific, certified, comp;
};

Standing standing(const Json& attacked, const Json& certified, const Json& faithful) {
  const Json& metric = attacked.at("metrics")[0];
  const double between = metric.at("between").is_null() ? std::nan("") : metric.at("between").get<double>();
  // A network with one top-k set for all inputs explains nothing about an input: 0, not undefined.
  const double specific = between == 1 ? 0 : defined_mean(numbers(metric.at("specific")));
  return {.kept = defined_mean(numbers(metric.at("values"))),
          .between = between,
          .specific = specific,
          .certified = defined_mean(numbers(certified.at("values"))),
          .comp = defined_mean(numbers(faithful.at("values")))};
}

std::vector<Standing> standings(ExperimentContext& context, const Setting& setting, const std::vector<CellSubject>& subjects,
                                double radius, const std::string& label) {
  const AttackChoice attack{.attack = strong_attack(context), .metrics = {setting.top_k()}, .epsilon = radius};
  const std::string certificate = fmt::format("certified_overlap(k={},radius={})", setting.k, radius);
  std::vector<Job> attacks, certificates, faithfulness;
  for (const CellSubject& subject : subjects) {
    attacks.push_back(attack_job(subject, attack, context.seed));
    certificates.push_back(measure_job(subject, certificate, 0, context.seed));
    faithfulness.push_back(measure_job(subject, "comp(remove=resample)", 0, context.seed));
  }
  const std::string at_radius = fmt::format("{}: {}, radius {}", setting.name(), label, radius);
  const std::vector<Json> attacked = context.compute(at_radius, attacks);
  const std::vector<Json> certified = context.compute(at_radius + ", certificates", certificates);
  const std::vector<Json> faithful = context.compute(at_radius + ", faithfulness", faithfulness);
  std::vector<Standing> found;
  for (std::size_t i = 0; i < subjects.size(); ++i) found.push_back(standing(attacked[i], certified[i], faithful[i]));
  return found;
}

class Tradeoff final : public Experiment {
 public:
  explicit Tradeoff(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "Robust, specific and accurate", .paper = kPaper};
    result.settings["attack"] = strong_attack(context);
    result.settings["choice"] =
        "highest specific P@8 on validation samples among weights with an AUC within .003 of Vanilla's, of equals the one with "
        "the lower between level, and the highest AUC where none is within; short trainings, first seed";
    const std::string reading =
        "P@8 is under gauntlet; certified is a proven lower bound of it under any attack (certified_overlap). COMP: by "
        "resampling.";
    ResultTable choice{
        .name = "choice",
        .caption =
            "The weights that are chosen, at every radius; all weights are in the figure's data. Short trainings, first "
            "seed, validation samples. " +
            reading,
        .keys = {"dataset", "radius", "method", "weights"},
        .columns = {"P@8", "between", "specific", "certified", "AUC", "COMP"}};
    ResultTable contest{
        .name = "contest",
        .caption =
            "Chosen weights, every seed, test samples. Ours minus it: specific P@8 of the pair hinge minus this method's, paired "
            "by "
            "seed. " +
            reading,
        .keys = {"dataset", "radius", "method", "weights"},
        .columns = {"specific P@8", "ours minus it", "P@8", "between", "certified", "AUC", "AUC minus Vanilla's", "COMP"}};
    std::vector<Standoff> standoffs;
    Json dots = Json::array();
    for (const Setting& setting : tradeoff_settings(context)) {
      const auto data = context.dataset(setting.call);
      if (!data) continue;
      const std::vector<Candidate> candidates = train_grid(context, setting, data);
      for (const double radius : radii(context)) {
        const std::vector<Standing> found = measure_grid(context, setting, candidates, radius, dots);
        for (const std::size_t i : chosen(candidates, found)) add_choice(choice, setting, radius, candidates[i], found[i]);
        if (radius == 0.1 || radius == 0.3)
          standoffs.push_back(hold_contest(context, setting, data, candidates, found, radius, contest));
      }
    }
    result.tables = {goal_table(standoffs), contest, choice};
    result.figures.push_back(plot(dots));
    if (!standoffs.empty()) result.verdicts = {judge_ours(standoffs, context.by_scale(2, 5, 5))};
    return result;
  }

 private:
  static std::vector<double> radii(const ExperimentContext& context) {
    return context.quick() ? std::vector<double>{0.1, 1} : std::vector<double>{0.03, 0.1, 0.3, 1};
  }

  static std::vector<Candidate> train_grid(ExperimentContext& context, const Setting& setting,
                                           const std::shared_ptr<const ExperimentData>& data) {
    std::vector<Candidate> candidates;
    std::vector<TrainOptions> options;
    for (const Method* method : methods_for(setting, all_methods())) {
      std::vector<std::string> grid = method->grid.empty() ? std::vector<std::string>{""} : method->grid;
      if (context.quick()) grid.resize(1);
      for (const std::string& weights : grid) {
        candidates.push_back({method, weights, {}});
        options.push_back(training(setting, *method, weights, setting.short_epochs, context.seed));
      }
    }
    std::vector<TrainedModel> trained = context.train(*data, options, setting.name() + ": weight grids");
    for (std::size_t i = 0; i < trained.size(); ++i) candidates[i].member = {data, std::move(trained[i])};
    return candidates;
  }

  static double validation_auc(const Candidate& candidate) { return candidate.member.trained.validation->auc.mean; }

  static void add_choice(ResultTable& table, const Setting& setting, double radius, const Candidate& candidate,
                         const Standing& found) {
    table.add({setting.dataset, fmt::format("{}", radius), candidate.method->name, candidate.weights},
              {{.value = found.kept},
               {.value = found.between},
               {.value = found.specific},
               {.value = found.certified},
               {.value = validation_auc(candidate)},
               {.value = found.comp}});
  }

  static std::vector<Standing> measure_grid(ExperimentContext& context, const Setting& setting,
                                            const std::vector<Candidate>& candidates, double radius, Json& dots) {
    std::vector<CellSubject> subjects;
    for (const Candidate& candidate : candidates) {
      subjects.push_back(subject_of(setting, candidate.member));
      subjects.back().part = "validation";
      subjects.back().samples = setting.choice_samples;
    }
    const std::vector<Standing> all = standings(context, setting, subjects, radius, "grids");
    const auto drawn = [](double number) { return std::round(number * 1e4) / 1e4; };
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Standing& found = all[i];
      dots.push_back({{"subject", fmt::format("{}, radius {}", setting.dataset, radius)},
                      {"method", candidates[i].method->name},
                      {"weights", candidates[i].weights},
                      {"AUC", drawn(validation_auc(candidates[i]))},
                      {"P@8", drawn(found.kept)},
                      {"certified", drawn(found.certified)},
                      {"between", drawn(found.between)},
                      {"specific", drawn(found.specific)},
                      {"COMP", drawn(found.comp)}});
    }
    return all;
  }

  static std::vector<std::size_t> chosen(const std::vector<Candidate>& candidates, const std::vector<Standing>& found) {
    double least = 0;
    std::vector<Tried> tried;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      tried.push_back({candidates[i].method->name, validation_auc(candidates[i]), found[i].specific, found[i].between});
      if (tried.back().method == "Vanilla") least = tried.back().area - kGoalLoss;
    }
    return choose(tried, least);
  }

  // The numbers of one method, by seed.
  struct Runs {
    std::vector<Standing> standings;
    std::vector<double> areas;

    std::vector<double> column(double Standing::*number) const {
      std::vector<double> values;
      for (const Standing& one : standings) values.push_back(one.*number);
      return values;
    }
  };

  // Of the chosen weights, trained with every seed and looked at on test samples.
  static std::vector<Runs> run_contest(ExperimentContext& context, const Setting& setting,
                                       const std::shared_ptr<const ExperimentData>& data,
                                       const std::vector<const Candidate*>& best, double radius) {
    const auto members = static_cast<std::size_t>(setting.members);
    std::vector<TrainOptions> options;
    for (const Candidate* one : best) {
      for (std::size_t seed = 0; seed < members; ++seed)
        options.push_back(training(setting, *one->method, one->weights, setting.epochs, context.seed + seed));
    }
    const std::vector<TrainedModel> trained = context.train(*data, options, setting.name() + ": contest");
    std::vector<CellSubject> subjects;
    for (const TrainedModel& model : trained) subjects.push_back(subject_of(setting, {data, model}));
    const std::vector<Standing> found = standings(context, setting, subjects, radius, "contest");
    std::vector<Runs> runs(best.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      runs[i / members].standings.push_back(found[i]);
      runs[i / members].areas.push_back(trained[i].test->auc.mean);
    }
    return runs;
  }

  static Standoff hold_contest(ExperimentContext& context, const Setting& setting,
                               const std::shared_ptr<const ExperimentData>& data, const std::vector<Candidate>& candidates,
                               const std::vector<Standing>& found, double radius, ResultTable& table) {
    std::vector<const Candidate*> best;
    for (const std::size_t i : chosen(candidates, found)) best.push_back(&candidates[i]);
    const std::vector<Runs> runs = run_contest(context, setting, data, best, radius);
    const auto place_of = [&](const char* name) {
      const auto place = std::find_if(best.begin(), best.end(), [&](const Candidate* one) { return one->method->name == name; });
      return static_cast<std::size_t>(place - best.begin());
    };
    const std::size_t vanilla = place_of("Vanilla"), ours = place_of(kOurs);
    Standoff standoff{.dataset = setting.dataset, .radius = radius};
    for (std::size_t i = 0; i < best.size(); ++i) {
      const auto mean = [&](double Standing::*number) { return share(over_seeds(runs[i].column(number))); };
      const Value loss = difference_over_seeds(runs[i].areas, runs[vanilla].areas);
      const std::vector<double> specific = runs[i].column(&Standing::specific);
      Value ahead;
      if (i == ours) {
        standoff.loss = loss;
      } else {
        standoff.others.push_back(against(best[i]->method->name, runs[ours].column(&Standing::specific), specific));
        ahead = standoff.others.back().difference;
      }
      table.add({setting.dataset, fmt::format("{}", radius), best[i]->method->name, best[i]->weights},
                {over_seeds(specific), ahead, mean(&Standing::kept), mean(&Standing::between), mean(&Standing::certified),
                 share(over_seeds(runs[i].areas)), loss, mean(&Standing::comp)});
    }
    return standoff;
  }

  static Figure plot(const Json& dots) {
    Json spec = Json::parse(R"json({"columns": 4, "facet": {"field": "subject", "type": "nominal", "title": null}, "spec": {
      "width": 200, "height": 170, "mark": {"type": "point", "filled": true, "size": 45}, "encoding": {
      "x": {"field": "AUC", "type": "quantitative", "scale": {"zero": false}},
      "y": {"field": "specific", "type": "quantitative", "title": "specific P@8"},
      "color": {"field": "method", "type": "nominal", "title": null},
      "tooltip": [{"field": "method"}, {"field": "weights"}, {"field": "AUC"}, {"field": "P@8"}, {"field": "certified"},
      {"field": "between"}, {"field": "specific"}, {"field": "COMP"}]}}, "resolve": {"scale": {"x": "independent", "y": "independent"}}})json");
    spec["data"]["values"] = dots;
    return {.name = "trade-off",
            .caption = "Every recipe over its weights: up is specific under gauntlet, right is accurate.",
            .spec = spec};
  }
};

}  // namespace

void add_tradeoff(Registry<Experiment>& registry) {
  registry.add<Tradeoff>(kTradeoffInfo);
}

}  // namespace holdfast::r2et

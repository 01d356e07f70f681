// r2et/tradeoff: robust, specific and accurate at once? Every recipe over its grid of weights and `linear`, one level of each
// category dropped so that there is no gauge, at several radii under `gauntlet`: P@8, its between level, `specific` = (P@8 -
// between)/(1 - between), a certified share, AUC and faithfulness by resampling.
//
// Then the contest: for each method the weights with the highest `specific` on validation samples among those whose AUC there is
// within .003 of Vanilla's (short trainings, first seed), trained with every seed and attacked on test samples; ours is held
// against the best of the others, paired by seed. breast_cancer was used by nobody while the methods were made.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kTradeoffInfo{.name = "r2et/tradeoff",
                               .summary = "robust, specific and accurate over weight grids and radii, and a contest of the best",
                               .citation = kPaper};

constexpr double kLoss = 0.003;
const char* const kOurs = "pair hinge";

struct Candidate {
  const Method* method = nullptr;
  std::string weights;
  Member member;  // on the short training
};

// The numbers of one network at one radius, from its cells.
struct Standing {
  double kept, between, specific;
};

Standing standing(const Json& cell) {
  const Json& metric = cell.at("metrics")[0];
  const double between = metric.at("between").is_null() ? std::nan("") : metric.at("between").get<double>();
  // A network with one top-k set for all inputs explains nothing about an input: 0, not undefined.
  const double specific = between == 1 ? 0 : defined_mean(numbers(metric.at("specific")));
  return {defined_mean(numbers(metric.at("values"))), between, specific};
}

class Tradeoff final : public Experiment {
 public:
  explicit Tradeoff(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "Robust, specific and accurate", .paper = kPaper};
    result.settings["attack"] = strong_attack(context);
    result.settings["choice"] =
        "highest specific P@8 on validation samples among weights with an AUC within .003 of Vanilla's; short trainings, first "
        "seed";
    ResultTable grid{.name = "weight grids",
                     .caption =
                         "Short trainings, first seed, validation samples. certified: share of samples whose top 8 provably "
                         "stays within the radius (smooth "
                         "networks). COMP: by resampling.",
                     .keys = {"dataset", "method", "weights", "radius"},
                     .columns = {"P@8", "between", "specific", "certified", "AUC", "COMP"}};
    ResultTable contest{.name = "contest",
                        .caption = "Chosen weights, every seed, test samples, under gauntlet.",
                        .keys = {"dataset", "radius", "method", "weights"},
                        .columns = {"specific P@8", "P@8", "between", "AUC", "AUC minus Vanilla's"}};
    ResultTable goal{.name = "ours against the best other",
                     .caption =
                         "specific P@8 of the pair hinge minus that of the best other method whose AUC is within .003 of "
                         "Vanilla's on test samples, paired by seed.",
                     .keys = {"dataset", "radius", "best other"},
                     .columns = {"difference"}};
    Json dots = Json::array();
    for (const Setting& setting : tradeoff_settings(context)) {
      const auto data = context.dataset(setting.call);
      if (!data) continue;
      const std::vector<Candidate> candidates = train_grid(context, setting, data);
      for (const double radius : radii(context)) {
        const std::vector<Json> cells = measure_grid(context, setting, candidates, radius, grid, dots);
        if (radius == 0.1 || radius == 0.3) hold_contest(context, setting, data, candidates, cells, radius, contest, goal);
      }
    }
    result.tables = {goal, contest, grid};
    result.figures.push_back(plot(dots));
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

  static AttackChoice attack_at(const ExperimentContext& context, const Setting& setting, double radius) {
    return {.attack = strong_attack(context), .metrics = {setting.top_k()}, .epsilon = radius};
  }

  static double validation_auc(const Candidate& candidate) { return candidate.member.trained.result.validation->auc.mean; }

  static std::vector<Json> measure_grid(ExperimentContext& context, const Setting& setting,
                                        const std::vector<Candidate>& candidates, double radius, ResultTable& table, Json& dots) {
    const std::string label = fmt::format("{}: grids, radius {}", setting.name(), radius);
    std::vector<Job> attacks, faithfulness, certificates;
    std::vector<std::size_t> smooth;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      CellSubject subject = subject_of(setting, candidates[i].member);
      subject.part = "validation";
      subject.samples = setting.choice_samples;
      attacks.push_back(attack_job(subject, attack_at(context, setting, radius), context.seed));
      faithfulness.push_back(measure_job(subject, "comp(remove=resample)", 0, context.seed));
      if (!candidates[i].method->is_softplus()) continue;
      smooth.push_back(i);
      certificates.push_back(measure_job(subject, fmt::format("no_swap_radius(k={})", setting.k), 0, context.seed));
    }
    const std::vector<Json> cells = context.compute(label, attacks);
    const std::vector<Json> faithful = context.compute(label + ", faithfulness", faithfulness);
    const std::vector<Json> certified = context.compute(label + ", certificates", certificates);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Standing found = standing(cells[i]);
      Value share;
      if (const auto place = std::find(smooth.begin(), smooth.end(), i); place != smooth.end())
        share.value = share_beyond(numbers(certified[static_cast<std::size_t>(place - smooth.begin())].at("values")), radius);
      const double area = validation_auc(candidates[i]);
      table.add({setting.dataset, candidates[i].method->name, candidates[i].weights, fmt::format("{}", radius)},
                {{.value = found.kept},
                 {.value = found.between},
                 {.value = found.specific},
                 share,
                 {.value = area},
                 {.value = defined_mean(numbers(faithful[i].at("values")))}});
      dots.push_back({{"subject", fmt::format("{}, radius {}", setting.dataset, radius)},
                      {"method", candidates[i].method->name},
                      {"weights", candidates[i].weights},
                      {"AUC", area},
                      {"P@8", found.kept},
                      {"between", found.between},
                      {"specific", found.specific}});
    }
    return cells;
  }

  static double share_beyond(const std::vector<double>& certified, double radius) {
    const auto beyond = std::count_if(certified.begin(), certified.end(), [&](double value) { return value >= radius; });
    return static_cast<double>(beyond) / static_cast<double>(certified.size());
  }

  // The best weights of each method by `specific`, within the loss of AUC where any are.
  static std::vector<const Candidate*> chosen(const std::vector<Candidate>& candidates, const std::vector<Json>& cells) {
    const auto vanilla =
        std::find_if(candidates.begin(), candidates.end(), [](const Candidate& one) { return one.method->name == "Vanilla"; });
    const double least = validation_auc(*vanilla) - kLoss;
    std::vector<const Candidate*> best;
    std::vector<std::pair<bool, double>> scores;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const double area = validation_auc(candidates[i]);
      const std::pair score(area >= least, area >= least ? standing(cells[i]).specific : area);
      if (best.empty() || best.back()->method != candidates[i].method) {
        best.push_back(&candidates[i]);
        scores.push_back(score);
      } else if (score > scores.back()) {
        best.back() = &candidates[i];
        scores.back() = score;
      }
    }
    return best;
  }

  static void hold_contest(ExperimentContext& context, const Setting& setting, const std::shared_ptr<const ExperimentData>& data,
                           const std::vector<Candidate>& candidates, const std::vector<Json>& cells, double radius,
                           ResultTable& table, ResultTable& goal) {
    const std::vector<const Candidate*> best = chosen(candidates, cells);
    const auto members = static_cast<std::size_t>(setting.members);
    std::vector<TrainOptions> options;
    for (const Candidate* one : best) {
      for (std::size_t seed = 0; seed < members; ++seed)
        options.push_back(training(setting, *one->method, one->weights, setting.epochs, context.seed + seed));
    }
    const std::vector<TrainedModel> trained = context.train(*data, options, setting.name() + ": contest");
    std::vector<Job> jobs;
    for (const TrainedModel& model : trained)
      jobs.push_back(attack_job(subject_of(setting, {data, model}), attack_at(context, setting, radius), context.seed));
    const std::vector<Json> attacked = context.compute(fmt::format("{}: contest, radius {}", setting.name(), radius), jobs);

    std::vector<std::vector<double>> specific(best.size()), areas(best.size());
    std::vector<Value> losses;
    std::size_t vanilla = 0, ours = 0;
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (best[i]->method->name == "Vanilla") vanilla = i;
      if (best[i]->method->name == kOurs) ours = i;
      for (std::size_t j = i * members; j < (i + 1) * members; ++j) {
        specific[i].push_back(standing(attacked[j]).specific);
        areas[i].push_back(trained[j].result.test->auc.mean);
      }
    }
    std::size_t rival = best.size();
    for (std::size_t i = 0; i < best.size(); ++i) {
      std::vector<double> kept, between, loss;
      for (std::size_t j = 0; j < members; ++j) {
        const Standing found = standing(attacked[i * members + j]);
        kept.push_back(found.kept);
        between.push_back(found.between);
        loss.push_back(areas[i][j] - areas[vanilla][j]);
      }
      losses.push_back(over_seeds(loss));
      table.add({setting.dataset, fmt::format("{}", radius), best[i]->method->name, best[i]->weights},
                {over_seeds(specific[i]), over_seeds(kept), over_seeds(between), over_seeds(areas[i]), losses.back()});
      if (i == ours || losses.back().value < -kLoss) continue;
      if (rival == best.size() || defined_mean(specific[i]) > defined_mean(specific[rival])) rival = i;
    }
    std::vector<double> ahead;
    for (std::size_t j = 0; j < members; ++j) ahead.push_back(specific[ours][j] - specific[rival][j]);
    goal.add({setting.dataset, fmt::format("{}", radius), best[rival]->method->name}, {over_seeds(ahead)});
  }

  static Figure plot(const Json& dots) {
    Json spec = Json::parse(R"json({"columns": 4, "facet": {"field": "subject", "type": "nominal", "title": null}, "spec": {
      "width": 200, "height": 170, "mark": {"type": "point", "filled": true, "size": 45}, "encoding": {
      "x": {"field": "AUC", "type": "quantitative", "scale": {"zero": false}},
      "y": {"field": "specific", "type": "quantitative", "title": "specific P@8"},
      "color": {"field": "method", "type": "nominal", "title": null},
      "tooltip": [{"field": "method"}, {"field": "weights"}, {"field": "AUC"}, {"field": "P@8"}, {"field": "between"},
      {"field": "specific"}]}}, "resolve": {"scale": {"x": "independent", "y": "independent"}}})json");
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

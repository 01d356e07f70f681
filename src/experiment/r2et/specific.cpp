// r2et/specific: who is robust and specific, by explanations that depend on valid rows alone. Its verdict: specific_claim.cpp.
#include "specific.h"

#include <algorithm>

#include <fmt/format.h>

#include "holdfast/core/number.h"
#include "holdfast/train/objective.h"

namespace holdfast::experiment::paper::r2et {
namespace robust {

const char* const kBestVanilla = "Vanilla, best epoch";

// What the attacker may do to the rows of a table.
struct Reach {
  double radius = 0;
  std::optional<std::int64_t> switches = {};  // nothing for a table without categories
};

// Weights of a method, and the networks that were trained with them.
struct Entry {
  Method method;
  std::string weights;
  std::vector<Member> members = {};
  std::vector<Row> rows = {};
};

bool is_convex(const Method& method, const Setting& setting) {
  return parse_method_call(recipes().make(recipe_call(method, setting))->objective).name == "convex";
}

// Gates and gauges need something to be built from.
bool can_be_built(const Method& method, const Schema& schema) {
  const std::string name = parse_method_call(method.recipe).name;
  if (name != "gated_linear" && name != "gauged_linear") return true;
  if (method.recipe.find("steps") == std::string::npos) return !schema.groups.empty();
  constexpr double kRoom = 31;  // of n-32-2
  return std::ranges::any_of(schema.table_features(), [&](const TableFeature& feature) {
    const Feature& known = schema.features[static_cast<std::size_t>(feature.columns[0])];
    return !feature.is_category && known.step > 0 && known.high > known.low && (known.high - known.low) / known.step < kRoom;
  });
}

void measure(PaperRun& run, const Setting& setting, std::vector<Entry>& entries, const Reach& reach, const std::string& part) {
  CellBatch batch(run.seed);
  for (const Entry& entry : entries) {
    for (const Member& member : entry.members) {
      StudiedNetwork subject = subject_of(setting, member);
      if (part == "validation") subject.rows = first_rows(member.data->data, part, setting.choice_samples);
      const Schema& schema = member.data->data.schema;
      const std::int64_t k = explainers().make(subject.explainer)->usual_top(schema).value();
      PaperAttack attack = attack_of(setting, setting.strong, {fmt::format("top_k(k={})", k)}, "worst");
      attack.epsilon = reach.radius;
      attack.valid = true;
      attack.switches = reach.switches;
      batch.attack(subject, attack);
    }
  }
  batch.run(run.context, fmt::format("{}: {}, radius {}{}", setting.name, part, reach.radius,
                                     reach.switches ? fmt::format(", {} switches", *reach.switches) : ""));
  std::size_t next = 0;
  for (Entry& entry : entries) {
    entry.rows.clear();
    for (std::size_t i = 0; i < entry.members.size(); ++i) {
      const MetricNumbers& found = batch.attacked(next++).metrics.front();
      const double kept = defined_mean(found.values);
      entry.rows.push_back({kept, found.between, kept - found.between, found.effective_sets, found.own_advantage});
    }
  }
}

// Short trainings of all weights, looked at on validation samples; the best weights of each method.
std::vector<Entry> choose_entries(PaperRun& run, const Setting& setting, const std::shared_ptr<const ExperimentData>& data,
                                  const Reach& reach) {
  std::vector<Entry> candidates;
  std::vector<TrainOptions> options;
  for (const Method& method : methods_for(setting, run.plan.methods)) {
    if (!can_be_built(method, data->data.schema)) continue;
    std::vector<std::string> grid = method.grid.empty() ? std::vector<std::string>{""} : method.grid;
    if (run.context.quick()) grid.resize(1);
    for (const std::string& weights : grid) {
      candidates.push_back({method, weights});
      options.push_back(training(setting, method, weights, setting.short_epochs, run.seed));
    }
  }
  std::vector<TrainedModel> trained = run.context.train(*data, options, setting.name + ": weights to choose from");
  for (std::size_t i = 0; i < trained.size(); ++i) candidates[i].members.push_back({data, std::move(trained[i])});
  measure(run, setting, candidates, reach, "validation");
  double least = 0;
  std::vector<CandidateScore> scores;
  for (const Entry& one : candidates) {
    const double area = one.members.front().trained.validation->auc.mean;
    const Row& row = one.rows.front();
    scores.push_back({one.method.name, area, row.lift, row.between, is_robust_and_specific({row}) == Judgement::kHolds});
    if (one.method.name == kBestVanilla) least = area - kMostLoss;
  }
  std::vector<Entry> chosen;
  for (const std::size_t i : choose(scores, least)) chosen.push_back({candidates[i].method, candidates[i].weights});
  return chosen;
}

// The chosen weights with every seed; a convex optimum is the same for all seeds and found once.
void train_entries(PaperRun& run, const Setting& setting, const std::shared_ptr<const ExperimentData>& data,
                   std::vector<Entry>& entries) {
  std::vector<std::size_t> convex, others;
  for (std::size_t i = 0; i < entries.size(); ++i) (is_convex(entries[i].method, setting) ? convex : others).push_back(i);
  Setting once = setting;
  once.members = 1;
  using Places = std::pair<const Setting*, const std::vector<std::size_t>*>;
  for (const auto& [own, places] : {Places(&once, &convex), Places(&setting, &others)}) {
    auto trained = train_members(
        run.context, *data, *own, places->size(),
        [&, places = places](std::size_t i, std::uint64_t member) {
          const Entry& entry = entries[(*places)[i]];
          return training(setting, entry.method, entry.weights, setting.epochs, run.seed + member);
        },
        setting.name + ": training");
    for (std::size_t i = 0; i < places->size(); ++i) {
      for (TrainedModel& one : trained[i]) entries[(*places)[i]].members.push_back({data, std::move(one)});
    }
  }
}

std::vector<double> areas_of(const Entry& entry) {
  std::vector<double> areas;
  for (const Member& member : entry.members) areas.push_back(member.trained.test->auc.mean);
  return areas;
}

// AUC of an entry minus the best Vanilla's: paired by seed, or against its mean where the entry is the same for every seed.
std::vector<double> losses_of(const Entry& entry, const Entry& vanilla) {
  std::vector<double> own = areas_of(entry), other = areas_of(vanilla), differences;
  if (own.size() == 1) own.assign(other.size(), own.front());
  for (std::size_t i = 0; i < std::min(own.size(), other.size()); ++i) differences.push_back(own[i] - other[i]);
  return differences;
}

Networks networks_of(const Entry& entry, const Entry& vanilla) {
  return {entry.method.name, entry.rows, losses_of(entry, vanilla)};
}

void add_rows(ResultTable& table, const Setting& setting, const Reach& reach, const std::vector<Entry>& entries,
              const Entry& vanilla) {
  for (const Entry& entry : entries) {
    const Judgement verdict = is_robust_and_specific(entry.rows);
    const auto mean = [&](double Row::*number) { return over_seeds(column(entry.rows, number)); };
    table.add({setting.dataset, fmt::format("{}", reach.radius), reach.switches ? fmt::format("{}", *reach.switches) : "-",
               entry.method.name, entry.weights,
               verdict == Judgement::kHolds         ? "yes"
               : verdict == Judgement::kDoesNotHold ? "no"
                                                    : "open"},
              {share(mean(&Row::kept)), share(mean(&Row::between)), mean(&Row::lift), mean(&Row::sets), mean(&Row::own),
               share(over_seeds(areas_of(entry))), over_seeds(losses_of(entry, vanilla))});
  }
}

}  // namespace robust

void analyse_specific(PaperRun& run) {
  std::vector<robust::TableFinding> tables;
  for (const Setting& setting : run.settings) {
    const auto data = run.context.dataset(setting.data);
    if (!data) continue;
    run.result.settings["attack"] = setting.strong;
    const bool has_categories = !data->data.schema.groups.empty();
    const auto switches = [&](std::int64_t count) { return has_categories ? std::optional(count) : std::nullopt; };
    const double first = parse_quotient(run.plan.radii.front().name).value();
    std::vector<robust::Entry> entries = robust::choose_entries(run, setting, data, {first, switches(0)});
    robust::train_entries(run, setting, data, entries);
    const auto vanilla =
        std::ranges::find_if(entries, [](const robust::Entry& one) { return one.method.name == robust::kBestVanilla; });
    for (const NamedCall& named : run.plan.radii) {
      for (const std::int64_t count : {0, 1}) {
        if (count > 0 && !has_categories) continue;
        const robust::Reach reach{parse_quotient(named.name).value(), switches(count)};
        robust::measure(run, setting, entries, reach, "test");
        robust::add_rows(run.table("verdict"), setting, reach, entries, *vanilla);
        if (reach.radius != first || count > 0) continue;
        std::vector<robust::Networks> methods;
        for (const robust::Entry& entry : entries) methods.push_back(robust::networks_of(entry, *vanilla));
        tables.push_back(robust::judge_table(setting.dataset, methods));
      }
    }
  }
  if (!tables.empty()) run.judge("specific", robust::judge(tables), run.fewest_members());
}

}  // namespace holdfast::experiment::paper::r2et

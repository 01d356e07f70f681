// r2et/table4: trained from random weights against retrained from Vanilla: at most 10 epochs, stopped when the P@k of its
// rankings against the starting network's falls below one half or the AUC falls by more than .01 (the paper says "drops
// markedly"). Softplus is left out, as in the paper: the starting network has ReLU.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "experiments.h"
#include "orderings.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kTable4Info{
    .name = "r2et/table4", .summary = "trained from random weights against retrained from Vanilla, with CL", .citation = kPaper};

constexpr std::int64_t kEpochs = 10;

std::vector<Method> retrained_methods() {
  std::vector<Method> methods;
  for (const char* name : {"Vanilla", "WD", "Est-H", "Exact-H", "SSR", "R2ET\\H", "R2ET-mm\\H", "R2ET", "R2ET-mm"})
    methods.push_back(method(name));
  methods.insert(methods.begin() + 2, {.name = "CL", .paper = "CL", .recipe = "cl"});
  return methods;
}

struct Retrained {
  Cells random, again;                    // er cells; CL has no random one
  std::vector<std::vector<double>> kept;  // P@k of clean rankings against the starting network's, by method and member
  std::vector<Entry> entries;
  std::vector<std::vector<double>> epochs;  // that were kept
};

// What the claim is about, tables as in the paper.
struct Findings {
  std::vector<Case> reached = {}, kept = {}, hessian_on_bank = {};
  std::int64_t seeds = 0;
};

class Table4 final : public Experiment {
 public:
  explicit Table4(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "Trained from random weights and retrained from Vanilla", .paper = kPaper};
    result.settings["choice"] = kChoiceRule;
    result.settings["retraining"] =
        "at most 10 epochs from Vanilla of the same seed, the last that keeps P@k >= .5 against its rankings and AUC "
        "within .01; a tenth of the learning rate";
    ResultTable table{
        .name = "retraining",
        .caption =
            "P@8 under er: trained from random weights, and retrained from Vanilla; rankings kept: P@8 of the "
            "retrained network's clean "
            "maps against the starting network's (validation samples); epochs kept: 0 is the starting network.",
        .keys = {"dataset", "method"},
        .columns = {"P@8, random", "P@8, retrained", "rankings kept", "epochs kept", "AUC, retrained", kCounts[0], kCounts[1]}};
    Findings found;
    for (const Setting& setting : settings(context, Which::kTabular)) {
      if (setting.encoding == "projected") continue;
      const Retrained all = retrain(context, setting);
      for (std::size_t i = 0; i < all.entries.size(); ++i) {
        const Method& one = *all.entries[i].method;
        Value random = all.random[i].empty() ? Value{} : attacked_value(all.random[i], context.seed);
        Value again = attacked_value(all.again[i], context.seed);
        random.published = published("random_state", one.paper, setting.dataset);
        again.published = published("retrained", one.paper, setting.dataset);
        const Value kept = share(over_seeds(all.kept[i]));
        std::vector<Value> values{random, again, kept, over_seeds(all.epochs[i]), test_auc(all.entries[i])};
        add_counts(values, all.again[i]);
        table.add({setting.name(), one.name}, std::move(values));
      }
      if (!all.entries.empty() && as_encoded(setting.encoding)) add_findings(setting, all, context.seed, found);
    }
    result.tables.push_back(table);
    if (!found.reached.empty()) result.verdicts = {judge(found)};
    return result;
  }

 private:
  static Retrained retrain(ExperimentContext& context, const Setting& setting) {
    static const std::vector<Method> methods = retrained_methods();
    Retrained all;
    const std::vector<Entry> random = zoo(context, setting, paper_methods(), Chooser::kEr);
    if (random.empty()) return all;
    const Entry& start = *find(random, "Vanilla");
    std::vector<TrainOptions> options;
    for (const Method& one : methods) {
      const Entry* known = find(random, one.name);
      all.entries.push_back({&one, known == nullptr ? "" : known->weights, {}});
      for (const Member& member : start.members) {
        TrainOptions training =
            r2et::training(setting, one, all.entries.back().weights, std::min(kEpochs, setting.epochs), member.trained.seed);
        training.learning_rate /= 10;
        training.retrain = {.from = member.trained.file, .top_k = setting.k};
        options.push_back(training);
      }
    }
    const std::size_t members = start.members.size();
    std::vector<TrainedModel> trained = context.train(*start.members.front().data, options, setting.name() + ": retraining");
    for (std::size_t i = 0; i < trained.size(); ++i) {
      Entry& entry = all.entries[i / members];
      if (i % members == 0) {
        all.kept.emplace_back();
        all.epochs.emplace_back();
      }
      all.kept.back().push_back(ranking_kept(trained[i]));
      all.epochs.back().push_back(static_cast<double>(trained[i].kept_epoch));
      entry.members.push_back({start.members[i % members].data, std::move(trained[i])});
    }
    const auto er = [&](const std::vector<Entry>& entries) {
      return compute(context, setting.name() + ": er", entries, [&](const Member& member) {
        return attack_cell(setting, member, setting.er(), Select::kLast, context.seed);
      });
    };
    all.again = er(all.entries);
    const Cells before = er(random);
    for (const Entry& entry : all.entries) {
      const Entry* known = find(random, entry.method->name);
      all.random.push_back(known == nullptr ? std::vector<Json>{} : before[static_cast<std::size_t>(known - random.data())]);
    }
    return all;
  }

  // Of the epoch that was kept; 1 where that is the start.
  static double ranking_kept(const TrainedModel& result) {
    for (const EpochRecord& record : result.history) {
      if (record.epoch == result.kept_epoch) return record.ranking_kept.value_or(std::nan(""));
    }
    return 1;
  }

  static constexpr double kReach = 0.02;  // as high as the paper's: no more than this below
  static constexpr double kKeeps = 0.8;   // of the starting network's top 8
  static constexpr double kFails = 0.02;  // gain over the starting network: less is a failure

  static void add_findings(const Setting& setting, const Retrained& all, std::uint64_t seed, Findings& found) {
    const auto place_of = [&](const char* name) {
      return static_cast<std::size_t>(find(all.entries, name) - all.entries.data());
    };
    const std::size_t ours = place_of("R2ET\\H");
    Value reached = over_seeds(metric_values(all.again[ours]), seed);
    const double theirs = published("retrained", "R2ET\\H", setting.dataset).value_or(std::nan(""));
    reached.value -= theirs;
    if (reached.low) *reached.low -= theirs;
    if (reached.high) *reached.high -= theirs;
    found.reached.push_back({setting.dataset, reached});
    found.kept.push_back({setting.dataset, share(over_seeds(all.kept[ours]))});
    found.seeds = setting.members;
    if (setting.dataset != "Bank") return;
    for (const char* name : {"Exact-H", "SSR"}) {
      found.hessian_on_bank.push_back({name, difference_over_seeds(metric_values(all.again[place_of(name)]),
                                                                   metric_values(all.random[place_of("Vanilla")]), seed)});
    }
  }

  // Three parts: it reaches the paper's numbers, it keeps the ranking, and the Hessian-only methods gain nothing on Bank.
  static Verdict judge(const Findings& found) {
    Tally reaches, keeps, fail;
    const Case* lowest = &found.reached.front();
    for (const Case& one : found.reached) {
      reaches.add_above(one.value, -kReach);
      if (one.value.value < lowest->value.value) lowest = &one;
    }
    for (const Case& one : found.kept) keeps.add_above(one.value, kKeeps);
    for (const Case& one : found.hessian_on_bank) fail.add_below(one.value, kFails);
    return make_verdict(
        "R9", "retraining: R2ET\\H keeps the starting ranking and reaches 100 / 100 / 97.8; Exact-H and SSR fail on Bank",
        combined({judge_all(reaches), judge_all(keeps), judge_all(fail)}),
        fmt::format(
            "Number: P@8 under er of retrained R2ET\\H minus the paper's, on {}, where it is lowest; tables as in the "
            "paper. It is called as high down to -{}: {} ({}). Its share of the starting network's top 8, which keeps the "
            "ranking above {}: {} ({}). Exact-H and SSR on Bank, gain of P@8 over the starting network, which they fail "
            "below {}: {} ({}).",
            lowest->name, kReach, reaches.words(), words(found.reached), kKeeps, keeps.words(), words(found.kept), kFails,
            fail.words(), words(found.hessian_on_bank)),
        lowest->value, found.seeds);
  }
};

}  // namespace

void add_table4(Registry<Experiment>& registry) {
  registry.add<Table4>(kTable4Info);
}

}  // namespace holdfast::r2et

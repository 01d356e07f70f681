// r2et/table4: networks of every method retrained from Vanilla.
#include "claims.h"

#include <algorithm>

#include <fmt/format.h>

namespace holdfast::experiment::paper::r2et {
namespace {

constexpr std::int64_t kEpochs = 10;

struct Retrained {
  std::vector<MethodNetworks> networks;
  std::vector<std::vector<double>> kept,
      epochs;                          // by method and network: P@k against the starting rankings, epochs that were kept
  std::vector<Numbers> random, again;  // P@k under er before and after; CL has none before
};

// P@k of the epoch that was kept against the starting rankings; 1 where that epoch is the start.
double ranking_kept(const TrainedModel& result) {
  for (const EpochRecord& record : result.history) {
    if (record.epoch == result.kept_epoch) return record.ranking_kept.value_or(kUndefined);
  }
  return 1;
}

void train_again(PaperRun& run, const Setting& setting, const std::vector<MethodNetworks>& random, Retrained& all) {
  const MethodNetworks& start = *find(random, "Vanilla");
  for (const char* name : {"Vanilla", "WD", "CL", "Est-H", "Exact-H", "SSR", "R2ET\\H", "R2ET-mm\\H", "R2ET", "R2ET-mm"}) {
    const MethodNetworks* known = find(random, name);
    all.networks.push_back({run.paper.method(name), known == nullptr ? "" : known->weights, {}});
  }
  const auto options_of = [&](std::size_t i, std::uint64_t place) {
    const Member& member = start.members[place];
    const MethodNetworks& own = all.networks[i];
    TrainOptions training =
        paper::training(setting, own.method, own.weights, std::min(kEpochs, setting.epochs), member.trained.seed);
    training.learning_rate /= 10;
    training.retrain = {.from = member.trained.file, .top_k = setting.k};
    return training;
  };
  auto trained = train_members(run.context, *start.members.front().data, setting, all.networks.size(), options_of,
                               setting.name + ": retraining");
  all.kept.resize(all.networks.size());
  all.epochs.resize(all.networks.size());
  for (std::size_t i = 0; i < trained.size(); ++i) {
    for (std::size_t j = 0; j < trained[i].size(); ++j) {
      all.kept[i].push_back(ranking_kept(trained[i][j]));
      all.epochs[i].push_back(static_cast<double>(trained[i][j].kept_epoch));
      all.networks[i].members.push_back({start.members[j].data, std::move(trained[i][j])});
    }
  }
}

// `random` are the rows of the hidden table: networks trained from random weights.
Retrained retrain(PaperRun& run, const Setting& setting, const std::vector<const MeasuredRow*>& random) {
  Retrained all;
  train_again(run, setting, run.networks(setting), all);
  CellBatch batch(run.seed);
  const std::string metric = setting.fill("top_k(k={k})");
  for (const MethodNetworks& one : all.networks) {
    for (const Member& member : one.members)
      batch.attack(subject_of(setting, member), attack_of(setting, setting.fill("er(steps={steps})"), {metric, "l2"}, "last"));
  }
  batch.run(run.context, setting.name + ": er");
  std::size_t next = 0;
  for (const MethodNetworks& one : all.networks) {
    std::vector<AttackedCell> cells;
    for (std::size_t i = 0; i < one.members.size(); ++i) cells.push_back(batch.attacked(next++));
    all.again.push_back(numbers_of(cells, metric));
    const auto before = std::ranges::find_if(random, [&](const MeasuredRow* row) { return row->method() == one.method.name; });
    all.random.push_back(before == random.end() ? Numbers{} : (*before)->numbers[0]);
  }
  return all;
}

void add_rows(PaperRun& run, const Setting& setting, const Retrained& all) {
  for (std::size_t i = 0; i < all.networks.size(); ++i) {
    const Method& method = all.networks[i].method;
    Value random = all.random[i].is_empty() ? Value{} : value_of(all.random[i], run.seed),
          again = value_of(all.again[i], run.seed);
    random.published = run.paper.published("random_state", method.paper, setting.dataset);
    again.published = run.paper.published("retrained", method.paper, setting.dataset);
    double samples = 0, undefined = 0;
    for (const std::vector<double>& values : all.again[i].values) {
      for (const double value : values) (std::isnan(value) ? undefined : samples) += 1;
    }
    run.table("retraining")
        .add({setting.name, method.name}, {random,
                                           again,
                                           share(over_seeds(all.kept[i])),
                                           over_seeds(all.epochs[i]),
                                           share(over_seeds(test_aucs(all.networks[i]))),
                                           {.value = samples},
                                           {.value = undefined}});
  }
}

// Retraining watches the AUC itself. So a method counts if the dataset does and its weight is admissible: that its networks from
// random weights lose AUC says nothing about the retrained ones.
bool is_judged(const std::vector<MethodNetworks>& random, const char* method) {
  const MethodNetworks* own = find(random, method);
  return own != nullptr && own->standing != kNotCounted && own->standing != kNoWeight;
}

// What the claim is about, tables as in the paper.
void add_findings(PaperRun& run, const Setting& setting, const Retrained& all, RetrainingFindings& found) {
  const auto place_of = [&](const char* name) {
    return static_cast<std::size_t>(find(all.networks, name) - all.networks.data());
  };
  const std::vector<MethodNetworks>& random = run.networks(setting);
  if (!is_judged(random, "R2ET\\H")) return;
  const std::size_t ours = place_of("R2ET\\H");
  Value reached = plain_value(all.again[ours], run.seed);
  const double theirs = run.paper.published("retrained", "R2ET\\H", setting.dataset).value_or(kUndefined);
  reached.value -= theirs;
  if (reached.low) *reached.low -= theirs;
  if (reached.high) *reached.high -= theirs;
  found.reached.push_back({setting.dataset, reached});
  found.kept.push_back({setting.dataset, share(over_seeds(all.kept[ours]))});
  if (setting.dataset != "Bank") return;
  for (const char* name : {"Exact-H", "SSR"}) {
    if (is_judged(random, name))
      found.hessian_on_bank.push_back({name, difference(all.again[place_of(name)], all.random[place_of("Vanilla")], run.seed)});
  }
}

}  // namespace

Finding judge_retraining(const RetrainingFindings& found, const std::vector<double>& limits) {
  const Tally reaches = tally_above(found.reached, -limits[0]), keeps = tally_above(found.kept, limits[1]);
  Tally fail;
  for (const Case& one : found.hessian_on_bank) fail.add_below(one.value, limits[2], one.name);
  const Case& lowest = *std::ranges::min_element(found.reached, {}, [](const Case& one) { return one.value.value; });
  const auto text = [](double number) { return fmt::format("{}", number); };
  return found_in({part_of_all("R2ET\\H reaches the paper's numbers", reaches),
                   part_of_all("it keeps the starting ranking", keeps), part_of_all("Exact-H and SSR fail on Bank", fail)},
                  {{"lowest", lowest.name},
                   {"reach", text(limits[0])},
                   {"reaches", reaches.words()},
                   {"reached", words(found.reached)},
                   {"keep", text(limits[1])},
                   {"keeps", keeps.words()},
                   {"kept", words(found.kept)},
                   {"gain", text(limits[2])},
                   {"fail", fail.words()},
                   {"gains", words(found.hessian_on_bank)}},
                  lowest.value);
}

void analyse_table4(PaperRun& run) {
  RetrainingFindings found;
  for (const auto& rows : run.measured("er").by_setting()) {
    const Setting& setting = *rows.front()->setting;
    const Retrained all = retrain(run, setting, rows);
    add_rows(run, setting, all);
    if (is_papers_encoding(setting)) add_findings(run, setting, all, found);
  }
  if (!found.reached.empty()) {
    run.judge("R9", judge_retraining(found, run.claim("R9").limits), run.fewest_members());
  } else if (!run.measured("er").rows.empty()) {
    run.leave_open("R9", "On no table do Vanilla's networks count and has R2ET\\H an admissible weight.");
  }
}

}  // namespace holdfast::experiment::paper::r2et

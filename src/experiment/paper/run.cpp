#include "run.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/number.h"
#include "holdfast/core/words.h"

namespace holdfast::experiment::paper {

PaperRun::PaperRun(ExperimentContext& run_context, const Plan& of, Words given)
    : context(run_context),
      plan(of),
      paper(paper_named(of.paper, run_context.scale)),
      options(std::move(given)),
      seed(run_context.seed) {
  for (const Setting& setting : plan.settings) {
    if (context.wants(setting.name)) settings.push_back(setting);
  }
  result.title = plan.title;
  result.paper = paper.citation;
  for (const TablePlan& table : plan.tables) {
    tables_[table.name] = table.empty();
    tables_[table.name].caption = fill(table.caption, options);
    measured_[table.name] = {&table, {}};
  }
  for (const FigurePlan& figure : plan.figures)
    figures_[figure.name] = {.name = figure.name, .caption = fill(figure.caption, options)};
}

const std::vector<MethodNetworks>& PaperRun::networks(const Setting& setting) {
  return networks(setting, plan.choice);
}

const std::vector<MethodNetworks>& PaperRun::networks(const Setting& setting, const std::string& choice) {
  const auto key = std::pair(setting.name, choice);
  if (!networks_.contains(key)) networks_[key] = train_networks(context, paper, setting, plan.methods, choice);
  return networks_.at(key);
}

const MeasuredTable& PaperRun::measured(const std::string& name) const {
  HOLDFAST_CHECK(measured_.contains(name));
  return measured_.at(name);
}

ResultTable& PaperRun::table(const std::string& name) {
  HOLDFAST_CHECK(tables_.contains(name));
  return tables_.at(name);
}

Figure& PaperRun::figure(const std::string& name) {
  HOLDFAST_CHECK(figures_.contains(name));
  return figures_.at(name);
}

const Claim& PaperRun::claim(const std::string& id) const {
  const auto found = std::ranges::find(plan.claims, id, &Claim::id);
  HOLDFAST_CHECK(found != plan.claims.end());
  return *found;
}

void PaperRun::judge(const std::string& id, const Finding& finding, std::int64_t seeds) {
  Words words = finding.words;
  words.insert(options.begin(), options.end());
  const Claim& declared = claim(id);
  std::string why = fill(declared.why, words);
  for (const std::string& more : {finding.settles, finding.parts.size() > 1 ? in_words(finding.parts) : ""})
    if (!more.empty()) why += (why.ends_with(' ') ? "" : " ") + more;
  verdicts_[id] = make_verdict(id, fill(declared.says, words), finding.judgement, why, finding.number, seeds);
  verdicts_[id].parts = finding.parts;
  if (finding.judgement == Judgement::kNotDecided)
    verdicts_[id].times = finding.parts.empty() ? finding.times : times_of(finding.parts);
}

void PaperRun::leave_open(const std::string& id, const std::string& why) {
  verdicts_[id] = make_verdict(id, fill(claim(id).says, options), Judgement::kNotDecided, why, {}, 0);
}

Finding found_in(std::vector<ClaimPart> parts, Words words, const Value& number) {
  const Judgement judgement = combined(parts);
  return {judgement, std::move(words), number, std::move(parts)};
}

std::int64_t PaperRun::fewest_members() const {
  std::int64_t fewest = 0;
  for (const Setting& setting : settings) {
    if (setting.model.empty()) fewest = fewest == 0 ? setting.members : std::min(fewest, setting.members);
  }
  return fewest;
}

void PaperRun::leave_notes() {
  for (const Note& note : plan.notes) {
    if (note.settings.empty()) context.note(note.text);
    for (const Setting& setting : settings) {
      if (setting.is_one_of(note.settings)) context.note(setting.fill(note.text));
    }
  }
}

// Chosen weights, by choice where there are several; settings without a choice are recorded whole.
void PaperRun::record_settings() {
  for (const auto& [name, text] : plan.record) {
    const std::size_t dot = name.find('.');  // "gauntlet.effort" is a field of a field
    (dot == std::string::npos ? result.settings[name] : result.settings[name.substr(0, dot)][name.substr(dot + 1)]) = text;
  }
  for (const Setting& setting : settings) {
    if (plan.choice.empty()) {
      record_whole(setting);
      continue;
    }
    Json by_choice = Json::object();
    for (const auto& [key, all] : networks_) {
      if (all.empty() || key.first != setting.name) continue;
      Json& weights = by_choice[key.second] = Json::object();
      for (const MethodNetworks& one : all) {
        if (!one.weights.empty()) weights[one.method.name] = one.weights;
        if (!one.counts()) result.settings["decides nothing"][setting.name][one.method.name] = one.standing;
      }
    }
    if (!by_choice.empty()) result.settings["weights"][setting.name] = by_choice.size() == 1 ? by_choice.front() : by_choice;
  }
}

void PaperRun::record_whole(const Setting& setting) {
  if (networks(setting).empty()) return;
  Json& entry = result.settings[setting.name] = settings_json(setting);
  for (const MethodNetworks& one : networks(setting)) {
    if (one.method.recipe.empty()) continue;
    const std::string recipe = recipe_call(one.method, setting);
    entry["trainings"][one.method.name]["recipe"] = recipe;
    if (const double evaluations = gradient_evaluations(recipe); !std::isnan(evaluations))
      entry["trainings"][one.method.name]["gradient evaluations a sample"] = evaluations;
  }
}

void PaperRun::run() {
  leave_notes();
  measure_tables();
  if (!plan.analysis.empty()) analyses_of(plan.paper).at(plan.analysis)(*this);
  record_settings();
  judge_declared();
  draw_declared();
  for (const TablePlan& table : plan.tables) {
    if (!table.is_hidden) result.tables.push_back(std::move(tables_.at(table.name)));
  }
  for (const FigurePlan& figure : plan.figures) result.figures.push_back(std::move(figures_.at(figure.name)));
  for (const Claim& claim : plan.claims) {
    if (!verdicts_.contains(claim.id)) continue;
    Verdict& verdict = result.verdicts.emplace_back(verdicts_.at(claim.id));
    if (!claim.plain.empty()) verdict.plain = plain_sentence(verdict.judgement, claim.plain);
  }
}

namespace {

class PaperExperiment final : public Experiment {
 public:
  PaperExperiment(std::string text, std::string where, const Options& options)
      : Experiment(options.canonical()), text_(std::move(text)), where_(std::move(where)) {
    const Plan plan = read_plan(text_, where_, Scale::kQuick);
    for (const OptionSpec& option : plan.info.options) options_[option.name] = options.word(option.name);
    // A mistake at any scale is found now.
    for (const Scale scale : {Scale::kQuick, Scale::kCpu, Scale::kFull})
      check_plan(read_plan(text_, where_, scale, options_), paper_named(plan.paper, scale), options_);
    const auto is_given = [&](const std::string& option) { return options.given(option); };
    if (std::ranges::any_of(plan.together, is_given) && !std::ranges::all_of(plan.together, is_given))
      usage_error("{}: give {}=FILE together", name(), fmt::join(plan.together, "=FILE and "));
  }

  ExperimentResult run(ExperimentContext& context) const override {
    const Plan plan = read_plan(text_, where_, context.scale, options_);
    if (!context.looks.empty()) return run_looks(context, plan, options_);
    PaperRun run(context, plan, options_);
    run.run();
    return std::move(run.result);
  }

 private:
  std::string text_, where_;
  Words options_;
};

}  // namespace

std::unique_ptr<Experiment> make_paper_experiment(const std::string& text, const std::string& where, const Options& options) {
  return std::make_unique<PaperExperiment>(text, where, options);
}

}  // namespace holdfast::experiment::paper

// A run of an experiment that a TOML file describes: networks are trained, the tables' cells computed, and what is left is done
// by the experiment's own C++ function, where it has one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../judging.h"
#include "networks.h"
#include "numbers.h"
#include "plan.h"

namespace holdfast::experiment::paper {

// A row of a table with the numbers behind its values.
struct MeasuredRow {
  const Setting* setting;
  const MethodNetworks* networks;
  Words words;                   // the setting's fields, method, paper, weights, explainer, attack and radius
  std::vector<Numbers> numbers;  // one for each column; empty where the row has none
  std::vector<Value> values;

  const std::string& method() const { return networks->method.name; }
};

struct MeasuredTable {
  const TablePlan* plan;
  std::vector<MeasuredRow> rows;

  std::size_t column(const std::string& name) const;
  const Numbers& numbers(const MeasuredRow& row, const std::string& name) const { return row.numbers[column(name)]; }
  // Rows of each setting, in order.
  std::vector<std::vector<const MeasuredRow*>> by_setting() const;
  // The row whose words differ from the row's in these alone; null where there is none.
  const MeasuredRow* like(const MeasuredRow& row, const Words& changes) const;
};

// What a claim comes to: the judgement, the words that its `says` and `why` leave open, and the number that decides.
struct Finding {
  Judgement judgement = Judgement::kNotDecided;
  Words words = {};
  Value number = {};
  std::vector<ClaimPart> parts = {};  // of a claim that says several things
  std::string settles = {};           // of one that says one: which cases decide it, or what would
  std::optional<double> times = {};   // of one that is open: so many times as many seeds would decide it
};
// The finding of a claim in several parts.
Finding found_in(std::vector<ClaimPart> parts, Words words, const Value& number);

// Whether the words meet all conditions: "attack=top_t|mass_center".
bool meets(const Words& words, const std::vector<std::string>& conditions);

class PaperRun {
 public:
  PaperRun(ExperimentContext& context, const Plan& plan, Words options);
  PaperRun(const PaperRun&) = delete;

  ExperimentContext& context;
  const Plan& plan;
  const Paper& paper;
  const Words options;
  const std::uint64_t seed;
  std::vector<Setting> settings;  // those that are wanted and whose data is there
  ExperimentResult result;

  // Trained once; empty where the dataset is missing. The plan's methods and choice where none are given.
  const std::vector<MethodNetworks>& networks(const Setting& setting);
  const std::vector<MethodNetworks>& networks(const Setting& setting, const std::string& choice);

  // Tables as they are declared: a measured one, and the result's, to which an analysis adds rows.
  const MeasuredTable& measured(const std::string& name) const;
  // Rows that were not measured by `run`: what analyses and claims make of given numbers can be tested.
  void set_rows(const std::string& table, std::vector<MeasuredRow> rows) { measured_.at(table).rows = std::move(rows); }
  ResultTable& table(const std::string& name);
  void judge(const std::string& claim, const Finding& finding, std::int64_t seeds);
  // Leaves a claim open because nothing that counts speaks of it.
  void leave_open(const std::string& id, const std::string& why);
  Verdict& verdict(const std::string& claim) { return verdicts_.at(claim); }  // after it was judged
  const Claim& claim(const std::string& id) const;
  // The cases of a claim that is declared on a table.
  std::vector<Case> cases_of(const Claim& claim) const;
  // All cases must be above the claim's limit. The number is the share of the cases that are (Tally::share), or that of the only
  // one. The why says what is held against the limit, how many cases speak for the claim and against it, has `also`, and all
  // cases.
  void judge_all_above(const std::string& claim, const std::vector<Case>& cases, const std::string& also, std::int64_t seeds,
                       Words words = {});
  // Draws points, or panels, in a declared figure.
  Figure& figure(const std::string& name);
  void draw(const std::string& name, const Json& points);
  // "Test accuracy on mnist: natural 0.984 [0.981, 0.987], pgd ...", for all settings.
  std::string accuracies_in_words();
  // The fewest trained networks behind a number; 0: none were trained.
  std::int64_t fewest_members() const;

  // All of it; the result is then whole.
  void run();

 private:
  struct Request;
  void leave_notes();
  void record_settings();
  void record_whole(const Setting& setting);
  void measure_tables();
  std::vector<MeasuredRow> rows_of(const TablePlan& table);
  std::vector<Request> requests_of(const MeasuredRow& row, const TablePlan& table, const ColumnPlan& column, CellBatch& batch);
  Numbers numbers_of(const MeasuredRow& row, const ColumnPlan& column, const std::vector<Request>& requests,
                     const CellBatch& batch);
  Numbers derived_numbers(const MeasuredRow& row, const TablePlan& table, const ColumnPlan& column);
  Value value_of(const MeasuredRow& row, const TablePlan& table, const ColumnPlan& column, const Numbers& numbers) const;
  void note_weak_attack(const MeasuredRow& row, const MeasuredTable& table, std::size_t random);
  const MethodNetworks* networks_of(const MeasuredRow& row, const ColumnPlan& column);
  StudiedNetwork subject(const Setting& setting, const Member& member, std::int64_t samples);
  void judge_declared();
  void draw_declared();

  std::map<std::pair<std::string, std::string>, std::vector<MethodNetworks>> networks_;  // by setting and choice
  std::map<std::pair<std::string, std::string>, SampleRows> rows_;  // of published networks, by setting and network
  std::map<std::string, MeasuredTable> measured_;
  std::map<std::string, ResultTable> tables_;
  std::map<std::string, Figure> figures_;
  std::map<std::string, Verdict> verdicts_;
};

// Runs the plan with as many seeds as the context's first look says, then with those of the next one, until every claim is
// decided. Networks and cells of a look are kept for the next. A claim keeps the verdict of the look that decided it. Because the
// data is looked at several times, intervals over seeds have the level 1 - .05 / looks.
ExperimentResult run_looks(ExperimentContext& context, const Plan& plan, const Words& options);

// What an experiment does beyond its declared tables, by the name that the TOML file gives.
using Analysis = void (*)(PaperRun&);
const std::map<std::string, Analysis>& r2et_analyses();
const std::map<std::string, Analysis>& lens_analyses();
const std::map<std::string, Analysis>& analyses_of(const std::string& paper);

// The experiment of a TOML text.
std::unique_ptr<Experiment> make_paper_experiment(const std::string& text, const std::string& where, const Options& options);

}  // namespace holdfast::experiment::paper

// Every verdict of every claim that the LENS experiments judge from their tables, on tables that were made up.
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "../../src/experiment/paper/run.h"
#include "support/temp_folder.h"

namespace holdfast::experiment::paper::made_up {
namespace {

// What three networks have in a column of a row.
using Three = std::vector<double>;
using Made = std::function<Three(const std::string& table, const Words& row, const std::string& column)>;

// The same for all three but for a little; and so different that nothing can be said.
Three sure(double number) {
  return {number - 0.001, number, number + 0.001};
}
Three unsure(double number) {
  return {number - 0.2, number + 0.2, number};
}

// The tables of an experiment with numbers of one's own; no network is trained.
class MadeRun {
 public:
  MadeRun(const std::string& experiment, const Made& made)
      : plan_(read_plan(carried_file(experiment + ".toml"), experiment, Scale::kFull)), run(context_, plan_, options_of(plan_)) {
    for (const Method& method : plan_.methods.empty() ? std::vector<Method>(1) : plan_.methods)
      networks_.push_back({method, "", {}});
    for (const TablePlan& table : plan_.tables) {
      if (!table.is_analysed) run.set_rows(table.name, rows_of(table, made));
    }
    run.settings.clear();
  }

  Judgement judgement(const std::string& claim) {
    if (!plan_.analysis.empty()) analyses_of(plan_.paper).at(plan_.analysis)(run);
    const Claim& declared = run.claim(claim);
    if (!declared.columns.empty()) run.judge_all_above(claim, run.cases_of(declared), "", 3, {{"datasets", ""}, {"where", ""}});
    return run.verdict(claim).judgement;
  }

 private:
  static Words options_of(const Plan& plan) {
    Words words;
    for (const OptionSpec& option : plan.info.options) words[option.name] = holdfast::to_string(option.value);
    return words;
  }

  std::vector<MeasuredRow> rows_of(const TablePlan& table, const Made& made) {
    const std::vector<NamedCall> nothing{{}};
    const auto each = [&](const std::vector<NamedCall>& calls) { return table.has_one_row || calls.empty() ? nothing : calls; };
    std::vector<MeasuredRow> rows;
    for (const Setting& setting : plan_.settings) {
      for (const MethodNetworks& one : networks_) {
        for (const NamedCall& explainer : each(plan_.explainers)) {
          for (const NamedCall& attack : each(plan_.attacks)) {
            if (!explainer.attacks.empty() && std::ranges::find(explainer.attacks, attack.name) == explainer.attacks.end())
              continue;
            for (const NamedCall& radius : each(plan_.radii)) {
              MeasuredRow row{&setting, &one, row_words(setting, one.method, "", explainer, attack, radius), {}, {}};
              for (const ColumnPlan& column : table.columns) {
                row.numbers.push_back(numbers_of(made(table.name, row.words, column.name)));
                row.values.push_back(paper::value_of(row.numbers.back(), 0));
              }
              rows.push_back(std::move(row));
            }
          }
        }
      }
    }
    return rows;
  }

  static Numbers numbers_of(const Three& means) {
    Numbers numbers;
    for (const double mean : means) {
      numbers.values.push_back({mean, mean});
      numbers.chance.push_back({0.1, 0.1});
    }
    numbers.between = {0.3, 0.3, 0.3};
    return numbers;
  }

  TempFolder folder_;
  ExperimentContext context_{
      Scale::kFull, 0, 1, at::kCPU, {.run = folder_.path(), .models = folder_ / "m", .cells = folder_ / "c"}};
  Plan plan_;
  std::vector<MethodNetworks> networks_;

 public:
  PaperRun run;
};

// A claim with tables that give each of the four verdicts.
struct ClaimCase {
  std::string experiment, claim;
  Made holds, in_part, fails, open;
};

// `which` has `much` where a claim speaks of it, all else has `little`.
using Which = std::function<bool(const std::string& table, const Words& row, const std::string& column)>;
Made where(const Which& which, const Three& much, const Three& little) {
  return [=](const auto& table, const auto& row, const auto& column) { return which(table, row, column) ? much : little; };
}

// `which` is more than the rest; is more but for `exception`, where it is less; is less; is not surely either.
ClaimCase claim_about(const std::string& experiment, const std::string& claim, const Which& which, const Which& exception,
                      const Three& more = sure(0.9), const Three& less = sure(0.4), const Three& open = unsure(0.4)) {
  const Made holds = where(which, more, less);
  const Made in_part = [=](const auto& table, const auto& row, const auto& column) {
    return which(table, row, column) && exception(table, row, column) ? sure(0.1) : holds(table, row, column);
  };
  return {experiment, claim, holds, in_part, where(which, less, more), where(which, open, less)};
}

bool is_mnist(const std::string&, const Words& row, const std::string&) {
  return row.at("name") == "mnist";
}
bool is_fashion(const std::string&, const Words& row, const std::string&) {
  return row.at("name") == "fashion_mnist";
}
Which word_is(const std::string& word, const std::set<std::string>& values) {
  return [=](const std::string&, const Words& row, const std::string&) { return values.contains(row.at(word)); };
}
Which column_is(const std::set<std::string>& columns) {
  return [=](const std::string&, const Words&, const std::string& column) { return columns.contains(column); };
}
Which both(const Which& one, const Which& other) {
  return [=](const auto& table, const auto& row, const auto& column) {
    return one(table, row, column) && other(table, row, column);
  };
}

// What is below the limit is for the claim.
ClaimCase share_claim() {
  const auto below = [](const Three& numbers) { return where(column_is({"below 0.5"}), numbers, sure(0.5)); };
  return {"lens/fig4",       "L7",
          below(sure(0.95)), where(both(column_is({"below 0.5"}), is_mnist), sure(0.3), sure(0.95)),
          below(sure(0.3)),  below({0.95, 0.3, 0.3})};
}

// `ours` holds in part where the accuracy is not within a point of the other's.
ClaimCase ours() {
  const Which steady = word_is("method", {"steady_map"});
  ClaimCase made =
      claim_about("lens/beyond", "ours", both(steady, word_is("explainer", {"integrated_gradients", "saliency"})), is_mnist);
  const Made all = made.holds;
  made.in_part = [=](const std::string& table, const Words& row, const std::string& column) {
    return column == "test accuracy" ? sure(row.at("method") == "steady_map" ? 0.8 : 0.9) : all(table, row, column);
  };
  return made;
}

std::vector<ClaimCase> claim_cases() {
  const Which top_t = word_is("attack", {"top_t"}), robust = word_is("method", {"pgd", "ig_sum_norm"});
  const std::set<std::string> strong{"top-k, gauntlet", "1-LENS-prec, gauntlet", "1-LENS-recall, gauntlet"};
  const Which imagenet = word_is("name", {"imagenet"}), window = column_is({"w=1"});
  const Which diverse = [](const std::string& table, const Words&, const std::string& column) {
    return table == "precision_div" && column == "w=1";
  };
  // A random sign is as strong as what leaves no less of the top k.
  const auto as_strong = [&](const std::string& experiment) {
    return claim_about(experiment, "L1", both(word_is("attack", {"top_t", "mass_center"}), column_is({"top-k"})), top_t);
  };
  return {as_strong("lens/appendix"),
          claim_about("lens/appendix", "L4", word_is("attack", {"lens"}), column_is({"top-k"})),
          claim_about("lens/appendix", "L10", column_is({"1-LENS-Spearman", "1-LENS-Kendall"}), column_is({"1-LENS-Kendall"})),
          claim_about("lens/beyond", "L2", column_is({"1-LENS-prec, gauntlet"}), is_fashion, sure(0.95), sure(0.6), unsure(0.9)),
          claim_about("lens/beyond", "L6", both(robust, column_is(strong)), column_is({"top-k, gauntlet"})),
          ours(),
          as_strong("lens/fig2"),
          claim_about("lens/fig2", "L5", column_is({"3-LENS-recall-div"}), top_t),
          claim_about("lens/fig4", "L2", column_is({"1-LENS-prec"}), is_mnist, sure(0.9), sure(0.4), unsure(0.72)),
          share_claim(),
          claim_about("lens/fig5", "L3", both(top_t, window), imagenet),
          claim_about("lens/fig5", "L5", diverse, is_mnist),
          claim_about("lens/fig5", "L12", both(is_mnist, window), top_t),
          claim_about("lens/fig8", "L6", robust, is_mnist)};
}

TEST(LensTables, EveryVerdictOfEveryClaimIsReached) {
  for (const ClaimCase& one : claim_cases()) {
    const auto judged = [&](const Made& made) { return MadeRun(one.experiment, made).judgement(one.claim); };
    const std::string name = one.experiment + " " + one.claim;
    EXPECT_EQ(judged(one.holds), Judgement::kHolds) << name;
    EXPECT_EQ(judged(one.in_part), Judgement::kHoldsInPart) << name;
    EXPECT_EQ(judged(one.fails), Judgement::kDoesNotHold) << name;
    EXPECT_EQ(judged(one.open), Judgement::kNotDecided) << name;
  }
}

// A new claim needs its tables above, or tests of its own.
TEST(LensTables, EveryClaimIsTested) {
  std::set<std::string> tested{"lens/appendix L11", "lens/table1 L9", "lens/table2 L8",  // lens_test.cpp
                               "lens/fig6 L5"};                                          // pictures decide nothing
  for (const ClaimCase& one : claim_cases()) tested.insert(one.experiment + " " + one.claim);
  std::set<std::string> declared;
  for (const std::string& experiment : paper_named("lens", Scale::kFull).experiments) {
    const std::string name = "lens/" + experiment;
    for (const Claim& claim : read_plan(carried_file(name + ".toml"), name, Scale::kFull).claims)
      declared.insert(name + " " + claim.id);
  }
  EXPECT_EQ(declared, tested);
}

}  // namespace
}  // namespace holdfast::experiment::paper::made_up

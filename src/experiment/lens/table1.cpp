// lens/table1: the survey. Whether people side with LENS or with top-k is for people to say: without their answers this says how
// to get them, with answers=FILE it scores them.
//
// FILE is a JSON array with one object for each answer (kFormat). `top_k` and `lens` are the two measures of the pair of maps
// that was shown, as lens/fig3 and lens/fig7 print them; `similar` is what the person said. An answer sides with the measure that
// says the same of the pair, similar being at least one half; pairs on which both agree decide nothing and are counted apart.
#include "../judging.h"
#include "cells.h"
#include "experiments.h"
#include "holdfast/core/error.h"
#include "holdfast/core/words.h"
#include "holdfast/measure/proportion.h"

namespace holdfast::lens {
namespace {

constexpr const char* kFormat =
    R"json([{"top_k": 0.31, "lens": 0.86, "similar": true}, {"top_k": 0.29, "lens": 0.41, "similar": false}])json";

const MethodInfo kTable1Info{
    .name = "lens/table1",
    .summary = "the survey: do people side with LENS or with top-k",
    .citation = kPaper,
    .options = {{"answers", "none", anything(), "JSON file with people's answers"}},
    .notes = std::string("The file has an object for each answer: ") + kFormat +
             ". top_k and lens: top-k and 3-LENS-prec of the picture shown, from the table `pictures` of "
             "lens/fig3 or lens/fig7; similar: whether the person found the two maps alike."};

struct Counts {
  std::int64_t lens = 0, top_k = 0, undecided = 0;
};

Counts count(const std::string& path) {
  const Json answers = read_json(path);
  if (!answers.is_array()) input_error("{}: it must hold an array of answers", path);
  Counts counts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    try {
      const bool similar = answers[i].at("similar").get<bool>();
      const bool by_lens = answers[i].at("lens").get<double>() >= 0.5, by_top_k = answers[i].at("top_k").get<double>() >= 0.5;
      ++(by_lens == by_top_k ? counts.undecided : by_lens == similar ? counts.lens : counts.top_k);
    } catch (const Json::exception&) {
      input_error("{}: answer {} must have the numbers top_k and lens and the truth value similar", path, i + 1);
    }
  }
  return counts;
}

class Table1 final : public Experiment {
 public:
  explicit Table1(const Options& options) : Experiment(options.canonical()), answers_(options.word("answers")) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "The survey (table 1)", .paper = kPaper};
    if (!context.only.empty()) return result;  // it is of no dataset
    const Counts counts = answers_ == "none" ? Counts{} : count(answers_);
    const std::int64_t decided = counts.lens + counts.top_k;
    ResultTable table{.name = "answers",
                      .caption = "Share of the answers that side with each measure, where the two disagree.",
                      .keys = {"sides with"},
                      .columns = {"share"}};
    const auto share = [&](std::int64_t part, double published) {
      Value value{.count = decided, .published = published};
      if (decided > 0) {
        const Interval interval = proportion_interval(part, decided);
        value.value = interval.mean;
        value.low = interval.low;
        value.high = interval.high;
      }
      return value;
    };
    table.add({"3-LENS-prec"}, {share(counts.lens, 0.7037)});
    table.add({"top-k"}, {share(counts.top_k, 0.2963)});
    result.tables = {table};
    if (decided == 0) {
      context.note(fmt::format(
          "No answers: show people the maps before and after of lens/fig3 and lens/fig7 (PNG in their run's figures/), ask of "
          "each "
          "pair whether the two are similar, write an object for each answer into a JSON file, {}, with top-k and 3-LENS-prec of "
          "the picture from the experiment's table `pictures`, and run lens/table1(answers=FILE).",
          kFormat));
    } else if (counts.undecided > 0) {
      context.note(
          fmt::format("not counted, because the two measures agree on the pair: {}", counted(counts.undecided, "answer")));
    }
    const Value number = decided > 0 ? table.rows[0].values[0] : Value{};
    result.verdicts = {make_verdict("L9", "people side with LENS rather than top-k (70 % against 30 %)", judge_above(number, 0.5),
                                    decided > 0 ? fmt::format("{}.", counted(decided, "answer")) : "Nobody was asked yet.",
                                    number, 0)};
    return result;
  }

 private:
  std::string answers_;
};

}  // namespace

void add_table1(Registry<Experiment>& registry) {
  registry.add<Table1>(kTable1Info);
}

}  // namespace holdfast::lens

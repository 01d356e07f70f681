// lens/table1: scores what people said, or says what to ask them.
#include "claims.h"
#include "holdfast/core/error.h"
#include "holdfast/core/words.h"
#include "holdfast/measure/proportion.h"

namespace holdfast::experiment::paper::lens {

Answers count_answers(const std::string& path) {
  const Json answers = read_json(path);
  if (!answers.is_array()) input_error("{}: it must hold an array of answers", path);
  Answers counts;
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

void score_survey(paper::PaperRun& run) {
  if (!run.context.only.empty()) return;  // it is of no dataset
  const std::string file = run.options.at("answers");
  const Answers counts = file == "none" ? Answers{} : count_answers(file);
  const std::int64_t decided = counts.lens + counts.top_k;
  const auto share = [&](std::int64_t part, double published) {
    Value value{.count = decided, .published = published};
    if (decided == 0) return value;
    const Interval interval = proportion_interval(part, decided);
    value.value = interval.mean;
    value.low = interval.low;
    value.high = interval.high;
    return value;
  };
  const std::vector<double>& printed = run.claim("L9").limits;
  run.table("answers").add({"3-LENS-prec"}, {share(counts.lens, printed[0])});
  run.table("answers").add({"top-k"}, {share(counts.top_k, printed[1])});
  if (decided == 0) {
    run.context.note(
        "Nobody was asked yet. `holdfast survey make RUN --out page.html` makes a page with the paper's questions from an audit "
        "of "
        "images; `holdfast survey score ANSWERS.json` scores what people save. Answers from elsewhere can be given as "
        "lens/table1(answers=FILE): [{\"top_k\": 0.31, \"lens\": 0.86, \"similar\": true}].");
  } else if (counts.undecided > 0) {
    run.context.note(
        fmt::format("not counted, because the two measures agree on the pair: {}", counted(counts.undecided, "answer")));
  }
  const Value number = decided > 0 ? share(counts.lens, printed[0]) : Value{};
  const std::string answered = decided > 0 ? fmt::format("{}.", counted(decided, "answer")) : "Nobody was asked yet.";
  run.judge("L9", {judge_above(number, 0.5), {{"answered", answered}}, number}, 0);
}

}  // namespace holdfast::experiment::paper::lens

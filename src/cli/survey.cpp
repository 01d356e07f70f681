// holdfast survey: asks people whether two maps look alike, and scores their answers.
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "command.h"
#include "common.h"
#include "holdfast/core/log.h"
#include "holdfast/core/words.h"
#include "holdfast/experiment/survey.h"
#include "holdfast/report/html.h"
#include "holdfast/report/text_table.h"

namespace holdfast::cli {
namespace {

std::string score_text(const Json& value) {
  return value.is_number() ? fixed(value.get<double>(), 3) : "-";
}

std::string score_with_interval(const Json& row, const char* key) {
  if (!row.at(key).is_number()) return "-";
  return fmt::format("{} [{}, {}]", score_text(row.at(key)), score_text(row.at("low")), score_text(row.at("high")));
}

void print_score(const Json& score) {
  fmt::print("{}, {}; {} could not tell\n", counted(score.at("people").get<std::int64_t>(), "person"),
             counted(score.at("answers").get<std::int64_t>(), "answer"), score.at("unsure").get<std::int64_t>());
  std::vector<std::vector<std::string>> sides, predictions;
  for (const Json& row : score.at("sides"))
    sides.push_back({row.at("metric"), score_with_interval(row, "share"), row.at("count").dump()});
  for (const Json& row : score.at("prediction"))
    predictions.push_back({row.at("metric"), score_with_interval(row, "auc"), row.at("count").dump()});
  fmt::print("\nwhere a metric and top_k disagree, the share of answers that side with the metric\n{}",
             text_table({"metric", "share [95 %]", "answers"}, sides));
  fmt::print("\nhow well a metric predicts the answers: area under the curve, the best first\n{}",
             text_table({"metric", "AUC [95 %]", "answers"}, predictions));
  const Json& agreement = score.at("agreement");
  fmt::print("\nagreement between people: kappa {} over {}\n", score_text(agreement.at("kappa")),
             counted(agreement.at("pairs").get<std::int64_t>(), "pair"));
}

}  // namespace

void add_survey(CLI::App& app, Outcome&) {
  CLI::App* survey = add_command(app, "survey", "Asks people whether maps look alike, and scores their answers",
                                 "holdfast survey make runs/images --out runs/survey.html");
  survey->require_subcommand(1);

  struct MakeFlags {
    std::string run, out;
  };
  auto make = std::make_shared<MakeFlags>();
  CLI::App* maker = add_command(*survey, "make", "Writes a page with the questions, from an audit of images",
                                "holdfast survey make runs/images --out runs/survey.html");
  maker->add_option("RUN", make->run, "Run folder of an audit of images")->required();
  maker->add_option("--out", make->out, "The page, .html: send it to people, who save their answers as a file")->required();
  maker->callback([make] {
    const NewFolders folders = prepare_output_file(make->out, {".html"});
    const Json pairs = make_survey(make->run);
    write_survey(make->run, pairs, make->out);
    log_info("survey of {}: {}", counted(static_cast<std::int64_t>(pairs.at("pairs").size()), "pair"), make->out);
  });

  struct ScoreFlags {
    std::vector<std::string> answers;
    bool json = false;
  };
  auto score = std::make_shared<ScoreFlags>();
  CLI::App* scorer = add_command(*survey, "score", "Says which metric people side with", "holdfast survey score answers-*.json");
  scorer->add_option("ANSWERS", score->answers, "Files that the page saved")->required();
  scorer->add_flag("--json", score->json, "Print the scores as JSON");
  scorer->callback([score] {
    const Json result = score_survey(score->answers);
    if (score->json) {
      std::fputs(dump_json(result).c_str(), stdout);
    } else {
      print_score(result);
    }
  });
}

}  // namespace holdfast::cli

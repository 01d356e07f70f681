// Results of experiments as text, Markdown and a page.
#include "holdfast/report/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/core/files.h"
#include "holdfast/report/html.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json small_results() {
  return Json::parse(R"json({"kind": "experiment", "experiment": "r2et/table9", "scale": "quick", "seed": 0, "title": "A title",
    "paper": "Somebody, Something, 2024", "settings": {"epochs": 300},
    "tables": [{"name": "robustness", "caption": "P@k.", "keys": ["dataset", "method"], "columns": ["P@8", "AUC"], "rows": [
      {"keys": ["Adult", "R2ET|H"], "values": [{"value": 0.91, "low": 0.9, "high": 0.92, "n": 5, "published": 0.975, "between": 0.5},
                                               {"value": 0.9, "low": null, "high": null, "n": 1}]},
      {"keys": ["Adult", "linear"], "values": [{"value": 1, "low": null, "high": null, "n": 5}, {"value": null, "low": null, "high": null, "n": 0}]}]}],
    "figures": [], "verdicts": [{"claim": "R2", "says": "it is best", "verdict": "holds in part", "number": 0.5, "low": 0.1, "high": 0.9, "seeds": 5,
      "experiment": "r2et/table9", "scale": "quick", "why": "on half of them"}], "notes": ["BP is not public"]})json");
}

Json small_manifest() {
  return Json::parse(
      R"json({"holdfast": "0.1.0", "command": ["holdfast", "reproduce", "r2et/table9"], "seconds": 12.3, "started": "2026-01-31T12:00:00Z",
    "versions": {"torch": "2.13.0"}, "hardware": {"cpu": "x", "cores": 2, "threads": 2, "device": "cpu"},
    "work": [{"on": "x, torch 2.13.0, cpu", "networks": 3, "cells": 4, "seconds": 12.3}]})json");
}

TEST(ExperimentText, PutsThePapersNumbersAndTheLevelsBesideOurs) {
  const std::string text = experiment_text(small_results());
  EXPECT_THAT(text, HasSubstr("dataset  method                   P@8  paper  between    AUC"));
  EXPECT_THAT(text, HasSubstr("R2ET|H  0.910 [0.900, 0.920]  0.975    0.500  0.900"));
  EXPECT_THAT(text, HasSubstr("R2 holds in part (quick: means little) (0.500 [0.100, 0.900]): it is best; on half of them"));
  Json decided = small_results();
  decided["scale"] = "cpu";
  EXPECT_THAT(experiment_text(decided), HasSubstr("R2 holds in part (0.500"));
  EXPECT_THAT(text, HasSubstr("note: BP is not public"));
  EXPECT_THAT(text, Not(HasSubstr("chance")));  // no value has one
}

TEST(ExperimentText, ShowsSpecificOnlyBesideLift) {
  Json results = small_results();
  Json& value = results["tables"][0]["rows"][0]["values"][0];
  value["specific"] = 0.82;
  EXPECT_THAT(experiment_text(results), Not(HasSubstr("0.820")));
  EXPECT_THAT(experiment_text(results), Not(HasSubstr("specific")));
  value["lift"] = 0.41;
  EXPECT_THAT(experiment_text(results), HasSubstr("0.500     0.820  0.410"));
}

void write_kept(const std::string& folder, const Json& results) {
  make_folders(folder);
  write_json(folder + "/table9.json", results);
  write_json(folder + "/table9.manifest.json", small_manifest());
  write_json(folder + "/verdicts.json", results.at("verdicts"));
}

TEST(ResultsMarkdown, HasASentenceOfVerdictAndOneOfEvidenceForEachClaim) {
  const TempFolder folder;
  const std::string kept = folder.path() + "/r2et";
  Json results = small_results();
  results["verdicts"][0]["why"] = "Number: share of the cases (five; all of them) that speak for it; 3 for it. And more.";
  write_kept(kept, results);
  const std::string page = results_markdown(kept);
  EXPECT_THAT(
      page,
      HasSubstr("**R2.** The claim: it is best.\n\n- **Holds in part (quick: means little).** Evidence: 0.500 [0.100, 0.900]: "
                "share of the cases (five; all of them) that speak for it (`r2et/table9`, quick scale, 5 seeds).\n"));
  EXPECT_THAT(page, Not(HasSubstr("And more")));
  EXPECT_THAT(page, HasSubstr("| `r2et/table9` | A title | quick | robustness (2) |"));
  EXPECT_EQ(page, results_markdown(kept + "/"));
}

// The price of a decision: the manifest says that five seeds took 12.3 s here; ten times as many take nine times that more.
TEST(ResultsMarkdown, SaysInPlainWordsWhatIsKnownAndWhatADecisionWouldCost) {
  const TempFolder folder;
  Json results = small_results();
  Json& verdict = results["verdicts"][0];
  verdict["verdict"] = "not decided";
  verdict["plain"] = "Not known yet: whether it is best.";
  verdict["times"] = 10;
  write_kept(folder.path() + "/r2et", results);
  Json manifest = small_manifest();
  manifest["work"] = Json::parse(
      R"([{"on": "x", "networks": 3, "cells": 4, "seconds": 3000}, {"on": "y", "networks": 0, "cells": 1, "seconds": 600}])");
  write_json(folder.path() + "/r2et/table9.manifest.json", manifest);
  const std::string page = results_markdown(folder.path() + "/r2et");
  EXPECT_THAT(page, HasSubstr("- **Not decided (quick: means little).** Not known yet: whether it is best. Evidence: 0.500"));
  EXPECT_THAT(page,
              HasSubstr("5 seeds). To decide it: about 10.0 times as many seeds (50), 9 hours more of the machines that made it, "
                        "which took 60 minutes.\n"));
  EXPECT_THAT(experiment_text(results), HasSubstr("it is best; Not known yet: whether it is best. on half of them"));
}

TEST(Site, HasAPageForEachPaperAndEveryNumberAsCsv) {
  const TempFolder folder;
  write_kept(folder.path() + "/r2et", small_results());
  write_site({folder.path() + "/r2et"}, folder.path() + "/site");
  EXPECT_EQ(read_text(folder.path() + "/site/csv/r2et/table9_robustness.csv"),
            "dataset,method,P@8,P@8 low,P@8 high,P@8 n,P@8 paper,P@8 between,AUC,AUC low,AUC high,AUC n\n"
            "Adult,R2ET|H,0.91,0.9,0.92,5,0.975,0.5,0.9,,,1\nAdult,linear,1,,,5,,,,,,0\n");
  EXPECT_THAT(read_text(folder.path() + "/site/r2et.html"), HasSubstr("\"published\":0.975"));
  EXPECT_THAT(read_text(folder.path() + "/site/index.html"), HasSubstr("\"page\":\"r2et.html\""));
}

// Kinds say what a column holds: a share of 1 or 0 is no count, and a count of 1 is no share.
TEST(ExperimentText, WritesColumnsByTheirKind) {
  Json results = small_results();
  Json& table = results["tables"][0];
  table["columns"] = {"share", "count"};
  for (Json& row : table["rows"]) {
    row["values"] = Json::array({{{"value", 1}, {"low", nullptr}, {"high", nullptr}, {"n", 5}},
                                 {{"value", 1}, {"low", nullptr}, {"high", nullptr}, {"n", 0}}});
  }
  table["kinds"] = {"share", "count"};
  EXPECT_THAT(experiment_text(results), HasSubstr("R2ET|H  1.000      1\n"));
  table["kinds"] = {"count", "value"};
  EXPECT_THAT(experiment_text(results), HasSubstr("R2ET|H      1  1.000\n"));
  table.erase("kinds");  // results from before there were kinds
  EXPECT_THAT(experiment_text(results), HasSubstr("R2ET|H  1.000  1.000\n"));
}

TEST(ResultsMarkdown, AFolderWithoutResultsIsRefused) {
  const TempFolder folder;
  EXPECT_ERROR(results_markdown(folder.path()), kInput, "no results lie here");
  EXPECT_ERROR(results_markdown(folder.path() + "/none"), kInput, "there is no such folder");
}

TEST(ExperimentPage, IsMadeFromTheRunsFiles) {
  const TempFolder folder;
  write_json(folder.path() + "/results.json", small_results());
  write_json(folder.path() + "/manifest.json", small_manifest());
  write_report({folder.path()}, folder.path() + "/report.html");
  EXPECT_THAT(read_text(folder.path() + "/report.html"), HasSubstr("<title>A title</title>"));
}

}  // namespace
}  // namespace holdfast::report

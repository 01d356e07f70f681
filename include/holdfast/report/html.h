// report.html: one page that opens offline, made from the files of one run folder or several and from nothing else.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"

namespace holdfast::report {

// Throws kInput when a folder is not a complete run, naming the file that is missing or wrong. Writes atomically. `comparison`
// of several runs: experiment::compare_runs.
void write_report(const std::vector<std::string>& run_folders, const std::string& path, const Json& comparison = {});

// What every finished audit has beside its results: report.html, and junit.xml where there are gates.
void write_audit_pages(const Json& results, const std::string& run_folder);

// FOLDER/index.html with every model under every threat of these runs, by the strongest attack of its run, and
// FOLDER/results/NAME.json for each. Throws kInput for a folder that holds no finished audit.
void write_leaderboard(const std::vector<std::string>& runs, const std::string& folder);

// The page that asks people about the pairs of experiment::make_survey.
void write_survey(const std::string& run, const Json& survey, const std::string& path);

}  // namespace holdfast::report

// Results of experiments (`holdfast reproduce`) for reading: on the terminal, as Markdown, as pictures. Made from their files
// alone.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"

namespace holdfast::report {

// results.json as `reproduce` prints it: tables with the paper's numbers beside ours, verdicts, notes.
std::string experiment_text(const Json& results);

// The page of a folder with the kept results of a paper (results/r2et): one sentence of verdict and one of evidence for each
// claim, and where the numbers are. Throws kInput when the folder holds no results.
std::string results_markdown(const std::string& folder);

// A site of such folders: index.html with all verdicts, a page for each paper with every table and figure beside the paper's
// numbers, and csv/PAPER/EXPERIMENT_TABLE.csv.
void write_site(const std::vector<std::string>& folders, const std::string& out);

// Draws the panels of a run's figures into RUN/figures/NAME_N.png, one row a sample.
void write_figure_pictures(const std::string& run);

}  // namespace holdfast::report

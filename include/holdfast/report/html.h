// report.html: one page that opens offline, made from the files of one run folder or several and from nothing else.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"

namespace holdfast::report {

// Throws kInput when a folder is not a complete run, naming the file that is missing or wrong. Writes atomically.
void write_report(const std::vector<std::string>& run_folders, const std::string& path);

// What every finished audit has beside its results: report.html, and junit.xml where there are gates.
void write_audit_pages(const Json& results, const std::string& run_folder);

}  // namespace holdfast::report

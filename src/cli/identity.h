#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "holdfast/core/json.h"

namespace holdfast::cli {

// What makes a run of flags this run (run_folder.h): the flags by name, what a command adds to them, the conditions, and the
// checksums of the files they name.
Json identity_of(const SubjectFlags& subject, const AttackFlags& attack, const CommonFlags& common, const Json& more,
                 const std::vector<std::string>& more_files = {});

}  // namespace holdfast::cli

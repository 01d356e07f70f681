// What makes a run from flags this run.
#pragma once

#include "common.h"
#include "holdfast/core/json.h"

namespace holdfast::cli {

// For run folders (experiment/run_folder.h): what was asked for, with `more` beside it, and checksums of the files.
Json identity_of(const SubjectFlags& subject, const Trial& trial, const CommonFlags& common, const Json& more);

}  // namespace holdfast::cli

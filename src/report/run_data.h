// What a page shows of a run, from the files of its folder.
#pragma once

#include <string>

#include "holdfast/core/json.h"
#include "worst.h"

namespace holdfast::report {

// Throws kInput when a file is missing or wrong, naming it.
Json run_data(const std::string& folder, PicturePool& pool);

}  // namespace holdfast::report

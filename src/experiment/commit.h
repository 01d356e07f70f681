// The commit that the program was built from, with a plus sign where files of it were changed; empty if it is not known.
#pragma once

namespace holdfast::experiment {

extern const char* const kCommit;

}  // namespace holdfast::experiment

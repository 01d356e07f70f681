#include "commit.h"

namespace holdfast::experiment {

const char* const kCommit =
#include "commit.inc"
    ;

}  // namespace holdfast::experiment

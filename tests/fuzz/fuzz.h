// What a fuzz target is: one function that takes any bytes. It returns when they are well formed and throws
// holdfast::Error when they are not; whatever else happens is a bug.
//
// Each target is built twice: as fuzz_<name> with libFuzzer (preset `fuzz`), which looks for bugs, and as
// fuzz_replay_<name> in every build, which runs the corpus as a test.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"

namespace holdfast {

void fuzz(std::span<const std::byte> input);

// For properties of what was accepted: reading back what is written, say.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace holdfast

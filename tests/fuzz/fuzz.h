// What a fuzz target is: one function that takes any bytes. It returns when they are well formed and throws
// holdfast::Error when they are not. Whatever else happens is a bug.
//
// fuzz_csv, say, is defined in csv.cpp and used twice. With libFuzzer it is a program of its own that looks for bugs (preset
// `fuzz`). In every build it is a part of fuzz_replay, which runs all corpora as one test.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"

namespace holdfast {

// fuzz_targets.inc has one line HOLDFAST_FUZZ_TARGET(csv) for each target; CMakeLists.txt writes it.
#define HOLDFAST_FUZZ_TARGET(name) void fuzz_##name(std::span<const std::byte> input);
#include "fuzz_targets.inc"
#undef HOLDFAST_FUZZ_TARGET

// For properties of what was accepted: reading back what is written, say.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace holdfast

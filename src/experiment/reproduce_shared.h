// What runs and plans of experiments share; and work that several runs on the same folders share: each piece is done once, by the
// run that takes it first.
#pragma once

#include <cstdint>
#include <functional>

#include "holdfast/experiment/reproduce.h"

namespace holdfast::experiment {

// `done(i)` does piece i, or returns false where another run is at it: such pieces are tried again until they are done.
void for_each_shared(std::int64_t count, int threads, const std::function<bool(std::int64_t)>& done);

// Where a run's networks and cells lie.
ExperimentContext::Folders folders_of(const ReproduceOptions& options);

// Throws kUsage for numbers of seeds that are no looks.
void check_looks(const std::vector<std::int64_t>& looks);

// Whether nothing came out of an experiment, which the options may allow. Throws kInput or kUsage, saying why, where they do not.
bool is_empty(const ReproduceOptions& options, const Experiment& experiment, const ExperimentContext& context,
              const ExperimentResult& result);

}  // namespace holdfast::experiment

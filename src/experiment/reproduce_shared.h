// Work that several runs on the same folders share: each piece is done once, by the run that takes it first.
#pragma once

#include <cstdint>
#include <functional>

namespace holdfast::experiment {

// `done(i)` does piece i, or returns false where another run is at it: such pieces are tried again until they are done.
void for_each_shared(std::int64_t count, int threads, const std::function<bool(std::int64_t)>& done);

}  // namespace holdfast::experiment

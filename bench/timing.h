// What every benchmark in C++ measures with.
#pragma once

#include "holdfast/core/stages.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <vector>

namespace holdfast::bench {
using namespace experiment;

// On the clock: for work on several threads.
inline double wall_seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of the processor, on this thread: other programs do not count.
inline double thread_seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace holdfast::bench

// Learning-rate schedules: the factor on the base rate at each step of a training.
//
//     constant          1
//     cosine(floor)     floor + (1 - floor) (1 + cos(pi t)) / 2, t the share of the steps after the warm-up that is done
//     step(at,factor)   factor^m, m the number of epochs in `at` that have passed: step(at=30x60)
// Each takes `warmup`: over that many epochs (a fraction will do) the factor rises in a line to its first value, so that
// the first step is never of length 0.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"

namespace holdfast::train {

// Where a training stands.
struct StepPosition {
  std::int64_t step = 0;  // from 0, over all epochs
  std::int64_t steps_per_epoch = 1;
  std::int64_t epochs = 1;  // planned
};

class Schedule {
 public:
  explicit Schedule(const Options& options) : warmup_(options.real("warmup")) {}
  virtual ~Schedule() = default;
  double factor(const StepPosition& position) const;

 protected:
  // After the warm-up, whose length in steps is given.
  virtual double after_warmup(const StepPosition& position, double warmup_steps) const = 0;

 private:
  double warmup_;  // epochs
};

const Registry<Schedule>& schedules();

}  // namespace holdfast::train

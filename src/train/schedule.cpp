#include "holdfast/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace holdfast::train {
namespace {

OptionSpec warmup_option() {
  return {"warmup", 0.0, at_least(0), "epochs over which the rate rises in a line"};
}

class Constant final : public Schedule {
 public:
  using Schedule::Schedule;

 protected:
  double after_warmup(const StepPosition&, double) const override { return 1; }
};

class Cosine final : public Schedule {
 public:
  explicit Cosine(const Options& options) : Schedule(options), floor_(options.real("floor")) {}

 protected:
  double after_warmup(const StepPosition& position, double warmup_steps) const override {
    const double steps = static_cast<double>(position.steps_per_epoch * position.epochs) - warmup_steps;
    const double share = std::clamp((static_cast<double>(position.step) - warmup_steps) / std::max(steps, 1.0), 0.0, 1.0);
    return floor_ + (1 - floor_) * (1 + std::cos(std::numbers::pi * share)) / 2;
  }

 private:
  double floor_;
};

class Step final : public Schedule {
 public:
  explicit Step(const Options& options)
      : Schedule(options), at_(parse_sizes(options.word("at"), "step(at)")), factor_(options.real("factor")) {
    if (!std::is_sorted(at_.begin(), at_.end())) usage_error("step(at={}): the epochs must ascend", options.word("at"));
  }

 protected:
  double after_warmup(const StepPosition& position, double) const override {
    const std::int64_t epoch = position.step / position.steps_per_epoch;  // finished ones
    const auto passed = std::upper_bound(at_.begin(), at_.end(), epoch) - at_.begin();
    return std::pow(factor_, static_cast<double>(passed));
  }

 private:
  std::vector<std::int64_t> at_;
  double factor_;
};

Registry<Schedule> builtin_schedules() {
  Registry<Schedule> registry("schedule");
  registry.add<Constant>({.name = "constant", .summary = "the same rate throughout", .options = {warmup_option()}});
  registry.add<Cosine>(
      {.name = "cosine",
       .summary = "the rate falls to its floor along half a cosine",
       .citation = "Loshchilov & Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, ICLR 2017",
       .options = {{"floor", 0.0, between(0, 1), "share of the rate that is left at the end"}, warmup_option()}});
  registry.add<Step>({.name = "step",
                      .summary = "the rate is multiplied by a factor after given epochs",
                      .options = {{"at", "30x60", anything(), "epochs after which it falls, such as 30x60"},
                                  {"factor", 0.1, between(0, 1), "what it is multiplied by"},
                                  warmup_option()}});
  return registry;
}

}  // namespace

double Schedule::factor(const StepPosition& position) const {
  const double warmup_steps = warmup_ * static_cast<double>(position.steps_per_epoch);
  const double step = static_cast<double>(position.step);
  if (step >= warmup_steps) return after_warmup(position, warmup_steps);
  return std::min(1.0, (step + 1) / warmup_steps) * after_warmup({0, position.steps_per_epoch, position.epochs}, warmup_steps);
}

const Registry<Schedule>& schedules() {
  static const Registry<Schedule> registry = builtin_schedules();
  return registry;
}

}  // namespace holdfast::train

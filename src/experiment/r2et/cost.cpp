// r2et/cost: processor time of a training step of each method.
#include "claims.h"

#include <algorithm>
#include <ctime>
#include <memory>

#include <fmt/format.h>

#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "holdfast/train/optimizer.h"

namespace holdfast::experiment::paper::r2et {
namespace {

// Counts the processor time of this thread alone: what else the machine does is not in it.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A network with its objective and optimiser, ready to make steps on one batch.
class Stepper {
 public:
  Stepper(const ExperimentData& data, const Setting& setting, const Method& method, std::int64_t batch_size)
      : dataset_(data.data), options_(resolved(dataset_, paper::training(setting, method, "", 1, 0))) {
    network_ = architectures().make(options_.architecture)->build(0);
    network_.require_grad(true);
    objective_ = objectives().make(options_.objective);
    optimizer_ = optimizers().make(options_.optimizer);
    optimizer_->start(network_.parameters(), *options_.weight_decay);
    std::vector<std::int64_t> rows = dataset_.train;
    rows.resize(std::min(rows.size(), static_cast<std::size_t>(batch_size)));
    inputs_ = dataset_.inputs_of(rows);
    labels_ = dataset_.labels_of(rows);
    ids_ = at::tensor(rows, at::kLong);
  }

  // Seconds a step.
  double time(int steps) {
    const double start = processor_seconds();
    for (int i = 0; i < steps; ++i) step();
    return (processor_seconds() - start) / steps;
  }

 private:
  void step() {
    // Late in the training, so that delayed terms are paid for.
    const TrainBatch batch{
        .inputs = inputs_, .labels = labels_, .sample_ids = ids_, .schema = dataset_.schema, .seed = 0, .progress = 0.9};
    const Loss loss = loss_of(*objective_, network_, batch);
    const auto gradients =
        torch::autograd::grad({loss.total}, optimizer_->parameters(), {}, std::nullopt, false, /*allow_unused=*/true);
    std::vector<at::Tensor> defined;
    const auto parameters = optimizer_->parameters();
    for (std::size_t i = 0; i < gradients.size(); ++i)
      defined.push_back(gradients[i].defined() ? gradients[i] : at::zeros_like(parameters[i]));
    optimizer_->step(defined, 1e-4);
  }

  const Dataset& dataset_;
  TrainOptions options_;
  Network network_;
  std::unique_ptr<Objective> objective_;
  std::unique_ptr<Optimizer> optimizer_;
  at::Tensor inputs_, labels_, ids_;
};

// Seconds a step, by method and round.
using StepTimes = std::map<std::string, std::vector<double>>;

StepTimes time_methods(const ExperimentData& data, const Setting& setting, const std::vector<Method>& methods,
                       std::int64_t batch_size, int rounds, int steps) {
  std::vector<Stepper> steppers;
  for (const Method& method : methods) steppers.emplace_back(data, setting, method, batch_size);
  for (Stepper& stepper : steppers) stepper.time(2);
  StepTimes seconds;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < methods.size(); ++i) seconds[methods[i].name].push_back(steppers[i].time(steps));
  }
  return seconds;
}

std::vector<double> ratios(const StepTimes& seconds, const std::string& first, const std::string& second) {
  const std::vector<double>&a = seconds.at(first), &b = seconds.at(second);
  std::vector<double> result;
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] / b[i]);
  return result;
}

Value in_milliseconds(Value time) {
  time.value *= 1000;
  if (time.low) *time.low *= 1000;
  if (time.high) *time.high *= 1000;
  return time;
}

}  // namespace

Finding judge_cost(const std::vector<CostOfAt>& compared, double limit) {
  std::vector<ClaimPart> parts;
  std::string text;
  for (const CostOfAt& one : compared) {
    const Tally cheaper = tally_above(one.step, limit), by_number = tally_above(one.iteration, limit);
    parts.insert(parts.end(), {part_of_all("cheaper than a step of AT, " + one.method, cheaper),
                               part_of_all("cheaper than each attack iteration, " + one.method, by_number)});
    text += fmt::format(
        " Against {}: one attack iteration costs {} steps; a step of AT with one iteration {}. That a step of AT "
        "costs more: {}; that each iteration does: {}.",
        one.method, words(one.iteration), words(one.step), cheaper.words(), by_number.words());
  }
  return found_in(parts, {{"against", text}}, mean_over(compared.front().iteration));
}

void analyse_cost(PaperRun& run) {
  std::vector<CostOfAt> compared{{"R2ET\\H"}, {"R2ET"}};
  for (const Setting& setting : run.settings) {
    const auto data = run.context.dataset(setting.data);
    if (!data) continue;
    const std::vector<Method> methods = methods_for(setting, run.plan.methods);
    const std::int64_t batch = setting.is_table() ? 64 : 16;
    const int rounds = run.context.by_scale(5, 15, 15),
              steps = setting.is_table() ? run.context.by_scale(20, 200, 200) : run.context.by_scale(1, 3, 10);
    const Job<StepTimes> job{fmt::format("{}; times of steps, {} rounds of {}, batch {}", data->key, rounds, steps, batch),
                             [&] { return time_methods(*data, setting, methods, batch, rounds, steps); },
                             {.kind = fmt::format("{}; times of steps, batch {}", data->key, batch)},
                             {.units = std::int64_t{rounds} * steps, .few = [&](std::int64_t units) {
                                return time_methods(*data, setting, methods, batch, 2, static_cast<int>((units + 1) / 2));
                              }}};
    const StepTimes seconds = run.context.compute(setting.name + ": steps", std::vector{job}).front();
    for (const Method& method : methods)
      run.table("time a step")
          .add({setting.dataset, method.name},
               {in_milliseconds(over_seeds(seconds.at(method.name))), over_seeds(ratios(seconds, method.name, "Vanilla"))});
    for (CostOfAt& one : compared) {
      const std::vector<double> whole = ratios(seconds, "AT", one.method), plain = ratios(seconds, "Vanilla", one.method);
      one.step.push_back({setting.dataset, over_seeds(whole)});
      one.iteration.push_back({setting.dataset, difference_over_seeds(whole, plain)});
    }
  }
  if (compared.front().step.empty()) return;
  const Finding found = judge_cost(compared, run.claim("R7").limits[0]);
  run.judge("R7", found, 0);
}

}  // namespace holdfast::experiment::paper::r2et

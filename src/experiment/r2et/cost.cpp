// r2et/cost: processor time of a training step of each method against Vanilla's, measured: loss, parameter gradient and optimiser
// step on one thread, methods in turn so that all meet the same machine. Times are of this machine and differ from run to run; a
// kept run keeps its.
#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "../judging.h"
#include "experiments.h"
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "holdfast/train/optimizer.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kCostInfo{.name = "r2et/cost",
                           .summary = "measured time of a training step of each method, and of AT against R2ET",
                           .citation = kPaper};

// Of this thread: what else the machine does takes none of it.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A network with its objective and optimiser, ready to make steps on one batch.
class Stepper {
 public:
  Stepper(const ExperimentData& data, const Setting& setting, const Method& method, std::int64_t batch_size)
      : dataset_(data.data), options_(resolved(dataset_, training(setting, method, "", 1, 0))) {
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

// {"method": [seconds a step, by round]}
Json time_methods(const ExperimentData& data, const Setting& setting, const std::vector<const Method*>& methods,
                  std::int64_t batch_size, int rounds, int steps) {
  std::vector<Stepper> steppers;
  for (const Method* method : methods) steppers.emplace_back(data, setting, *method, batch_size);
  for (Stepper& stepper : steppers) stepper.time(2);
  Json seconds = Json::object();
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < methods.size(); ++i) seconds[methods[i]->name].push_back(steppers[i].time(steps));
  }
  return seconds;
}

std::vector<double> ratios(const Json& seconds, const std::string& first, const std::string& second) {
  const std::vector<double> a = numbers(seconds.at(first)), b = numbers(seconds.at(second));
  std::vector<double> result;
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] / b[i]);
  return result;
}

// AT against one form of R2ET, by dataset and round: a step with one attack iteration, and what each iteration adds.
struct Compared {
  std::string method = {};
  std::vector<Case> step = {}, iteration = {};  // in steps of R2ET

  void add(const std::string& dataset, const Json& seconds) {
    const std::vector<double> whole = ratios(seconds, "AT", method), plain = ratios(seconds, "Vanilla", method);
    step.push_back({dataset, over_seeds(whole)});
    iteration.push_back({dataset, difference_over_seeds(whole, plain)});
  }
};

class Cost final : public Experiment {
 public:
  explicit Cost(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "What a training step costs", .paper = kPaper};
    result.settings["measured"] =
        "processor time of one thread, batch of 64 rows (images: 16), mean over rounds, methods in turn";
    ResultTable table{.name = "time a step",
                      .caption =
                          "Milliseconds, and times Vanilla's; intervals over rounds. AT takes one attack iteration: each further "
                          "one costs what "
                          "AT takes more than Vanilla.",
                      .keys = {"dataset", "method"},
                      .columns = {"ms a step", "times Vanilla"}};
    std::vector<Compared> compared(2);
    compared[0].method = "R2ET\\H";
    compared[1].method = "R2ET";
    for (const Setting& setting : settings(context, Which::kAll)) {
      if (setting.encoding == "projected" || setting.encoding == "one level dropped" || setting.dataset == "CIFAR-10") continue;
      const auto data = context.dataset(setting.call);
      if (!data) continue;
      const std::vector<const Method*> methods = methods_for(setting, all_methods());
      const std::int64_t batch = setting.tabular ? 64 : 16;
      const int rounds = context.by_scale(5, 15, 15),
                steps = setting.tabular ? context.by_scale(20, 200, 200) : context.by_scale(1, 3, 10);
      const Json seconds =
          context.compute({fmt::format("{}; times of steps, {} rounds of {}, batch {}", data->key, rounds, steps, batch),
                           [&] { return time_methods(*data, setting, methods, batch, rounds, steps); }});
      for (const Method* method : methods) {
        Value time = over_seeds(numbers(seconds.at(method->name)));
        time.value *= 1000;
        if (time.low) *time.low *= 1000;
        if (time.high) *time.high *= 1000;
        table.add({setting.dataset, method->name}, {time, over_seeds(ratios(seconds, method->name, "Vanilla"))});
      }
      for (Compared& one : compared) one.add(setting.dataset, seconds);
    }
    result.tables.push_back(table);
    if (!compared.front().step.empty()) result.verdicts = {judge(compared)};
    return result;
  }

 private:
  // Cheaper by the number of iterations: with T of them AT costs at least T steps of R2ET where each costs at least one. Cheaper
  // at all: a step of AT with its one iteration costs more.
  static Verdict judge(const std::vector<Compared>& compared) {
    std::vector<std::string> parts;
    std::string text;
    for (const Compared& one : compared) {
      Tally cheaper, by_number;
      for (const Case& dataset : one.step) cheaper.add_above(dataset.value, 1);
      for (const Case& dataset : one.iteration) by_number.add_above(dataset.value, 1);
      parts.insert(parts.end(), {judge_all(cheaper), judge_all(by_number)});
      text += fmt::format(
          " Against {}: one attack iteration costs {} steps; a step of AT with one iteration {}. That a step of AT "
          "costs more: {}; that each iteration does: {}.",
          one.method, words(one.iteration), words(one.step), cheaper.words(), by_number.words());
    }
    return make_verdict(
        "R7", "R2ET is cheaper than AT by the number of attack iterations (the claim's other half, AT's stability: r2et/table1)",
        combined(parts),
        "Number: what an attack iteration adds to a step of AT (AT with one iteration minus Vanilla), in steps of R2ET\\H; mean "
        "over datasets, interval over rounds on one machine. From 1 on, T iterations cost as much as T steps of R2ET." +
            text,
        mean_over(compared.front().iteration), 0);
  }
};

}  // namespace

void add_cost(Registry<Experiment>& registry) {
  registry.add<Cost>(kCostInfo);
}

}  // namespace holdfast::r2et

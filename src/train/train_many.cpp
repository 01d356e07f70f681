#include "holdfast/train/train_many.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>

#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/clock.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/model.h"
#include "holdfast/train/objective.h"
#include "holdfast/train/optimizer.h"
#include "holdfast/train/schedule.h"
#include "keep.h"
#include "stack.h"

namespace holdfast::train {
namespace {

// More networks than this are cut into several stacks, whatever the number of threads: results must not depend on it.
constexpr std::size_t kLargestStack = 10;

std::vector<Network> starting_networks(const std::vector<TrainOptions>& options) {
  std::vector<Network> networks;
  for (const TrainOptions& one : options) networks.push_back(starting_network(one));
  return networks;
}

// Sums over an epoch of every network's loss and terms.
class StackMeans {
 public:
  explicit StackMeans(const std::vector<Term>& terms) : terms_(terms) {}

  // `means` [terms, networks], of batches of `samples`.
  void add(const at::Tensor& means, const at::Tensor& losses, std::int64_t samples) {
    const at::Tensor both = at::cat({losses.detach().unsqueeze(0), means.detach()});
    if (!sums_.defined()) sums_ = at::zeros_like(both, at::kDouble);
    sums_.add_(both, static_cast<double>(samples));
    samples_ += static_cast<double>(samples);
  }

  void write(EpochRecord& record, std::int64_t network) const {
    const at::Tensor means = (sums_.select(1, network) / samples_).cpu();
    record.loss = means[0].item<double>();
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      record.parts.emplace_back(terms_[i].name, means[static_cast<std::int64_t>(i) + 1].item<double>());
    }
  }

  bool finite() const { return sums_.isfinite().all().item<bool>(); }

 private:
  const std::vector<Term> terms_;
  at::Tensor sums_;
  double samples_ = 0;
};

// The training of one stack; the loop of trainer.cpp with a dimension more and no checkpoint.
class StackTraining {
 public:
  StackTraining(const Dataset& dataset, std::vector<TrainOptions> options)
      : dataset_(dataset),
        options_(std::move(options)),
        one_seed_(std::ranges::all_of(options_, [&](const TrainOptions& one) { return one.seed == options_.front().seed; })),
        inputs_(dataset.inputs.to(first().device)),
        labels_(dataset.labels.to(first().device)),
        optimizer_(optimizers().make(first().optimizer)),
        schedule_(schedules().make(first().schedule)) {
    const std::vector<Network> networks = starting_networks(options_);
    for (std::size_t m = 0; m < options_.size(); ++m) {
      objectives_.push_back(objectives().make(options_[m].objective));
      objectives_.back()->check(networks[m], dataset.schema);
      keepers_.push_back(std::make_unique<Keeper>(dataset_, options_[m], networks[m]));
    }
    network_ = stack(networks);
    trainee_ = make_trainee(network_);
    network_.require_grad(true);
    optimizer_->start(network_.parameters(), *first().weight_decay);
    results_.resize(options_.size());
  }

  std::vector<TrainResult> run(Progress& bar) {
    while (running()) train_epoch(bar);
    for (std::size_t m = 0; m < options_.size(); ++m) finish(m);
    return std::move(results_);
  }

 private:
  using Batches = std::vector<std::vector<std::int64_t>>;

  const TrainOptions& first() const { return options_.front(); }
  std::int64_t networks() const { return static_cast<std::int64_t>(options_.size()); }
  bool finished(std::size_t m) const { return keepers_[m]->finished(static_cast<std::int64_t>(results_[m].history.size())); }
  bool running() const {
    for (std::size_t m = 0; m < options_.size(); ++m) {
      if (!finished(m)) return true;
    }
    return false;
  }

  void train_epoch(Progress& bar) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<Batches> batches;  // one for each network, or one for all
    for (const TrainOptions& one : options_) {
      batches.push_back(epoch_batches(dataset_.train, one.batch_size, one.seed, epoch_));
      if (one_seed_) break;
    }
    steps_per_epoch_ = static_cast<std::int64_t>(batches.front().size());
    const double rate = learning_rate();
    StackMeans means(objectives_.front()->terms(progress()));
    for (std::size_t step = 0; step < batches.front().size(); ++step) {
      throw_if_interrupted();
      std::vector<std::int64_t> rows;
      for (const Batches& own : batches) rows.insert(rows.end(), own[step].begin(), own[step].end());
      train_step(rows, means);
      bar.advance(networks());
    }
    if (!means.finite()) {
      failure("the loss is not finite in epoch {} of a stack of {} trainings of {}; try a learning_rate below {}", epoch_ + 1,
              networks(), first().recipe, first().learning_rate);
    }
    ++epoch_;
    const double seconds = seconds_since(start);
    for (std::size_t m = 0; m < options_.size(); ++m) {
      if (!finished(m)) record(m, means, rate, seconds / static_cast<double>(networks()));
    }
  }

  void record(std::size_t m, const StackMeans& means, double rate, double seconds) {
    EpochRecord record{.epoch = epoch_, .learning_rate = rate, .seconds = seconds};
    const auto index = static_cast<std::int64_t>(m);
    means.write(record, index);
    const Network own = unstacked(network_, index);
    keepers_[m]->judge(record, own);
    results_[m].history.push_back(std::move(record));
    if (finished(m)) results_[m].network = own.clone();  // the others train on
  }

  void train_step(const std::vector<std::int64_t>& rows, StackMeans& means) {
    const std::int64_t step = optimizer_->steps();
    const at::Tensor chosen = torch::tensor(rows, at::kLong), index = chosen.to(first().device), ids = for_each_network(chosen);
    const TrainBatch batch{.inputs = for_each_network(inputs_.index_select(0, index)),
                           .labels = for_each_network(labels_.index_select(0, index)),
                           .sample_ids = ids,
                           .schema = dataset_.schema,
                           .seed = derived_seed(first().seed, "train.step", static_cast<std::uint64_t>(step)),
                           .progress = progress()};
    const at::Tensor values = at::stack(objectives_.front()->values(*trainee_, batch));
    const at::Tensor terms = values.view({values.size(0), networks(), -1}).mean(2);
    const at::Tensor losses = (weights(batch.progress, terms.options()) * terms).sum(0);
    means.add(terms, losses, ids.numel() / networks());
    optimizer_->minimise(losses.sum(), learning_rate());
    take_snapshots();
  }

  void take_snapshots() {
    const std::int64_t step = optimizer_->steps();
    if (!std::ranges::binary_search(first().snapshots, step)) return;
    for (std::size_t m = 0; m < options_.size(); ++m) {
      if (!finished(m))
        results_[m].snapshots.push_back(
            {.step = step, .network = unstacked(network_, static_cast<std::int64_t>(m)).to(at::Device(at::kCPU))});
    }
  }

  // The rows of all networks: those of a grid, which has one seed, are gathered once.
  at::Tensor for_each_network(const at::Tensor& rows) const {
    if (!one_seed_) return rows;
    std::vector<std::int64_t> times(static_cast<std::size_t>(rows.dim()), 1);
    times[0] = networks();
    return rows.repeat(times);
  }

  // [terms, networks]
  at::Tensor weights(double progress, at::TensorOptions options) const {
    std::vector<double> rows;
    for (const auto& objective : objectives_) {
      for (const Term& term : objective->terms(progress)) rows.push_back(term.weight);
    }
    return torch::tensor(rows, at::kDouble).view({networks(), -1}).t().to(options);
  }

  double progress() const {
    return static_cast<double>(optimizer_->steps()) / static_cast<double>(first().epochs * steps_per_epoch_);
  }
  double learning_rate() const {
    return first().learning_rate * schedule_->factor({optimizer_->steps(), steps_per_epoch_, first().epochs});
  }

  void finish(std::size_t m) {
    TrainResult& result = results_[m];
    const Keeper& keeper = *keepers_[m];
    result.kept_epoch = keeper.kept_epoch(static_cast<std::int64_t>(result.history.size()));
    if (keeper.keeps_best()) result.network.load(keeper.best(), "the best epoch's weights");
    result.network = result.network.to(at::Device(at::kCPU));
    result.architecture = options_[m].architecture;
    result.options = options_[m];
    const auto quality_on = [&](const std::vector<std::int64_t>& rows) {
      return prediction_quality(predict(result.network, dataset_.inputs_of(rows)), dataset_.labels_of(rows));
    };
    if (!dataset_.validation.empty()) result.validation = quality_on(dataset_.validation);
    if (!dataset_.test.empty()) result.test = quality_on(dataset_.test);
    for (StepSnapshot& one : result.snapshots) judge_snapshot(dataset_, one);
  }

  const Dataset& dataset_;
  const std::vector<TrainOptions> options_;
  const bool one_seed_;  // as a grid has: its networks see the same samples in the same order
  at::Tensor inputs_, labels_;
  Network network_;
  std::unique_ptr<Trainee> trainee_;
  std::vector<std::unique_ptr<Objective>> objectives_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Schedule> schedule_;
  std::vector<std::unique_ptr<Keeper>> keepers_;
  std::vector<TrainResult> results_;
  std::int64_t steps_per_epoch_ = 1;
  std::int64_t epoch_ = 0;  // done
};

// Trainings with the same text can be one stack; empty: this one trains alone.
std::string stack_key(const Dataset& dataset, const TrainOptions& options) {
  const auto architecture = architectures().make(options.architecture);
  if (dataset.schema.layout.kind != Layout::Kind::kVector || !can_stack(architecture->build(options.seed))) return {};
  const auto objective = objectives().make(options.objective);
  if (objective->fits()) return {};
  Json key = to_json(options);
  key["objective"] = objective->kind();
  key["terms"] = Json::array();
  for (const Term& term : objective->terms(0)) key["terms"].push_back(term.name);
  for (const char* free : {"seed", "recipe"}) key.erase(free);
  if (key.contains("retrain")) key["retrain"].erase("from");
  return key.dump();
}

using Together = std::vector<std::size_t>;  // positions of trainings that are one stack

// Equal parts, at least two where that leaves no network alone: one for each of two cores.
void cut(const Together& all, std::vector<Together>& stacks) {
  const std::size_t fewest = all.size() < 4 ? 1 : 2;
  const std::size_t parts = std::max(fewest, (all.size() + kLargestStack - 1) / kLargestStack);
  for (std::size_t i = 0; i < parts; ++i) {
    const auto at = [&](std::size_t part) { return all.begin() + static_cast<std::ptrdiff_t>(part * all.size() / parts); };
    stacks.emplace_back(at(i), at(i + 1));
  }
}

std::vector<Together> grouped(const Dataset& dataset, const std::vector<TrainOptions>& options) {
  std::map<std::string, Together> same;
  std::vector<Together> stacks;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string key = stack_key(dataset, options[i]);
    if (key.empty()) {
      stacks.push_back({i});
    } else {
      same[key].push_back(i);
    }
  }
  for (const auto& [key, all] : same) cut(all, stacks);
  return stacks;
}

std::int64_t steps_of(const Dataset& dataset, const TrainOptions& options) {
  return options.epochs * static_cast<std::int64_t>(epoch_batches(dataset.train, options.batch_size, options.seed, 0).size());
}

}  // namespace

std::vector<TrainResult> train_many(const Dataset& dataset, const std::vector<TrainOptions>& options, int threads,
                                    const std::string& label) {
  std::vector<TrainOptions> all;
  std::int64_t steps = 0;
  for (const TrainOptions& one : options) {
    all.push_back(resolved(dataset, one));
    all.back().threads = 1;
    all.back().folder.clear();
    all.back().show_progress = false;
    steps += steps_of(dataset, all.back());
  }
  std::vector<TrainResult> results(all.size());
  const std::vector<Together> groups = grouped(dataset, all);
  Progress bar(label, steps, "steps");
  for_each_tile(static_cast<std::int64_t>(groups.size()), 1, threads, [&](const Tile& tile) {
    const Together& group = groups[static_cast<std::size_t>(tile.begin)];
    std::vector<TrainOptions> own;
    for (const std::size_t position : group) own.push_back(all[position]);
    std::vector<TrainResult> trained;
    if (group.size() == 1) {
      trained.push_back(train_network(dataset, own.front()));
      bar.advance(steps_of(dataset, own.front()));
    } else {
      trained = StackTraining(dataset, own).run(bar);
    }
    for (std::size_t i = 0; i < group.size(); ++i) results[group[i]] = std::move(trained[i]);
  });
  return results;
}

}  // namespace holdfast::train

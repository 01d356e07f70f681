#include "holdfast/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>

#include <torch/csrc/autograd/generated/variable_factories.h>
#include <torch/version.h>

#include "holdfast/core/clock.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/model.h"
#include "holdfast/train/checkpoint.h"
#include "holdfast/train/objective.h"
#include "holdfast/train/optimizer.h"
#include "holdfast/train/schedule.h"
#include "keep.h"

namespace holdfast::train {
namespace {

// cuDNN chooses among algorithms that add in different orders; a training should not depend on its choice.
class DeterministicCudnn {
 public:
  DeterministicCudnn() : before_(at::globalContext().deterministicCuDNN()) { at::globalContext().setDeterministicCuDNN(true); }
  ~DeterministicCudnn() { at::globalContext().setDeterministicCuDNN(before_); }
  DeterministicCudnn(const DeterministicCudnn&) = delete;
  DeterministicCudnn& operator=(const DeterministicCudnn&) = delete;

 private:
  bool before_;
};

std::string fingerprint(const std::vector<std::int64_t>& rows) {
  return sha256_hex(std::as_bytes(std::span(rows))).substr(0, 16);
}

// What must be the same for a checkpoint to be continued. Other instructions or another torch round otherwise.
Json settings_of(const Dataset& dataset, const TrainOptions& options) {
  Json settings = to_json(options);
  settings["torch"] = TORCH_VERSION;
  settings["instructions"] = at::get_cpu_capability();
  settings["dataset"] = dataset.name;
  settings["content of the dataset"] = dataset.digest;
  settings["training samples"] = fingerprint(dataset.train);
  settings["validation samples"] = fingerprint(dataset.validation);
  return settings;
}

void check_same_settings(const Json& stored, const Json& wanted, const std::string& path) {
  for (const auto& [key, value] : wanted.items()) {
    const Json before = stored.value(key, Json());
    if (before != value) {
      usage_error("{} is of another training ({} was {}, is {}); choose another --out, or give --restart to train again", path,
                  key, before.dump(), value.dump());
    }
  }
}

// The mean over an epoch's samples of the loss and its parts.
class LossMeans {
 public:
  void add(const Loss& loss, double total, std::int64_t samples) {
    const double weight = static_cast<double>(samples);
    samples_ += weight;
    total_ += weight * total;
    if (parts_.empty()) {
      for (const auto& [name, value] : loss.parts) parts_.emplace_back(name, 0);
    }
    HOLDFAST_CHECK(parts_.size() == loss.parts.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].second += weight * loss.parts[i].second.item<double>();
  }

  void write(EpochRecord& record) const {
    record.loss = total_ / samples_;
    record.parts = parts_;
    for (auto& [name, value] : record.parts) value /= samples_;
  }

 private:
  double samples_ = 0, total_ = 0;
  std::vector<std::pair<std::string, double>> parts_;
};

class Training {
 public:
  Training(const Dataset& dataset, const TrainOptions& options)
      : dataset_(dataset),
        options_(options),
        inputs_(dataset.inputs.to(options.device)),
        labels_(dataset.labels.to(options.device)),
        network_(starting_network(options)),
        trainee_(make_trainee(network_)),
        objective_(objectives().make(options.objective)),
        optimizer_(optimizers().make(options.optimizer)),
        schedule_(schedules().make(options.schedule)),
        keeper_(dataset_, options_, network_) {
    objective_->check(network_, dataset.schema);
    network_.require_grad(true);
    optimizer_->start(network_.parameters(), *options.weight_decay);
    steps_per_epoch_ = static_cast<std::int64_t>(epoch_batches(dataset.train, options.batch_size, options.seed, 0).size());
  }

  void run(const std::function<void(const EpochRecord&)>& on_epoch) {
    if (!options_.folder.empty()) open_folder();
    const std::string label =
        "train " + (options_.network ? options_.architecture : parse_method_call(options_.architecture).name);
    const auto bar =
        options_.show_progress ? std::make_unique<Progress>(label, options_.epochs * steps_per_epoch_, "steps") : nullptr;
    if (bar) bar->set(epochs_done() * steps_per_epoch_);
    while (!finished()) {
      history_.push_back(train_epoch_or_stop(bar.get()));
      if (!options_.folder.empty()) save();
      if (on_epoch) on_epoch(history_.back());
    }
  }

  TrainResult result() {
    TrainResult result;
    result.kept_epoch = keeper_.kept_epoch(epochs_done());
    if (keeper_.keeps_best()) network_.load(keeper_.best(), "the best epoch's weights");
    result.network = network_.to(at::Device(at::kCPU));
    result.architecture = options_.architecture;
    result.options = options_;
    result.history = history_;
    if (!dataset_.validation.empty()) result.validation = quality_on(dataset_.validation);
    if (!dataset_.test.empty()) result.test = quality_on(dataset_.test);
    result.snapshots = std::move(snapshots_);
    for (StepSnapshot& one : result.snapshots) judge_snapshot(dataset_, one);
    return result;
  }

 private:
  std::int64_t epochs_done() const { return static_cast<std::int64_t>(history_.size()); }

  bool finished() const { return keeper_.finished(epochs_done()); }

  // An interrupt may be seen between steps or inside the validation; either way the epoch is given up and the checkpoint of the
  // one before stands.
  EpochRecord train_epoch_or_stop(Progress* bar) {
    try {
      return train_epoch(bar);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInterrupted) stop();
      throw;
    }
  }

  EpochRecord train_epoch(Progress* bar) {
    const auto start = std::chrono::steady_clock::now();
    EpochRecord record{.epoch = epochs_done() + 1, .learning_rate = learning_rate()};
    LossMeans means;
    if (objective_->fits()) {
      objective_->fit(network_, dataset_, options_.seed);
      note_loss(means);
    }
    for (const auto& rows : epoch_batches(dataset_.train, options_.batch_size, options_.seed, epochs_done())) {
      throw_if_interrupted();
      if (!objective_->fits()) train_step(rows, means);
      if (bar) bar->advance();
    }
    means.write(record);
    keeper_.judge(record, network_);
    record.seconds = seconds_since(start);
    if (bar) {
      bar->note(fmt::format("epoch {}, loss {:.4f}{}", record.epoch, record.loss,
                            record.accuracy ? fmt::format(", validation accuracy {:.4f}", *record.accuracy) : ""));
    }
    return record;
  }

  // The loss of all training samples with the weights as they are.
  void note_loss(LossMeans& means) {
    const at::NoGradGuard no_graph;
    const at::Tensor ids = torch::tensor(dataset_.train, at::kLong), index = ids.to(options_.device);
    const Loss loss = loss_of(*objective_, *trainee_,
                              {.inputs = inputs_.index_select(0, index),
                               .labels = labels_.index_select(0, index),
                               .sample_ids = ids,
                               .schema = dataset_.schema,
                               .seed = options_.seed});
    means.add(loss, loss.total.item<double>(), ids.numel());
  }

  void train_step(const std::vector<std::int64_t>& rows, LossMeans& means) {
    const std::int64_t step = optimizer_->steps();
    const at::Tensor ids = torch::tensor(rows, at::kLong), index = ids.to(options_.device);
    const TrainBatch batch{.inputs = inputs_.index_select(0, index),
                           .labels = labels_.index_select(0, index),
                           .sample_ids = ids,
                           .schema = dataset_.schema,
                           .seed = derived_seed(options_.seed, "train.step", static_cast<std::uint64_t>(step)),
                           .progress = static_cast<double>(step) / static_cast<double>(options_.epochs * steps_per_epoch_)};
    const Loss loss = loss_of(*objective_, *trainee_, batch);
    const double total = loss.total.item<double>();
    if (!std::isfinite(total)) diverged();
    means.add(loss, total, ids.numel());

    optimizer_->minimise(loss.total, learning_rate());
    take_snapshot();
  }

  // With a folder the snapshot is a file too: a training that goes on later starts after it.
  void take_snapshot() {
    const std::int64_t step = optimizer_->steps();
    if (!std::ranges::binary_search(options_.snapshots, step)) return;
    snapshots_.push_back({.step = step, .network = network_.to(at::Device(at::kCPU))});
    if (!options_.folder.empty()) save_network(snapshot_path(step), snapshots_.back().network, options_.architecture);
  }

  double learning_rate() const {
    return options_.learning_rate * schedule_->factor({optimizer_->steps(), steps_per_epoch_, options_.epochs});
  }

  [[noreturn]] void diverged() const {
    failure("the loss is not finite in epoch {}, step {}; try a learning_rate below {} or a schedule with warm-up",
            epochs_done() + 1, optimizer_->steps() % steps_per_epoch_ + 1, options_.learning_rate);
  }

  [[noreturn]] void stop() const {
    const std::string where = fmt::format("interrupted in epoch {} of {}", epochs_done() + 1, options_.epochs);
    if (options_.folder.empty() || history_.empty()) throw Error(ErrorKind::kInterrupted, where);
    throw Error(
        ErrorKind::kInterrupted,
        fmt::format("{}; the epochs before it are kept in {}: run the same command again to continue", where, checkpoint_path()));
  }

  PredictionQuality quality_on(const std::vector<std::int64_t>& rows) const {
    const int threads = options_.device.is_cpu() ? options_.threads : 1;
    return prediction_quality(predict(network_, dataset_.inputs_of(rows), threads), dataset_.labels_of(rows));
  }

  std::string checkpoint_path() const { return options_.folder + "/checkpoint.safetensors"; }
  std::string snapshot_path(std::int64_t step) const { return fmt::format("{}/step-{}.safetensors", options_.folder, step); }
  std::string history_path() const { return options_.folder + "/history.jsonl"; }

  // Takes up what an earlier call left, and makes the history agree with it.
  void open_folder() {
    make_folders(options_.folder);
    if (file_exists(checkpoint_path())) restore(load_checkpoint(checkpoint_path()));
    std::string lines;
    for (const EpochRecord& record : history_) lines += to_json(record).dump() + "\n";
    write_atomic(history_path(), lines);
  }

  void restore(const Checkpoint& checkpoint) {
    const std::string path = checkpoint_path();
    check_same_settings(checkpoint.settings, settings_of(dataset_, options_), path);
    const TrainProgress& progress = checkpoint.progress;
    optimizer_->restore(checkpoint.optimizer, progress.step, path);
    keeper_.restore(progress.best_epoch, progress.best_value, checkpoint.best);
    history_ = progress.history;
    network_.load(checkpoint.network, path);
    for (const std::int64_t step : options_.snapshots) {
      if (step <= optimizer_->steps())
        snapshots_.push_back({.step = step, .network = load_model(snapshot_path(step))->network()->to(at::Device(at::kCPU))});
    }
  }

  void save() const {
    save_checkpoint(checkpoint_path(), {.network = network_.parameters(),
                                        .best = keeper_.best(),
                                        .optimizer = optimizer_->state(),
                                        .settings = settings_of(dataset_, options_),
                                        .progress = {.step = optimizer_->steps(),
                                                     .best_epoch = keeper_.best_epoch(),
                                                     .best_value = keeper_.best_value(),
                                                     .history = history_}});
    std::ofstream file(history_path(), std::ios::app);
    file << to_json(history_.back()).dump() << '\n';
    file.close();
    if (!file) failure("cannot write to {}", history_path());
  }

  const Dataset& dataset_;
  const TrainOptions options_;
  at::Tensor inputs_, labels_;  // all samples, on the device
  Network network_;
  std::unique_ptr<Trainee> trainee_;
  std::unique_ptr<Objective> objective_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Schedule> schedule_;
  std::int64_t steps_per_epoch_ = 0;

  std::vector<EpochRecord> history_;
  std::vector<StepSnapshot> snapshots_;
  Keeper keeper_;
};

}  // namespace

TrainResult train_network(const Dataset& dataset, const TrainOptions& options,
                          const std::function<void(const EpochRecord&)>& on_epoch) {
  const TileThread one_thread;
  const DeterministicCudnn deterministic;
  Training training(dataset, resolved(dataset, options));
  training.run(on_epoch);
  return training.result();
}

std::vector<std::vector<std::int64_t>> epoch_batches(const std::vector<std::int64_t>& rows, std::int64_t batch_size,
                                                     std::uint64_t seed, std::int64_t epoch) {
  const auto order =
      RandomStream(seed, "train.order", static_cast<std::uint64_t>(epoch)).permutation(static_cast<std::int64_t>(rows.size()));
  std::vector<std::vector<std::int64_t>> batches;
  for (const std::int64_t position : order) {
    if (batches.empty() || static_cast<std::int64_t>(batches.back().size()) == batch_size) batches.emplace_back();
    batches.back().push_back(rows[static_cast<std::size_t>(position)]);
  }
  if (batches.size() > 1 && batches.back().size() == 1 && batch_size > 1) {
    const std::int64_t last = batches.back().front();
    batches.pop_back();
    batches.back().push_back(last);
  }
  return batches;
}

}  // namespace holdfast::train

#include "holdfast/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include <torch/version.h>

#include "batch_source.h"
#include "holdfast/core/clock.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/precision.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/model.h"
#include "holdfast/train/augmentation.h"
#include "holdfast/train/checkpoint.h"
#include "holdfast/train/objective.h"
#include "holdfast/train/optimizer.h"
#include "holdfast/train/schedule.h"
#include "keep.h"
#include "step_losses.h"

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

class Training {
 public:
  Training(const Dataset& dataset, const TrainOptions& options)
      : dataset_(dataset),
        options_(options),
        source_(dataset, options.device),
        network_(starting_network(options)),
        share_{.ranks = options.ranks},
        trainee_(make_trainee(network_, options.ranks == nullptr ? nullptr : &share_)),
        objective_(objectives().make(options.objective)),
        optimizer_(optimizers().make(options.optimizer)),
        schedule_(schedules().make(options.schedule)),
        augmentation_(augmentations().make(options.augmentation)),
        keeper_(dataset_, options_, network_) {
    objective_->check(network_, dataset.schema);
    if (options.ranks != nullptr && objective_->compares_samples())
      usage_error("{} compares the samples of a batch, so {} ranks cannot share it; train it in one process", options.recipe,
                  options.ranks->size());
    network_.require_grad(true);
    optimizer_->start(network_.parameters(), *options.weight_decay);
    steps_per_epoch_ = static_cast<std::int64_t>(epoch_batches(dataset.train, options.batch_size, options.seed, 0).size());
  }

  void run(const std::function<void(const EpochRecord&)>& on_epoch) {
    open_folder();
    const std::string label =
        "train " + (options_.network ? options_.architecture : parse_method_call(options_.architecture).name);
    const auto bar =
        options_.show_progress ? std::make_unique<Progress>(label, options_.epochs * steps_per_epoch_, "steps") : nullptr;
    if (bar) bar->set(epochs_done() * steps_per_epoch_);
    while (!finished()) {
      history_.push_back(train_epoch_or_stop(bar.get()));
      if (writes()) save();
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
  bool leads() const { return options_.ranks == nullptr || options_.ranks->rank() == 0; }
  bool writes() const { return leads() && !options_.folder.empty(); }

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
    StepLosses losses([this](std::int64_t step) { diverged(step); }, StepLosses::read_together(options_.device));
    if (objective_->fits()) {
      objective_->fit(network_, dataset_, options_.seed);
      note_loss(losses);
      if (bar) bar->advance(steps_per_epoch_);
    } else {
      train_steps(losses, bar);
    }
    losses.write(record);
    keeper_.judge(record, network_);
    record.seconds = seconds_since(start);
    if (bar) {
      bar->note(fmt::format("epoch {}, loss {:.4f}{}", record.epoch, record.loss,
                            record.accuracy ? fmt::format(", validation accuracy {:.4f}", *record.accuracy) : ""));
    }
    return record;
  }

  void train_steps(StepLosses& losses, Progress* bar) {
    const PrecisionGuard precision(parse_precision(options_.precision));
    const auto batches = epoch_batches(dataset_.train, options_.batch_size, options_.seed, epochs_done());
    source_.begin_epoch(own_parts(batches));
    for (const std::vector<std::int64_t>& rows : batches) {
      throw_if_interrupted();
      train_step(static_cast<std::int64_t>(rows.size()), losses);
      if (bar) bar->advance();
    }
  }

  // This rank's part of each batch.
  std::vector<std::vector<std::int64_t>> own_parts(const std::vector<std::vector<std::int64_t>>& batches) const {
    if (options_.ranks == nullptr) return batches;
    std::vector<std::vector<std::int64_t>> parts;
    for (const std::vector<std::int64_t>& rows : batches) {
      const RankRows own = own_rows(static_cast<std::int64_t>(rows.size()));
      parts.emplace_back(rows.begin() + own.first, rows.begin() + own.first + own.count);
    }
    return parts;
  }
  RankRows own_rows(std::int64_t rows) const { return rows_of_rank(rows, options_.ranks->rank(), options_.ranks->size()); }

  // The loss of all training samples with the weights as they are.
  void note_loss(StepLosses& losses) {
    const at::NoGradGuard no_graph;
    source_.begin_epoch({dataset_.train});
    const GatheredBatch all = source_.next();
    losses.add(loss_of(*objective_, *trainee_,
                       {.inputs = all.inputs,
                        .labels = all.labels,
                        .sample_ids = all.ids,
                        .schema = dataset_.schema,
                        .seed = options_.seed}),
               all.ids.numel());
  }

  // `rows`: of the whole batch, of which a rank has a part.
  void train_step(std::int64_t rows, StepLosses& losses) {
    const std::int64_t step = optimizer_->steps();
    const GatheredBatch own = source_.next();
    const TrainBatch batch{.inputs = augmentation_->apply(own.inputs, own.ids, options_.seed, epochs_done()),
                           .labels = own.labels,
                           .sample_ids = own.ids,
                           .schema = dataset_.schema,
                           .seed = derived_seed(options_.seed, "train.step", static_cast<std::uint64_t>(step)),
                           .progress = static_cast<double>(step) / static_cast<double>(options_.epochs * steps_per_epoch_)};
    if (options_.ranks != nullptr) share_.rows = own_rows(rows);
    Loss loss = loss_of(*objective_, *trainee_, batch);
    std::vector<at::Tensor> gradients;
    if (options_.ranks == nullptr) {
      losses.add(loss, rows);
      gradients = optimizer_->gradients_of(loss.total);
    } else {
      gradients = add_up(loss, rows);
      losses.add(loss, rows);
    }
    optimizer_->step(gradients, learning_rate());
    take_snapshot();
  }

  // Gradients of the whole batch, and in `loss` its numbers: the sums of what the ranks have of them, in one message.
  std::vector<at::Tensor> add_up(Loss& loss, std::int64_t rows) {
    const double part = share_.rows.counts ? static_cast<double>(share_.rows.count) / static_cast<double>(rows) : 0;
    const at::Tensor total = loss.total * part;
    std::vector<at::Tensor> gradients = optimizer_->gradients_of(total), flat;
    for (const at::Tensor& gradient : gradients) flat.push_back(gradient.flatten());
    const at::ScalarType type = flat.front().scalar_type();
    flat.push_back(total.detach().to(type).view({1}));
    for (const auto& [name, value] : loss.parts) flat.push_back((value * part).to(type).view({1}));
    at::Tensor all = at::cat(flat);
    options_.ranks->add_up(all);
    std::int64_t begin = 0;
    const auto take = [&](const at::Tensor& like) {
      const std::int64_t from = std::exchange(begin, begin + like.numel());
      return all.slice(0, from, begin).view(like.sizes());
    };
    for (at::Tensor& gradient : gradients) gradient = take(gradient);
    loss.total = take(loss.total);
    for (auto& [name, value] : loss.parts) value = take(value);
    return gradients;
  }

  // With a folder the snapshot is a file too: a training that goes on later starts after it.
  void take_snapshot() {
    const std::int64_t step = optimizer_->steps();
    if (!std::ranges::binary_search(options_.snapshots, step)) return;
    snapshots_.push_back({.step = step, .network = network_.to(at::Device(at::kCPU))});
    if (writes()) save_network(snapshot_path(step), snapshots_.back().network, options_.architecture);
  }

  double learning_rate() const {
    return options_.learning_rate * schedule_->factor({optimizer_->steps(), steps_per_epoch_, options_.epochs});
  }

  // `step`: of this epoch, from 0.
  [[noreturn]] void diverged(std::int64_t step) const {
    failure("the loss is not finite in epoch {}, step {}; try a learning_rate below {} or a schedule with warm-up",
            epochs_done() + 1, step + 1, options_.learning_rate);
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
    if (options_.folder.empty()) return;
    if (leads()) make_folders(options_.folder);
    if (file_exists(checkpoint_path())) restore(load_checkpoint(checkpoint_path()));
    if (options_.ranks != nullptr) check_same_start();
    if (!leads()) return;
    std::string lines;
    for (const EpochRecord& record : history_) lines += to_json(record).dump() + "\n";
    write_atomic(history_path(), lines);
  }

  // A rank that does not see rank 0's checkpoint would begin anew.
  void check_same_start() const {
    at::Tensor steps = at::full({1}, static_cast<double>(optimizer_->steps()), at::kDouble);
    options_.ranks->add_up(steps);
    if (steps.item<double>() != static_cast<double>(optimizer_->steps() * options_.ranks->size()))
      usage_error("rank {} begins after step {}, other ranks after another one: --out must be a folder that all ranks share",
                  options_.ranks->rank(), optimizer_->steps());
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
  BatchSource source_;
  Network network_;
  BatchShare share_;  // of the batch at hand, where ranks train together
  std::unique_ptr<Trainee> trainee_;
  std::unique_ptr<Objective> objective_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Augmentation> augmentation_;
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

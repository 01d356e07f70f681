#include "model_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "holdfast/core/error.h"
#include "holdfast/core/large_tensor.h"
#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"

namespace holdfast::experiment {
namespace {

at::TensorOptions numbers_of(const Model& model) {
  return at::TensorOptions().device(model.device()).dtype(model.dtype());
}

at::Tensor plain_numbers(const at::Tensor& tensor) {
  return tensor.to(at::kCPU, at::kDouble).contiguous();
}

// Row by row up to the first element that is not zero: a pass over all of them costs as much as a small network.
std::int64_t count_zero_rows(const at::Tensor& rows) {
  std::int64_t count = 0;
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "count_zero_rows", [&] {
    const scalar_t* row = rows.const_data_ptr<scalar_t>();
    for (std::int64_t i = 0; i < rows.size(0); ++i, row += rows.size(1)) {
      if (std::all_of(row, row + rows.size(1), [](scalar_t value) { return value == 0; })) ++count;
    }
  });
  return count;
}

}  // namespace

int threads_for(const Model& model, int threads) {
  return model.capabilities().side_by_side && model.device().is_cpu() ? threads : 1;
}

std::int64_t tile_size(const TileOptions& tiles, const Layout& layout, const Model& model) {
  return tiles.size > 0 ? tiles.size : default_tile(layout, model.device());
}

at::Tensor rows(const at::Tensor& tensor, const Tile& tile) {
  return tensor.slice(0, tile.begin, tile.end);
}

at::Tensor inputs_for(const at::Tensor& inputs, const Tile& tile, const Model& model) {
  return rows(inputs, tile).to(numbers_of(model), /*non_blocking=*/false, /*copy=*/is_large(inputs.nbytes())).contiguous();
}

Samples prepared(Samples samples, const Model& model) {
  for (at::Tensor* tensor : {&samples.baseline, &samples.background}) {
    if (tensor->defined()) *tensor = tensor->to(numbers_of(model), /*non_blocking=*/false, /*copy=*/true).contiguous();
  }
  return samples;
}

Samples samples_for(const Samples& samples, const Tile& tile, const Model& model) {
  Samples part = samples.slice(tile.begin, tile.end);
  part.inputs = inputs_for(samples.inputs, tile, model);
  part = part.to(numbers_of(model));
  if (part.targets.defined()) return part;
  const at::NoGradGuard no_grad;
  part.targets = predicted_class(model.logits(part.inputs));
  return part;
}

Samples with_any_targets(Samples samples) {
  if (!samples.targets.defined()) samples.targets = at::zeros({samples.count()}, at::kLong);
  return samples;
}

at::Tensor to_cpu(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().cpu();
  return (at::isReducedFloatingType(plain.scalar_type()) ? plain.to(at::kFloat) : plain).contiguous();
}

std::vector<std::int64_t> to_vector(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor values = tensor.to(at::kCPU, at::kLong).contiguous();
  return {values.const_data_ptr<std::int64_t>(), values.const_data_ptr<std::int64_t>() + values.numel()};
}

at::Tensor confidence(const at::Tensor& logits, const at::Tensor& classes) {
  return class_scores(logits, classes).contiguous();
}

void check_maps(const at::Tensor& maps, const std::string& explainer, const std::string& model) {
  const std::int64_t samples = maps.size(0);
  std::int64_t empty = 0;
  for_each_part(to_cpu(maps), [&](std::int64_t, const at::Tensor& part) { empty += count_zero_rows(part.flatten(1)); });
  if (empty == samples) {
    input_error(
        "{}: every explanation of {} is zero, so there is nothing to rank; its output has no gradient by its inputs, or the same "
        "one everywhere",
        explainer, model);
  }
  if (empty > 0) log_warning("{}: {} of {} explanations are zero everywhere and rank nothing", explainer, empty, samples);
}

void check_same_logits(const Model& model, const at::Tensor& alone, const at::Tensor& among_others) {
  // Plain loops: a dozen tensor operations on a few logits would cost as much as a small network.
  const at::Tensor own = plain_numbers(alone), other = plain_numbers(among_others);
  double size = 0, apart = own.numel() == other.numel() ? 0 : std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < std::min(own.numel(), other.numel()); ++i) {
    const double logit = own.const_data_ptr<double>()[i];
    size = std::max(size, std::abs(logit));
    apart = std::max(apart, std::abs(logit - other.const_data_ptr<double>()[i]));
  }
  if (apart > 1e-3 * (1 + size)) {
    input_error("{}: its output for a sample depends on the other samples of the batch, or on random numbers", model.name());
  }
}

void check_tile_apart(const Model& model, const at::Tensor& inputs, std::int64_t samples) {
  if (model.network() != nullptr || model.capabilities().known_apart) return;
  const at::NoGradGuard no_grad;
  const at::Tensor batch = inputs_for(inputs, {.begin = 0, .end = samples}, model);
  const at::Tensor together = model.logits(batch);
  for (const std::int64_t i : {std::int64_t{0}, batch.size(0) - 1})
    check_same_logits(model, model.logits(batch.slice(0, i, i + 1))[0], together[i]);
}

void check_samples_apart(const Model& model, const Samples& samples) {
  const at::NoGradGuard no_grad;
  const std::int64_t count = std::min<std::int64_t>(samples.count(), 3);
  const at::Tensor batch = inputs_for(samples.inputs, {.begin = 0, .end = count}, model);
  const at::Tensor together = model.logits(batch);
  for (std::int64_t i = 0; i < count; ++i) check_same_logits(model, model.logits(batch.slice(0, i, i + 1))[0], together[i]);
  check_among_extremes(model, batch, samples.layout(), together[0]);
}

void check_among_extremes(const Model& model, const at::Tensor& batch, const Layout& layout, const at::Tensor& logits) {
  constexpr std::int64_t kOthers = 3;
  if (model.network() != nullptr || model.capabilities().known_apart) return;
  const at::NoGradGuard no_grad;
  const at::Tensor first = batch.slice(0, 0, 1);
  std::vector<std::int64_t> shape = first.sizes().vec();
  shape[0] = kOthers;
  for (const at::Tensor& extreme : {batch.min(), batch.max()}) {
    const at::Tensor others = with_context_of(first, extreme.expand(shape), layout);
    check_same_logits(model, logits, model.logits(at::cat({first, others}))[0]);
  }
}

std::int64_t SharedTiles::take() {
  const std::lock_guard lock(mutex_);
  if (!again_.empty()) {
    const std::int64_t index = again_.front();
    again_.pop_front();
    return index;
  }
  const std::int64_t index = ranks_.take(name_);
  taken_.insert(index);
  return index;
}

void SharedTiles::finished(const Tile& tile) {
  {
    const std::lock_guard lock(mutex_);
    taken_.erase(tile.index);
  }
  show(ranks_.add(name_ + "/samples", tile.size()));
}

void SharedTiles::retry_unfinished() {
  const std::lock_guard lock(mutex_);
  again_.assign(taken_.begin(), taken_.end());
}

void SharedTiles::wait_for_all() {
  ranks_.wait_for(name_ + "/samples", samples_, [this](std::int64_t done) { show(done); });
}

void SharedTiles::show(std::int64_t done) {
  if (progress_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (done <= shown_) return;
  progress_->advance(done - shown_);
  shown_ = done;
}

void JoinedRows::add(const at::Tensor& part, std::int64_t begin, std::int64_t rows) {
  if (!part.defined()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!whole_.defined() && part.size(0) == rows) {  // the only one
      whole_ = part;
      return;
    }
    if (!whole_.defined()) {
      std::vector<std::int64_t> shape = part.sizes().vec();
      shape[0] = rows;
      whole_ = large_empty(shape, part.scalar_type());
    }
  }
  whole_.slice(0, begin, begin + part.size(0)).copy_(part);
}

int worker_count(int threads, std::int64_t tiles) {
  const std::int64_t wanted = threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  return static_cast<int>(std::min(wanted, tiles));
}

int fewer_workers(const OutOfMemory& error, const Model& model, int workers, std::int64_t size,
                  const std::function<void()>& try_one) {
  if (workers > 1) {
    log_warning("{}; going on with {} side by side instead of {}", error.what(), counted(workers / 2, "tile"), workers);
    return workers / 2;
  }
  if (!model.device().is_cpu() && size > 1)
    throw OutOfMemory(fmt::format("{}; a tile of {} does not fit, try --tile {}", error.what(), size, size / 2));
  const std::int64_t before = tensor_memory();
  reset_peak_tensor_memory();
  bool fits = true;
  if (size > 1) {
    const TileThread here;
    try {
      try_one();
    } catch (const OutOfMemory&) {
      fits = false;
    }
  }
  const std::int64_t one = peak_tensor_memory() - before;
  if (size == 1 || !fits) {
    throw OutOfMemory(
        fmt::format("{}; not even a tile of one sample fits: give more --memory, or take a smaller model", error.what()));
  }
  const std::int64_t room = std::max<std::int64_t>(1, one > 0 ? (memory_limit() - before) / one : 1);
  throw OutOfMemory(fmt::format("{}; a tile of {} does not fit, --tile {} does", error.what(), size, std::min(room, size - 1)));
}

}  // namespace holdfast::experiment

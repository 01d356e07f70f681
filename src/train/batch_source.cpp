#include "batch_source.h"

#include <c10/util/Exception.h>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::train {

BatchSource::BatchSource(const Dataset& dataset, at::Device device, Keep keep)
    : inputs_(dataset.inputs), labels_(dataset.labels), device_(device), on_device_(keep != Keep::kOnHost) {
  if (!on_device_) return;
  try {
    inputs_ = dataset.inputs.to(device);
    labels_ = dataset.labels.to(device);
  } catch (const c10::OutOfMemoryError&) {
    if (keep == Keep::kOnDevice) throw;
    inputs_ = dataset.inputs;
    labels_ = dataset.labels;
    on_device_ = false;
  }
}

BatchSource::~BatchSource() {
  if (staged_.valid()) staged_.wait();
}

void BatchSource::begin_epoch(const std::vector<std::vector<std::int64_t>>& batches) {
  std::vector<std::int64_t> order;
  ends_.clear();
  for (const std::vector<std::int64_t>& batch : batches) {
    order.insert(order.end(), batch.begin(), batch.end());
    ends_.push_back(static_cast<std::int64_t>(order.size()));
  }
  if (staged_.valid()) staged_.wait();
  staged_ = {};
  next_ = 0;
  order_ = at::tensor(at::ArrayRef<std::int64_t>(order), at::kLong);
  if (on_device_) {
    order_on_device_ = order_.to(device_);
  } else {
    stage();
  }
}

GatheredBatch BatchSource::next() {
  HOLDFAST_CHECK(next_ < ends_.size());
  const std::int64_t begin = next_ == 0 ? 0 : ends_[next_ - 1], end = ends_[next_];
  ++next_;
  GatheredBatch batch{.ids = order_.slice(0, begin, end)};
  if (on_device_) {
    const at::Tensor rows = order_on_device_.slice(0, begin, end);
    batch.inputs = inputs_.index_select(0, rows);
    batch.labels = labels_.index_select(0, rows);
    return batch;
  }
  const Staged staged = staged_.get();
  batch.inputs = staged.inputs.to(device_, staged.inputs.scalar_type(), /*non_blocking=*/true);
  batch.labels = staged.labels.to(device_, staged.labels.scalar_type(), /*non_blocking=*/true);
  if (next_ < ends_.size()) stage();
  return batch;
}

// Torch keeps pinned memory until the copies out of it are done.
BatchSource::Staged BatchSource::gather(const at::Tensor& rows) const {
  Staged staged{inputs_.index_select(0, rows), labels_.index_select(0, rows)};
  if (device_.is_cuda()) staged = {staged.inputs.pin_memory(), staged.labels.pin_memory()};
  return staged;
}

void BatchSource::stage() {
  const std::int64_t begin = next_ == 0 ? 0 : ends_[next_ - 1];
  staged_ = std::async(std::launch::async, [this, rows = order_.slice(0, begin, ends_[next_])] {
    at::set_num_threads(1);
    return gather(rows);
  });
}

}  // namespace holdfast::train

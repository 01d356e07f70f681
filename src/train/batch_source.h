// The batches of a training, on its device. All samples lie there where they fit: then a batch is chosen by the device itself,
// and the order of an epoch goes there once. Where they do not fit, a batch is gathered on the CPU and sent while the one before
// it is trained on.
#pragma once

#include <cstdint>
#include <future>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/data/dataset.h"

namespace holdfast::train {

struct GatheredBatch {
  at::Tensor inputs, labels, ids;  // ids on the CPU
};

class BatchSource {
 public:
  enum class Keep { kAuto, kOnDevice, kOnHost };

  BatchSource(const Dataset& dataset, at::Device device, Keep keep = Keep::kAuto);
  ~BatchSource();
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Begins an epoch of these batches, each a list of positions in the dataset.
  void begin_epoch(const std::vector<std::vector<std::int64_t>>& batches);
  // The next one. The device is not waited for.
  GatheredBatch next();

  bool is_on_device() const { return on_device_; }

 private:
  struct Staged {
    at::Tensor inputs, labels;  // on the CPU, in memory that the device can read while others compute
  };
  Staged gather(const at::Tensor& rows) const;
  void stage();

  at::Tensor inputs_, labels_;
  const at::Device device_;
  bool on_device_ = true;
  std::vector<std::int64_t> ends_;  // of each batch in the order
  std::size_t next_ = 0;
  at::Tensor order_, order_on_device_;
  std::future<Staged> staged_;  // the next batch
};

}  // namespace holdfast::train

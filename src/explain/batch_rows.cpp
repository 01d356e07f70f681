#include "holdfast/explain/batch_rows.h"

#include <algorithm>
#include <set>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::explain {
namespace {

// What a pass holds at its peak, in activations of the forward pass: a gradient pass keeps nearly all of them and makes their
// gradients one after the other; differentiating it keeps both. On squeezenet1_0 it is 0.74 and 1.7 of them.
double copies_of(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return 1;
    case Pass::kGradient:
      return 1.25;
    case Pass::kPullback:
      return 2.5;
  }
  bug(__FILE__, __LINE__, "an unknown pass");
}

constexpr std::int64_t kOpaqueCopies = 256;
// Activations beyond this stream through memory instead of the cache, unless there are but kBusyRows: weights are read once a
// batch (cnn_chen: 128 rows are 5 % quicker than 32 and 13 % quicker than 256).
constexpr std::int64_t kCacheBytes = std::int64_t{4} << 20;
constexpr std::int64_t kBusyRows = 128;
// What a model that is no network holds is not known: this many rows, or so many numbers of small samples, keep a pass with
// gradients busy (a transformer of 64 tokens: 256 rows are 25 % slower than 32). Without gradients activations are dropped at
// once, and a call may cost more than its rows.
constexpr std::int64_t kOpaqueBusyRows = 32;
constexpr std::int64_t kOpaqueBusyNumbers = 32768;

std::int64_t busy_rows(const ExplainTask& task) {
  if (!task.samples.inputs.is_cpu()) return 0;
  if (task.model.network() != nullptr) return kBusyRows;
  const std::int64_t numbers = std::max<std::int64_t>(1, task.samples.inputs.slice(0, 0, 1).numel());
  return std::max(kOpaqueBusyRows, kOpaqueBusyNumbers / numbers);
}

std::int64_t activation_bytes(const ExplainTask& task) {
  const at::Tensor sample = task.samples.inputs.slice(0, 0, 1).detach();
  const Network* network = task.model.network();
  if (network == nullptr) return kOpaqueCopies * static_cast<std::int64_t>(sample.nbytes());
  const at::NoGradGuard no_graph;
  std::set<const void*> seen;  // reshaped values share their memory
  std::int64_t bytes = 0;
  for (const at::Tensor& value : network->run(sample.to(network->dtype()), {.keep_values = true}).values) {
    if (seen.insert(value.storage().data()).second) bytes += static_cast<std::int64_t>(value.nbytes());
  }
  return bytes;
}

}  // namespace

BatchRows::BatchRows(const ExplainTask& task)
    : memory_(task.memory),
      row_bytes_(activation_bytes(task)),
      busy_rows_(busy_rows(task)),
      is_network_(task.model.network() != nullptr) {
  HOLDFAST_CHECK(memory_ > 0 && row_bytes_ > 0);
}

std::int64_t BatchRows::most(Pass pass) const {
  std::int64_t rows = rows_in(memory_, pass);
  if (busy_rows_ > 0 && is_network_) rows = std::min(rows, std::max(busy_rows_, rows_in(kCacheBytes, pass)));
  if (busy_rows_ > 0 && !is_network_ && pass != Pass::kForward) rows = std::min(rows, busy_rows_);
  return std::max<std::int64_t>(1, rows);
}

bool BatchRows::all_fit(std::int64_t rows, Pass pass) const {
  return rows <= rows_in(memory_, pass);
}

std::int64_t BatchRows::rows_in(std::int64_t bytes, Pass pass) const {
  return static_cast<std::int64_t>(static_cast<double>(bytes) / (static_cast<double>(row_bytes_) * copies_of(pass)));
}

std::int64_t even_part(std::int64_t count, std::int64_t most) {
  HOLDFAST_CHECK(count > 0 && most > 0);
  const std::int64_t parts = (count + most - 1) / most;
  return (count + parts - 1) / parts;
}

}  // namespace holdfast::explain

// Between arrays in files and tensors, and random tensors keyed by sample.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "holdfast/core/raw_array.h"

namespace holdfast {

// The tensor takes over the bytes; no copy.
at::Tensor to_tensor(RawArray array);
RawArray to_raw(const at::Tensor& tensor);

struct ReadOptions {
  bool keep_double = false;       // float64 stays and integers become float64
  bool allow_non_finite = false;  // the caller counts them
  const char* what = "inputs";    // for messages
};
// Reads X.npy as inputs: floating or integer types become float32. Refuses empty arrays and, naming the first, non-finite
// values. Throws kInput.
at::Tensor read_inputs(const std::string& path, const ReadOptions& options = {});
// Reads T.npy as class labels: integers, one for each of `samples`, in [0, classes) when classes > 0. Throws kInput.
at::Tensor read_labels(const std::string& path, std::int64_t samples, std::int64_t classes = 0);
void write_tensor(const std::string& path, const at::Tensor& tensor);  // npy, atomic

// Row b is drawn from stream (seed, purpose, ids[b]): it does not depend on the other rows. float32. A GPU fills its
// tensors itself (device_random.h), without a wait: uniform numbers are the same there, normal ones to 1e-6.
at::Tensor random_normal(at::IntArrayRef sample_shape, const at::Tensor& ids, std::uint64_t seed, std::string_view purpose,
                         at::Device device = at::kCPU);
at::Tensor random_uniform(at::IntArrayRef sample_shape, const at::Tensor& ids, std::uint64_t seed, std::string_view purpose,
                          at::Device device = at::kCPU);

// Whether every element is finite.
bool all_finite(const at::Tensor& tensor);

}  // namespace holdfast

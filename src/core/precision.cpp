#include "holdfast/core/precision.h"

#include <ATen/autocast_mode.h>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"

namespace holdfast {

std::vector<std::string> precision_names() {
  return {"float32", "tf32", "bf16"};
}

std::string to_string(Precision precision) {
  return precision_names()[static_cast<std::size_t>(precision)];
}

Precision parse_precision(const std::string& text) {
  for (const Precision precision : {Precision::kFloat32, Precision::kTf32, Precision::kBf16}) {
    if (text == to_string(precision)) return precision;
  }
  usage_error("precision: '{}' must be float32, tf32 or bf16", text);
}

PrecisionGuard::PrecisionGuard(Precision precision) : precision_(precision) {
  if (precision_ == Precision::kTf32) {
    convolutions_ = at::globalContext().allowTF32CuDNN();
    products_ = at::globalContext().allowTF32CuBLAS();
    at::globalContext().setAllowTF32CuDNN(true);
    at::globalContext().setAllowTF32CuBLAS(true);
  }
  if (precision_ != Precision::kBf16) return;
  for (const at::DeviceType device : {at::kCUDA, at::kCPU}) {
    at::autocast::set_autocast_dtype(device, at::kBFloat16);
    at::autocast::set_autocast_enabled(device, true);
  }
  at::autocast::increment_nesting();
}

PrecisionGuard::~PrecisionGuard() {
  if (precision_ == Precision::kTf32) {
    at::globalContext().setAllowTF32CuDNN(convolutions_);
    at::globalContext().setAllowTF32CuBLAS(products_);
  }
  if (precision_ != Precision::kBf16) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  for (const at::DeviceType device : {at::kCUDA, at::kCPU}) at::autocast::set_autocast_enabled(device, false);
}

}  // namespace holdfast

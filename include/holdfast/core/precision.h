// How precisely a GPU multiplies where the last digits do not matter: in the directions of attacks and the steps of a training.
//     float32   full precision
//     tf32      factors with 10 bits, sums in float32
//     bf16      factors and results with 7 bits, sums in float32
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/stages.h"

namespace holdfast {

enum class Precision { kFloat32, kTf32, kBf16 };

std::vector<std::string> precision_names();  // "float32", "tf32", "bf16"
std::string to_string(Precision precision);
Precision parse_precision(const std::string& text);  // throws kUsage

// This precision for what is asked of GPUs while it lives: tf32 in all threads, bf16 in this one. float32 changes nothing.
class PrecisionGuard {
 public:
  explicit PrecisionGuard(Precision precision);
  ~PrecisionGuard();
  PrecisionGuard(const PrecisionGuard&) = delete;
  PrecisionGuard& operator=(const PrecisionGuard&) = delete;

 private:
  const Precision precision_;
  bool convolutions_ = false, products_ = false;
};

}  // namespace holdfast

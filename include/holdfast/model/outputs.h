// What a model must give.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/raw_array.h"
#include "holdfast/core/stages.h"
#include "holdfast/core/words.h"

namespace holdfast::model {

// Empty where outputs of this shape are logits [samples, classes] of at least two classes; otherwise the end of a sentence
// about the model that gave them.
inline std::string wrong_outputs(at::IntArrayRef shape, std::int64_t samples) {
  if (shape.size() == 2 && shape[0] == samples && shape[1] >= 2) return "";
  const bool one_each = c10::multiply_integers(shape) == samples;
  return fmt::format("gives outputs of shape {} for {}; it must give logits, [samples, classes], of at least two classes{}",
                     to_string(shape.vec()), counted(samples, "sample"),
                     one_each ? ": wrap it so that an output z becomes the two logits [-z/2, z/2]" : "");
}

}  // namespace holdfast::model

// --inputs FILE.npy, or --inputs NAME=FILE.npy for each input of a model file.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "common.h"
#include "holdfast/core/json.h"
#include "holdfast/model/packing.h"

namespace holdfast::cli {

// "mask=FILE.npy" -> "FILE.npy"; "FILE.npy" -> itself.
std::string file_of_input(const std::string& text);

// Whether the model file must be told what it is given: several inputs, or whole numbers [B, n], which may be token ids.
bool needs_packing(const SubjectFlags& flags);

// What the files hold, and what the schema says of them: `fixed`, `special_tokens` and the layout of what is explained.
struct ReadInputs {
  std::vector<at::Tensor> values;
  GivenInputs given;
};
ReadInputs read_given_inputs(const SubjectFlags& flags, bool allow_non_finite = false);

// What is known about packed samples: the schema's own facts, with the packing's layout.
Schema packed_schema(const SubjectFlags& flags, const Layout& layout);

}  // namespace holdfast::cli

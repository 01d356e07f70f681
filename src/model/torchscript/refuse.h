// A TorchScript file is a program. These checks decide whether it is one that only computes, before any of it is run.
//
// Torch runs code of a file while it loads it: `__setstate__`, the default values of arguments, and the constants of classes. It
// compiles everything else and runs nothing. So sources are checked before loading, and the compiled graphs after it.
#pragma once

#include <string>

#include <torch/csrc/jit/api/module.h>

#include "archive.h"

namespace holdfast::model::torchscript {

// Refuses sources that would run while torch loads them, or that are nested so deep that torch's parser runs out of stack.
// Throws kInput in one sentence.
void refuse_code_that_runs_at_loading(const Archive& archive);

// Refuses, by name, operators that do anything but compute: that touch files, the network, processes or memory that is not
// theirs. It looks at every function of the file, called or not. Objects must be what their class says. Throws kInput in one
// sentence.
void refuse_operators_that_do_not_compute(const torch::jit::Module& module, const std::string& path);

// Whether an operator ("aten::relu") only computes.
bool only_computes(const std::string& operation);

}  // namespace holdfast::model::torchscript

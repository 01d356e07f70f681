// From a program's list of calls to a graph of torch's, the form in which TorchScript files are read and run as well.
#pragma once

#include <memory>

#include <torch/csrc/jit/ir/ir.h>

#include "program.h"

namespace holdfast::model::program {

// The program as a flat graph: its first input is the module that it will be a method of, then come the program's; weights are
// constants, named "self.<own name>". It gives one tensor, a tuple of them, or a dictionary. Every operator must only compute
// (torchscript/refuse.h) and every argument must be what its schema says. Throws kInput in one sentence.
std::shared_ptr<torch::jit::Graph> make_graph(Program program, at::Device device);

}  // namespace holdfast::model::program

// A model file made ready: in evaluation mode, as one flat graph of torch's operators, and what had to be changed for that.
// TorchScript files are read by torch and frozen; other programs (../program/program.h) are made into such a graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/serialization/import.h>

#include "../program/program.h"
#include "archive.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/model.h"

namespace holdfast::model::torchscript {

struct Script {
  std::string path;
  std::string kind;           // "a TorchScript file"
  torch::jit::Module module;  // a frozen copy, constants in place of parameters, where freezing keeps its meaning
  torch::jit::Module source;  // what was frozen: the interpreter's messages point into its functions
  std::optional<torch::jit::Module>
      twice;                       // the same with kernels that can be differentiated twice, where that makes a difference
  std::vector<std::string> notes;  // what was changed in the copy, in sentences
  std::optional<std::vector<std::int64_t>> traced_shape;  // of a sample, when the file was traced and says so
  std::int64_t parameters = 0;                            // elements
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  OutputKind output_kind = OutputKind::kAuto;  // where it was asked for or is seen in the graph
  std::string output_name;                     // ModelOptions
  bool writes_to_input = false;                // in-place operations reach the input: it is handed a copy
  bool keeps_state = false;                    // the module may write to its own attributes: each call runs on a copy
  bool is_recurrent = false;                   // it has kernels of cuDNN that cannot be differentiated in evaluation mode
  std::optional<std::string> runs_as_is;       // why it cannot be anything but run
  std::optional<std::int64_t> batch;           // it takes so many samples at once, neither more nor fewer

  std::shared_ptr<torch::jit::Graph> graph() const { return module.get_method("forward").graph(); }
};

// Throws kInput in one sentence.
Script read_script(const Archive& archive, at::Device device, const ModelOptions& options);
Script make_script(program::Program program, at::Device device, const ModelOptions& options);

// Edits a frozen graph so that it does what evaluation mode means and gives logits, and says in sentences what was edited:
// dropout and batch statistics that were fixed by tracing in training mode are turned off; printing is left out; a softmax or
// sigmoid at the end, or its logarithm, is cut, because what goes into it are the logits. `kind` is what was asked for, and
// becomes what is left to read: outputs that are said to be logits or a value are left alone.
std::vector<std::string> prepare_for_evaluation(torch::jit::Graph& graph, OutputKind& kind);

// Kernels that compute a whole attention or a layer of a transformer and have no derivative become their formulas
// (attention.cpp). Gives whether there were any, as the next one does.
bool open_fast_paths(torch::jit::Graph& graph);
// Attention is computed by torch's math kernel, which can be differentiated twice.
bool choose_math_attention(torch::jit::Graph& graph);

// The outputs, [B, n] with n >= 1: of a tuple its first tensor, of a dictionary the one that is named. Throws kInput with one
// sentence for what the script refuses.
at::Tensor run_script(const Script& script, const at::Tensor& inputs);

// Gives the script with every floating constant and attribute in double precision.
Script in_double(const Script& script);

// "file.pt refused inputs of shape [2, 5] (float): mat1 and mat2 shapes cannot be multiplied": what torch said, without
// its traceback.
[[noreturn]] void refused_inputs(const std::string& path, const at::Tensor& inputs, const std::string& message);

// The sentence inside an exception of torch or of the TorchScript interpreter.
std::string essence(const std::string& message);

// Calls visit for every node of the graph, those inside blocks too.
template <class Visit>
void visit_nodes(torch::jit::Block* block, const Visit& visit) {
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    torch::jit::Node* node = *it;
    ++it;  // visit may destroy the node
    for (torch::jit::Block* inner : node->blocks()) visit_nodes(inner, visit);
    visit(node);
  }
}

// "train.py:14" where a node came from, or empty.
std::string place_of(const torch::jit::Node* node);

}  // namespace holdfast::model::torchscript

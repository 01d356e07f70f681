// Running a script as it is, and saying in one sentence what it refuses.
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "describe.h"
#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/model/outputs.h"
#include "torchscript_script.h"

namespace holdfast::torchscript {
namespace {

at::Tensor as_logits(const at::IValue& result, const Script& script, const at::Tensor& inputs) {
  at::IValue value = result;
  if (value.isTuple() && value.toTupleRef().elements().size() == 1) value = value.toTupleRef().elements()[0];
  if (!value.isTensor()) {
    input_error("{} gives a {}; a model here gives one tensor of logits [samples, classes]", script.path, value.type()->str());
  }
  at::Tensor logits = value.toTensor();
  if (logits.dim() != 2 || logits.size(0) != inputs.size(0)) {
    input_error("{} {}", script.path, wrong_outputs(logits.sizes(), inputs.size(0)));
  }
  return logits;
}

}  // namespace

at::Tensor run_script(const Script& script, const at::Tensor& inputs) {
  // The profiling executor rewrites a graph after its first calls, so that bytes depend on their order.
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  at::IValue result;
  try {
    torch::jit::Module module = script.keeps_state ? script.module.deepcopy() : script.module;
    result = module.forward({script.writes_to_input ? inputs.clone() : inputs});
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    refused_inputs(script.path, inputs, error.what());
  }
  return as_logits(result, script, inputs);
}

void refused_inputs(const std::string& path, const at::Tensor& inputs, const std::string& message) {
  input_error("{} refused inputs of shape {} ({}): {}", path, to_string(inputs.sizes().vec()), type_word(inputs.scalar_type()),
              essence(message));
}

std::string essence(const std::string& message) {
  // The interpreter puts the cause last, after "<kind>Error: "; the reader puts it first.
  static const std::string kMark = "Error: ";
  std::size_t begin = message.rfind(kMark);
  const bool traceback = begin != std::string::npos && message.find("Traceback of TorchScript") != std::string::npos;
  begin = traceback ? begin + kMark.size() : 0;
  std::string line = message.substr(begin, message.find('\n', begin) - begin);
  // What torch adds for its own developers.
  for (const char* tail : {" This is an internal miniz error", " (no backtrace available)"})
    line = line.substr(0, line.find(tail));
  while (!line.empty() && (line.back() == '.' || line.back() == ' ')) line.pop_back();
  return line;
}

}  // namespace holdfast::torchscript

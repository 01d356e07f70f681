#include "python_model.h"

#include <unordered_set>

#include <fmt/ranges.h>

#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/python_variable.h>

#include "holdfast/core/error.h"
#include "holdfast/core/log.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/derivatives.h"
#include "holdfast/model/outputs.h"

namespace holdfast::python {
namespace {

bool is_tensor(const py::handle& value) {
  return THPVariable_Check(value.ptr());
}

std::string type_of(const py::object& value) {
  return py::str(py::type::of(value).attr("__qualname__"));
}

// What a result is made of, by name: the items of a mapping or a tuple, the fields of a dataclass or named tuple.
std::vector<std::pair<std::string, py::object>> parts_of(const py::object& result) {
  std::vector<std::pair<std::string, py::object>> parts;
  const auto add = [&](const py::handle& name, const py::object& value) { parts.emplace_back(py::str(name), value); };
  if (py::hasattr(result, "keys") && py::hasattr(result, "__getitem__")) {
    for (const py::handle& name : result.attr("keys")()) add(name, result[name]);
  } else if (py::hasattr(result, "_fields") || py::hasattr(result, "__dataclass_fields__")) {
    for (const py::handle& name : result.attr(py::hasattr(result, "_fields") ? "_fields" : "__dataclass_fields__"))
      add(name, result.attr(py::str(name)));
  } else if (py::isinstance<py::tuple>(result) || py::isinstance<py::list>(result)) {
    std::size_t position = 0;
    for (const py::handle& value : result)
      parts.emplace_back(std::to_string(position++), py::reinterpret_borrow<py::object>(value));
  } else if (py::hasattr(result, "logits")) {
    parts.emplace_back("logits", result.attr("logits"));
  }
  return parts;
}

void check_outputs(const at::Tensor& outputs, std::int64_t samples, OutputKind kind) {
  if (const std::string wrong = wrong_outputs(outputs.sizes(), samples, kind); !wrong.empty()) input_error("the model {}", wrong);
  if (!outputs.is_floating_point()) {
    input_error("the model gave {} elements; logits must be floating-point numbers", at::toString(outputs.scalar_type()));
  }
}

// The operation that made the outputs, "SigmoidBackward0", but for those that leave the numbers as they are; empty without a
// graph.
std::string last_operation(const at::Tensor& outputs) {
  static const std::unordered_set<std::string> kKeepValues = {"SqueezeBackward0",    "SqueezeBackward1",      "ViewBackward0",
                                                              "UnsqueezeBackward0",  "ReshapeAliasBackward0", "SelectBackward0",
                                                              "SliceBackward0",      "AliasBackward0",        "ToCopyBackward0",
                                                              "UnsafeViewBackward0", "CloneBackward0"};
  auto node = outputs.grad_fn();
  while (node && kKeepValues.count(node->name()) > 0 && !node->next_edges().empty()) node = node->next_edges()[0].function;
  return node ? node->name() : "";
}

// Where a function has no second derivative, autograd puts a node that says so in place of its graph. One that was marked
// (once_differentiable) leads nowhere: autograd would pass it by, and the derivative would silently lack a part.
bool ends_at_an_error(const at::Tensor& gradient) {
  std::vector<const torch::autograd::Node*> waiting{gradient.grad_fn().get()};
  std::unordered_set<const torch::autograd::Node*> seen(waiting.begin(), waiting.end());
  while (!waiting.empty()) {
    const torch::autograd::Node* node = waiting.back();
    waiting.pop_back();
    if (node == nullptr) continue;
    if (dynamic_cast<const torch::autograd::Error*>(node) != nullptr) return true;
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      if (seen.insert(edge.function.get()).second) waiting.push_back(edge.function.get());
    }
  }
  return false;
}

}  // namespace

py::object chosen_output(const py::object& result, const std::string& name) {
  std::vector<std::string> names;
  std::vector<py::object> tensors;
  for (const auto& [own, value] : parts_of(result)) {
    if (own == (name.empty() ? "logits" : name) && is_tensor(value)) return value;
    if (!is_tensor(value)) continue;
    names.push_back(own);
    tensors.push_back(value);
  }
  if (tensors.empty())
    input_error("the model gave a {}, which holds no tensor; it must give logits, [samples, classes]", type_of(result));
  if (!name.empty()) input_error("the model gave a {} without '{}'; it has {}", type_of(result), name, fmt::join(names, ", "));
  const bool ordered = py::isinstance<py::tuple>(result) || py::isinstance<py::list>(result);
  if (tensors.size() == 1 || ordered) return tensors.front();
  input_error("the model gave a {} of {}; say which holds its logits: holdfast.as_model(model, output_name='{}')",
              type_of(result), fmt::join(names, ", "), names.front());
}

PythonModel::PythonModel(py::function function, at::Device device, at::ScalarType dtype, bool known_apart, bool recurrent,
                         ModelOptions options)
    : function_(new py::function(std::move(function)),
                [](py::function* held) {
                  const py::gil_scoped_acquire locked;
                  delete held;
                }),
      device_(device),
      dtype_(dtype),
      recurrent_(recurrent),
      options_(std::move(options)) {
  capabilities_.known_apart = known_apart;
}

at::Tensor PythonModel::call(const at::Tensor& inputs) const {
  const py::gil_scoped_acquire locked;
  const MathAttention attention(TwiceDifferentiable::is_on());
  const WithoutCudnn differentiable(recurrent_ && device_.is_cuda());
  const py::object result = (*function_)(inputs);
  if (is_tensor(result)) return THPVariable_Unpack(result.ptr());
  return THPVariable_Unpack(chosen_output(result, options_.output_name).ptr());
}

at::Tensor PythonModel::logits(const at::Tensor& inputs) const {
  const at::Tensor given = inputs.to(dtype_);
  const at::Tensor own = writes_to_inputs_ ? given.clone() : given;
  const auto version = own._version();
  const at::Tensor outputs = call(own);
  check_outputs(outputs, inputs.size(0), options_.output_kind);
  if (!writes_to_inputs_ && own._version() != version) {
    input_error("the model wrote to its inputs, though not at its first call; let it work on a copy, inputs.clone()");
  }
  return logits_from(outputs.to(inputs.scalar_type()), options_.output_kind);
}

std::string PythonModel::describe() const {
  return fmt::format(
      "A Python function. Its layers cannot be seen: surrogates and layer-wise explainers do not work on it. What it gives: {}.",
      output_words(options_.output_kind));
}

at::Tensor PythonModel::first_sample(const at::Tensor& inputs) const {
  const auto numbers = at::TensorOptions().device(device_).dtype(dtype_);
  return inputs.slice(0, 0, 1).detach().to(numbers, /*non_blocking=*/false, /*copy=*/true).requires_grad_();
}

at::Tensor PythonModel::look_at(const at::Tensor& inputs) {
  const at::AutoGradMode with_graph(true);
  const at::Tensor sample = first_sample(inputs).clone();  // a leaf could not be written to
  const at::Tensor before = sample.detach().clone();
  const auto version = sample._version();
  const at::Tensor outputs = first_call(sample, inputs);
  check_outputs(outputs, 1, options_.output_kind);
  // What is written to x.data has no version.
  writes_to_inputs_ = sample._version() != version || !at::equal(sample.detach(), before);
  capabilities_.gradients = outputs.requires_grad();
  capabilities_.double_backward = capabilities_.gradients;
  if (options_.output_kind == OutputKind::kAuto) {
    options_.output_kind = found_kind(outputs, inputs);
    if (options_.output_kind != OutputKind::kLogits) {
      log_warning("{}: what it gives is taken as {} (output kind {})", name(), output_words(options_.output_kind),
                  output_kind_name(options_.output_kind));
    }
  }
  return logits_from(outputs.detach(), options_.output_kind)[0];
}

// Two mistakes deserve better words than Python's: a model of several inputs, and token ids.
at::Tensor PythonModel::first_call(const at::Tensor& sample, const at::Tensor& inputs) const {
  try {
    return call(sample);
  } catch (py::error_already_set& error) {
    const py::gil_scoped_acquire locked;
    const std::string message = error.what(), line = message.substr(0, message.find('\n'));
    if (error.matches(PyExc_TypeError) && line.find("missing") != std::string::npos)
      input_error("{} takes more inputs than one; give a tuple or a dictionary of arrays: {}", name(), line);
    if (at::isIntegralType(inputs.scalar_type(), /*includeBool=*/false))
      input_error(
          "{} refused the inputs, which are integers, as floating-point numbers; token ids are for a torch.nn.Module whose "
          "torch.nn.Embedding reads them; where a function does, give torch.export.export(module, (ids,)): {}",
          name(), line);
    throw;
  }
}

// The graph tells what a sigmoid or softmax made, and what a linear layer did; else the numbers of several samples must.
OutputKind PythonModel::found_kind(const at::Tensor& outputs, const at::Tensor& inputs) const {
  const std::string last = last_operation(outputs);
  const bool one = outputs.dim() == 1 || outputs.size(1) == 1;
  if (one && last == "SigmoidBackward0") return OutputKind::kProbability;
  if (one && (last == "AddmmBackward0" || last == "MmBackward0" || last == "AddBackward0")) return OutputKind::kLogit;
  if (!one && last == "SoftmaxBackward0") return OutputKind::kProbabilities;
  if (!one && last == "SigmoidBackward0") {
    input_error(
        "{} gives a sigmoid for each of {} labels, of which several may hold; explain one of them: "
        "holdfast.as_model(lambda x: model(x)[:, 0], output_kind='probability')",
        name(), outputs.size(1));
  }
  if (!one && guess_output_kind(outputs, name()) == OutputKind::kLogits) return OutputKind::kLogits;
  const at::NoGradGuard no_graph;
  const auto numbers = at::TensorOptions().device(device_).dtype(dtype_);
  const at::Tensor some = inputs.slice(0, 0, kSamplesSeen).detach().to(numbers, /*non_blocking=*/false, /*copy=*/true);
  return guess_output_kind(call(some), name());
}

void PythonModel::look_twice(const at::Tensor& inputs) {
  if (!capabilities_.gradients) return;
  const at::AutoGradMode with_graph(true);
  const TwiceDifferentiable twice;
  const at::Tensor sample = first_sample(inputs);
  const at::Tensor score = logits(sample).square().sum();
  const at::Tensor gradient =
      torch::autograd::grad({score}, {sample}, {}, /*retain_graph=*/true, /*create_graph=*/true, /*allow_unused=*/true)[0];
  if (gradient.defined() && ends_at_an_error(gradient)) capabilities_.double_backward = false;
}

}  // namespace holdfast::python

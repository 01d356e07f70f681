#include "python_model.h"

#include <unordered_set>

#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/python_variable.h>

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/derivatives.h"
#include "holdfast/model/outputs.h"

namespace holdfast::python {
namespace {

[[noreturn]] void not_logits(const py::object& result) {
  const std::string type = py::str(py::type::of(result).attr("__qualname__"));
  const char* hint = "";
  if (py::hasattr(result, "logits")) {
    hint = "; wrap the model so that it gives .logits";
  } else if (py::isinstance<py::tuple>(result) || py::isinstance<py::list>(result)) {
    hint = "; wrap the model so that it gives the part that holds them";
  }
  input_error("the model gave a {}, not a tensor; it must give logits, [samples, classes]{}", type, hint);
}

void check_logits(const at::Tensor& logits, std::int64_t samples) {
  if (const std::string wrong = wrong_outputs(logits.sizes(), samples); !wrong.empty()) input_error("the model {}", wrong);
  if (!logits.is_floating_point()) {
    input_error("the model gave {} elements; logits must be floating-point numbers", at::toString(logits.scalar_type()));
  }
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

PythonModel::PythonModel(py::function function, at::Device device, at::ScalarType dtype, bool known_apart, bool recurrent)
    : function_(new py::function(std::move(function)),
                [](py::function* held) {
                  const py::gil_scoped_acquire locked;
                  delete held;
                }),
      device_(device),
      dtype_(dtype),
      recurrent_(recurrent) {
  capabilities_.known_apart = known_apart;
}

at::Tensor PythonModel::call(const at::Tensor& inputs) const {
  const py::gil_scoped_acquire locked;
  const MathAttention attention(TwiceDifferentiable::is_on());
  const WithoutCudnn differentiable(recurrent_ && device_.is_cuda());
  const py::object result = (*function_)(inputs);
  if (!THPVariable_Check(result.ptr())) not_logits(result);
  return THPVariable_Unpack(result.ptr());
}

at::Tensor PythonModel::logits(const at::Tensor& inputs) const {
  const at::Tensor given = inputs.to(dtype_);
  const at::Tensor own = writes_to_inputs_ ? given.clone() : given;
  const auto version = own._version();
  const at::Tensor logits = call(own);
  check_logits(logits, inputs.size(0));
  if (!writes_to_inputs_ && own._version() != version) {
    input_error("the model wrote to its inputs, though not at its first call; let it work on a copy, inputs.clone()");
  }
  return logits.to(inputs.scalar_type());
}

std::string PythonModel::describe() const {
  return "A Python function from inputs to logits. Its layers cannot be seen: surrogates and layer-wise explainers do not work "
         "on it.";
}

at::Tensor PythonModel::first_sample(const at::Tensor& inputs) const {
  const auto numbers = at::TensorOptions().device(device_).dtype(dtype_);
  return inputs.slice(0, 0, 1).detach().to(numbers, /*non_blocking=*/false, /*copy=*/true).requires_grad_();
}

at::Tensor PythonModel::look_at(const at::Tensor& inputs) {
  const at::AutoGradMode with_graph(true);
  const at::Tensor sample = first_sample(inputs).clone();  // a leaf could not be written to
  const auto version = sample._version();
  const at::Tensor logits = call(sample);
  check_logits(logits, 1);
  writes_to_inputs_ = sample._version() != version;
  capabilities_.gradients = logits.requires_grad();
  capabilities_.double_backward = capabilities_.gradients;
  return logits.detach()[0];
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

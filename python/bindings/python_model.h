// A Python function as a Model. What it gives may be a tensor, or a tuple, dictionary or object that holds one; outputs.h says
// how that becomes logits.
//
// The interpreter lock is taken only to call the function; everything else, autograd's passes above all, runs without it.
// Tensors are handed over as they are, without a copy, except where the function computes in another precision than ours
// (half-precision modules: we work in float32) or writes to its inputs.
#pragma once

#include <memory>
#include <string>

#include <torch/csrc/utils/pybind.h>

#include "holdfast/model/model.h"

namespace holdfast::python {

// The tensor that counts in what a model gave: the part that was asked for, else `logits`, else the only tensor, else a tuple's
// first.
py::object chosen_output(const py::object& result, const std::string& name);

class PythonModel final : public Model {
 public:
  // `dtype`: what the function computes in; `known_apart`: as Capabilities; `recurrent`: it has layers that cuDNN would run,
  // which cannot be differentiated there in evaluation mode; of `options` the outputs.
  PythonModel(py::function function, at::Device device, at::ScalarType dtype, bool known_apart, bool recurrent,
              ModelOptions options);

  at::Tensor logits(const at::Tensor& inputs) const override;
  using Model::logits;

  OutputKind output_kind() const override { return options_.output_kind; }
  Capabilities capabilities() const override { return capabilities_; }
  at::Device device() const override { return device_; }
  at::ScalarType dtype() const override { return dtype_ == at::kDouble ? at::kDouble : at::kFloat; }
  std::string describe() const override;

  // One call with a copy of the first sample: finds out, before any work, what the function gives, whether gradients reach
  // the inputs, and whether it writes to them. Another one where a single sample does not tell probabilities from logits. Gives
  // the first sample's logits, [classes]; throws kInput for what cannot become logits.
  at::Tensor look_at(const at::Tensor& inputs);
  // After look_at: finds out whether the first sample's gradient can be differentiated again, as attacks by gradient need.
  void look_twice(const at::Tensor& inputs);

 private:
  at::Tensor first_sample(const at::Tensor& inputs) const;  // a copy that requires gradients
  at::Tensor call(const at::Tensor& inputs) const;
  at::Tensor first_call(const at::Tensor& sample, const at::Tensor& inputs) const;
  OutputKind found_kind(const at::Tensor& outputs, const at::Tensor& inputs) const;

  std::shared_ptr<py::function> function_;  // let go with the interpreter lock, wherever that happens
  at::Device device_;
  at::ScalarType dtype_;
  bool recurrent_;
  ModelOptions options_;
  Capabilities capabilities_{.side_by_side = false};
  bool writes_to_inputs_ = false;
};

}  // namespace holdfast::python

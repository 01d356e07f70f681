#include "trial.h"

#include <torch/csrc/autograd/autograd.h>

#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/tensor_memory.h"
#include "holdfast/model/derivatives.h"
#include "import.h"

namespace holdfast::model::torchscript {
namespace {

constexpr double kTolerance = 1e-5;  // of the largest value, or of 1
constexpr std::size_t kShapesTried = 24;

double largest_difference(const at::Tensor& found, const at::Tensor& expected) {
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  return (found - expected).abs().max().item<double>() / scale;
}

// Differentiates a sum with a weight of its own for each logit, so that a swap of two shows. Undefined without a gradient.
at::Tensor input_gradient(const at::Tensor& logits, const at::Tensor& inputs, bool differentiable = false) {
  const at::Tensor weights = at::arange(1, logits.size(1) + 1, logits.options()) / static_cast<double>(logits.size(1));
  const at::Tensor sum = (logits * weights).sum();
  if (!sum.requires_grad()) return {};
  return torch::autograd::grad({sum}, {inputs}, {}, /*retain_graph=*/std::nullopt, differentiable, /*allow_unused=*/true)[0];
}

// The first of the likely shapes that the script takes: inputs and logits, or nothing.
std::optional<std::pair<at::Tensor, at::Tensor>> first_accepted(const Script& script) {
  std::size_t tried = 0;
  for (const auto& shape : candidate_shapes(script)) {
    if (tried++ == kShapesTried) break;
    at::Tensor inputs = trial_inputs(script, shape);
    try {
      return std::pair(inputs, run_script(script, inputs));
    } catch (const Error&) {
      continue;  // not this shape
    }
  }
  return std::nullopt;
}

bool has_second_derivatives(const Script& script, const at::Tensor& inputs) {
  try {
    const TwiceDifferentiable twice;
    const at::Tensor gradient = input_gradient(run_script(script, inputs), inputs, /*differentiable=*/true);
    if (gradient.requires_grad())
      torch::autograd::grad({gradient.square().sum()}, {inputs}, {}, std::nullopt, false, /*allow_unused=*/true);
    return true;
  } catch (const std::exception& error) {
    throw_if_out_of_memory(error);
    return false;  // an operation without one: torch says so by throwing
  }
}

bool runs_in_double(const Script& script, const at::Tensor& inputs, const at::Tensor& logits) {
  if (script.dtype == at::kDouble) return true;
  try {
    const Script copy = in_double(script);
    const at::Tensor found = run_script(copy, inputs.detach().to(at::kDouble));
    return found.scalar_type() == at::kDouble && largest_difference(found, logits.detach().to(at::kDouble)) < 1e-3;
  } catch (const std::exception& error) {
    throw_if_out_of_memory(error);
    return false;  // it converts to single precision somewhere
  }
}

}  // namespace

at::Tensor trial_inputs(const Script& script, const std::vector<std::int64_t>& sample_shape) {
  const at::Tensor ids = at::arange(3, at::kLong);
  at::Tensor inputs = random_uniform(sample_shape, ids, /*seed=*/0, "torchscript.trial");
  inputs.select(0, 1).copy_(random_normal(sample_shape, ids.slice(0, 0, 1), /*seed=*/0, "torchscript.trial").select(0, 0));
  return inputs.to(script.device, script.dtype).requires_grad_();
}

std::string difference_from(const Script& script, const Network& network, const at::Tensor& inputs) {
  const at::AutoGradMode with_gradients(true);
  const at::Tensor expected = run_script(script, inputs);
  const at::Tensor found = network.logits(inputs);
  if (found.sizes() != expected.sizes()) return "reading it gave logits of another shape";
  const double logits = largest_difference(found.detach(), expected.detach());
  if (!(logits <= kTolerance)) return fmt::format("reading it changed the logits by {:.1e}", logits);

  const at::Tensor expected_gradient = input_gradient(expected, inputs);
  const at::Tensor found_gradient = input_gradient(found, inputs);
  if (expected_gradient.defined() != found_gradient.defined()) return "reading it changed what has a gradient";
  if (!found_gradient.defined()) return {};
  // Sums of many terms, so rounding may grow; a wrong rule shows as an error of the gradient's own size.
  const double gradient = largest_difference(found_gradient, expected_gradient);
  if (!(gradient <= 100 * kTolerance)) return fmt::format("reading it changed the input gradients by {:.1e}", gradient);
  return {};
}

bool takes_any_batch(const Script& script) {
  if (!script.traced_shape) return false;
  Script free = script;
  free.batch.reset();
  const at::NoGradGuard no_graph;
  const at::Tensor three = trial_inputs(script, *script.traced_shape).detach();
  const at::Tensor inputs = *script.batch == 3 ? at::cat({three, three}) : three;
  try {
    return largest_difference(run_script(free, inputs), run_script(script, inputs)) <= kTolerance;
  } catch (const Error&) {
    return false;
  }
}

Capabilities tried_capabilities(const Script& script) {
  Capabilities capabilities;
  const at::AutoGradMode with_gradients(true);
  const auto accepted = first_accepted(script);
  if (!accepted) return capabilities;
  const auto& [inputs, logits] = *accepted;
  capabilities.gradients = logits.requires_grad();
  capabilities.double_backward = capabilities.gradients && has_second_derivatives(script, inputs);
  capabilities.float64 = runs_in_double(script, inputs, logits);
  return capabilities;
}

}  // namespace holdfast::model::torchscript

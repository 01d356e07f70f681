#include "logit_hessian.h"

#include <variant>

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/what_bends.h"
#include "holdfast/model/activation.h"

namespace holdfast::measure {
namespace {

bool bends(const Operation& operation) {
  if (const auto* activation = std::get_if<op::Activation>(&operation)) return !is_piecewise_linear(*activation);
  return is_one_of<op::Standardize, op::Adjacency, op::MatMul, op::Product>(operation);
}

// J [B, classes, n] and the logits [B, classes], double.
std::pair<at::Tensor, at::Tensor> jacobian(const MeasureTask& task) {
  const at::AutoGradMode with_graph(true);
  const at::Tensor inputs = task.samples.inputs.detach().requires_grad_();
  const at::Tensor logits = task.model.logits(inputs);
  std::vector<at::Tensor> rows;
  for (std::int64_t c = 0; c < logits.size(1); ++c) {
    at::Tensor cotangent = at::zeros_like(logits.detach());
    cotangent.select(1, c).fill_(1);
    const bool keep = c + 1 < logits.size(1);
    rows.push_back(torch::autograd::grad({logits}, {inputs}, {cotangent}, keep)[0].flatten(1));
  }
  return {at::stack(rows, 1).to(at::kCPU, at::kDouble), logits.detach().to(at::kCPU, at::kDouble)};
}

// 1 - p is the sum of the other probabilities: subtracted from 1, a saturated one would leave nothing.
at::Tensor curvature_in_logits(const at::Tensor& logits, const at::Tensor& targets, const std::string& quantity) {
  const at::Tensor p = at::softmax(logits, 1);
  if (quantity == "logit") return at::zeros({p.size(0), p.size(1), p.size(1)}, p.options());
  const at::Tensor products = (p.unsqueeze(2) * p.unsqueeze(1)).masked_fill(at::eye(p.size(1), at::kBool), 0);  // p_j p_k, j != k
  const at::Tensor spread = at::diag_embed(products.sum(2)) - products;
  if (quantity == "ce") return spread;
  const at::Tensor column = targets.cpu().unsqueeze(1);
  const at::Tensor others = p.scatter(1, column, 0);
  const at::Tensor toward = (-others).scatter(1, column, others.sum(1, /*keepdim=*/true));  // e_c - p
  return p.gather(1, column).unsqueeze(2) * (toward.unsqueeze(2) * toward.unsqueeze(1) - spread);
}

}  // namespace

std::optional<std::string> what_bends(const Network& network) {
  for (const Node& node : network.nodes()) {
    if (bends(node.operation)) return node_in_words(node);
  }
  return std::nullopt;
}

std::optional<std::string> what_bends(const Model& model) {
  return model.network() == nullptr ? "layers that it does not show" : what_bends(*model.network());
}

at::Tensor closed_eigenvalues(const MeasureTask& task, const std::string& quantity) {
  const auto [slopes, logits] = jacobian(task);
  const auto [values, vectors] = at::linalg_eigh(at::matmul(slopes, slopes.transpose(1, 2)));
  const at::Tensor root = at::matmul(vectors * values.clamp_min(0).sqrt().unsqueeze(1), vectors.transpose(1, 2));
  const at::Tensor small = at::matmul(at::matmul(root, curvature_in_logits(logits, task.samples.targets, quantity)), root);
  return at::linalg_eigvalsh((small + small.transpose(1, 2)) / 2);
}

}  // namespace holdfast::measure

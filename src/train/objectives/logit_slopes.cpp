#include "logit_slopes.h"

#include "holdfast/core/torch.h"
#include "holdfast/measure/what_bends.h"

namespace holdfast::train {
namespace {

// Below this a square root has no derivative worth having: where p is saturated the Hessian is zero.
constexpr double kLeast = 1e-30;

}  // namespace

LogitSlopes logit_slopes(Trainee& trainee, const at::Tensor& inputs) {
  const at::Tensor leaf = inputs.detach().requires_grad_();
  LogitSlopes result{.logits = trainee.logits(leaf), .slopes = {}};
  const std::int64_t last = result.logits.size(1) - 1;
  std::vector<at::Tensor> rows;
  for (std::int64_t j = 0; j < last; ++j) {
    at::Tensor cotangent = at::zeros_like(result.logits.detach());
    cotangent.select(1, j).fill_(1);
    cotangent.select(1, last).fill_(-1);
    rows.push_back(
        torch::autograd::grad({result.logits}, {leaf}, {cotangent}, /*retain_graph=*/true, /*create_graph=*/true)[0].flatten(1));
  }
  result.slopes = at::stack(rows, 1);
  return result;
}

at::Tensor probability_hessian_norm(const LogitSlopes& at, const at::Tensor& classes) {
  const at::Tensor p = at::softmax(at.logits, 1), column = classes.unsqueeze(1);
  const std::int64_t last = p.size(1) - 1;
  const at::Tensor others = p.slice(1, 0, last);
  const at::Tensor toward = at::zeros_like(p).scatter(1, column, 1).slice(1, 0, last) - others;  // e_c - p
  const at::Tensor spread = at::diag_embed(others) - others.unsqueeze(2) * others.unsqueeze(1);
  const at::Tensor q = p.gather(1, column).unsqueeze(2) * (toward.unsqueeze(2) * toward.unsqueeze(1) - spread);
  // ||J^T Q J||_F^2 = tr(Q G Q G), G = J J^T.
  const at::Tensor product = at::matmul(q, at::matmul(at.slopes, at.slopes.transpose(1, 2)));
  return (product * product.transpose(1, 2)).sum({1, 2}).clamp_min(kLeast).sqrt();
}

at::Tensor largest_ce_eigenvalue(const LogitSlopes& at) {
  // diag p - p p^T = S S^T with S = diag(root) - p root^T, so that the eigenvalues are those of (S^T J)(S^T J)^T.
  const at::Tensor log_p = at::log_softmax(at.logits, 1), p = log_p.exp();
  const std::int64_t last = p.size(1) - 1;
  if (last == 1) return p.select(1, 0) * p.select(1, 1) * at.slopes.square().sum({1, 2});
  const at::Tensor root = (log_p / 2).exp();
  const at::Tensor s = (at::diag_embed(root) - p.unsqueeze(2) * root.unsqueeze(1)).slice(1, 0, last);
  const at::Tensor a = at::matmul(s.transpose(1, 2), at.slopes);
  return at::linalg_eigvalsh(at::matmul(a, a.transpose(1, 2))).select(1, last);
}

bool is_piecewise_linear(const Trainee& trainee) {
  return trainee.network() != nullptr && !what_bends(*trainee.network());
}

}  // namespace holdfast::train

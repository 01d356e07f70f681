#include "holdfast/measure/lanczos.h"

#include <algorithm>
#include <vector>

#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"

namespace holdfast::measure {
namespace {

constexpr std::int64_t kBetweenChecks = 4;  // products between two looks at the eigenvalues

// Takes the parts along the rows of `basis` [B, m, n] out of w [B, n]; twice is enough (Parlett, "The Symmetric Eigenvalue
// Problem", section 6.9).
at::Tensor orthogonal_to(const at::Tensor& basis, at::Tensor w) {
  for (int round = 0; round < 2; ++round)
    w = w - at::matmul(at::matmul(basis, w.unsqueeze(2)).squeeze(2).unsqueeze(1), basis).squeeze(1);
  return w;
}

// `diagonal` has m columns, `beside` m: the last couples to what was not explored.
Extremes extremes_of(const std::vector<at::Tensor>& diagonal, const std::vector<at::Tensor>& beside, const at::Tensor& basis) {
  const at::Tensor on = at::stack(diagonal, 1), off = at::stack(beside, 1);
  at::Tensor matrix = at::diag_embed(on);
  if (on.size(1) > 1) {
    const at::Tensor inner = off.slice(1, 0, on.size(1) - 1);
    matrix = matrix + at::diag_embed(inner, 1) + at::diag_embed(inner, -1);
  }
  const auto [values, vectors] = at::linalg_eigh(matrix);  // ascending
  const at::Tensor reach = off.select(1, off.size(1) - 1).unsqueeze(1) * vectors.select(1, on.size(1) - 1).abs();
  const at::Tensor where = values.abs().argmax(1, /*keepdim=*/true);
  const std::int64_t last = values.size(1) - 1;
  return {.magnitude = values.abs().amax(1),
          .largest = values.select(1, last),
          .residual = at::maximum(reach.gather(1, where).squeeze(1), reach.select(1, last)),
          .direction = at::matmul(vectors.select(2, last).unsqueeze(1), basis).squeeze(1)};
}

}  // namespace

Extremes lanczos(const std::function<at::Tensor(const at::Tensor&)>& times, const at::Tensor& start,
                 const LanczosOptions& options) {
  const std::int64_t most = std::min(options.steps, start.size(1));
  at::Tensor q = start / start.norm(2, 1, /*keepdim=*/true);
  std::vector<at::Tensor> basis, diagonal, beside;
  at::Tensor size = at::zeros({start.size(0)}, start.options());  // of the matrix, as far as it was seen
  at::Tensor settled =
      at::zeros({start.size(0)}, start.options().dtype(at::kBool));  // rows that stay as they are: no row waits for another
  Extremes result{size, size, size, at::zeros_like(start)};
  for (std::int64_t step = 1;; ++step) {
    throw_if_interrupted();
    basis.push_back(q);
    const at::Tensor product = times(q);
    const at::Tensor along = (product * q).sum(1);
    // Where the space is used up, a value between the extremes changes neither of them.
    diagonal.push_back(diagonal.empty() ? along : at::where(q.norm(2, 1) > 0, along, diagonal.front()));
    const at::Tensor rows = at::stack(basis, 1), w = orthogonal_to(rows, product);
    size = at::maximum(size, product.norm(2, 1));
    const at::Tensor length = w.norm(2, 1), fresh = length > options.noise * size;
    beside.push_back(at::where(fresh, length, at::zeros_like(length)));
    if (step % kBetweenChecks == 0 || step == most || !fresh.any().item<bool>()) {
      Extremes found = extremes_of(diagonal, beside, rows);
      if (step == start.size(1)) found.residual.zero_();  // all of the space
      for (at::Tensor Extremes::*field : {&Extremes::magnitude, &Extremes::largest, &Extremes::residual}) {
        result.*field = at::where(settled, result.*field, found.*field);
      }
      result.direction = at::where(settled.unsqueeze(1), result.direction, found.direction);
      settled = settled.logical_or(result.residual <= options.tolerance * result.magnitude);
      if (step == most || settled.all().item<bool>()) return result;
    }
    q = at::where(fresh.unsqueeze(1), w / length.unsqueeze(1), at::zeros_like(w));
  }
}

}  // namespace holdfast::measure

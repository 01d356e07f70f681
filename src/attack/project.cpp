// What a threat model does to batches of points.
#include <algorithm>

#include "holdfast/attack/threat.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "rows.h"
#include "valid.h"

namespace holdfast::attack {
namespace {

// f(rows of the clean batch, rows of the result): the result starts as a copy of `from`.
template <class Work>
at::Tensor row_by_row(const at::Tensor& from, const at::Tensor& clean, const Work& work) {
  HOLDFAST_CHECK(from.sizes() == clean.sizes() && from.scalar_type() == clean.scalar_type());
  const at::Tensor origin = clean.detach().cpu().contiguous();
  at::Tensor points = from.detach().cpu().contiguous().clone();
  AT_DISPATCH_FLOATING_TYPES(points.scalar_type(), "threat",
                             [&] { work(rows_of(points), origin.data_ptr<scalar_t>(), points.data_ptr<scalar_t>()); });
  return points.to(from.device());
}

}  // namespace

rows::Shape rows_of(const at::Tensor& batch) {
  return {batch.size(0), batch.size(0) == 0 ? 0 : batch.numel() / batch.size(0)};
}

at::Tensor ThreatModel::project(const at::Tensor& candidate, const at::Tensor& clean) const {
  return row_by_row(candidate, clean,
                    [&](rows::Shape shape, const auto* origin, auto* points) { rows::project(*this, shape, origin, points); });
}

at::Tensor ThreatModel::admit(const at::Tensor& projected, const at::Tensor& clean) const {
  if (!valid) return projected;
  return row_by_row(projected, clean, [&](rows::Shape shape, const auto* origin, auto* points) {
    rows::round_to_valid(*this, shape, origin, points);
  });
}

at::Tensor ThreatModel::hold_frozen(const at::Tensor& moves) const {
  if (frozen.empty()) return moves;
  at::Tensor held = at::empty({static_cast<std::int64_t>(frozen.size())}, at::kBool);
  std::copy(frozen.begin(), frozen.end(), held.data_ptr<bool>());
  return moves.masked_fill(held.view(moves.sizes().slice(1)).to(moves.device()), 0);
}

at::Tensor ThreatModel::distance(const at::Tensor& candidate, const at::Tensor& clean) const {
  const at::Tensor difference =
      (candidate.detach().to(at::kDouble) - clean.detach().to(at::kDouble)).reshape({candidate.size(0), blocks, -1});
  switch (norm) {
    case Norm::kL2:
      return difference.norm(2, 2).amax(1);
    case Norm::kL1:
      return difference.abs().sum(2).amax(1);
    case Norm::kLinf:
      return difference.abs().amax({1, 2});
  }
  return {};
}

}  // namespace holdfast::attack

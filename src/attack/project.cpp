// What a threat model does to batches of points.
#include <algorithm>

#include "batch_step.h"
#include "holdfast/attack/threat.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "rows.h"
#include "switches.h"
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

at::Tensor ThreatModel::switched(const at::Tensor& candidate, const at::Tensor& clean) const {
  if (!switches) return clean;
  const at::Tensor wanted = candidate.detach().cpu().contiguous();
  return row_by_row(clean, clean, [&](rows::Shape shape, const auto* origin, auto* points) {
    rows::take_levels(*switches, shape, wanted.data_ptr<std::remove_cvref_t<decltype(*points)>>(), origin, points);
  });
}

bool ThreatModel::can_move() const {
  const bool all_frozen = !frozen.empty() && std::find(frozen.begin(), frozen.end(), false) == frozen.end();
  return (switches && switches->most > 0) || (epsilon > 0 && !all_frozen);
}

at::Tensor ThreatModel::project(const at::Tensor& candidate, const at::Tensor& clean) const {
  if (!candidate.is_cpu() && projects_in_batches(*this)) return project_batch(*this, candidate, clean);
  return row_by_row(candidate, switched(candidate, clean),
                    [&](rows::Shape shape, const auto* origin, auto* points) { rows::project(*this, shape, origin, points); });
}

at::Tensor ThreatModel::admit(const at::Tensor& projected, const at::Tensor& clean) const {
  if (!valid) return projected;
  return row_by_row(projected, switched(projected, clean), [&](rows::Shape shape, const auto* origin, auto* points) {
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
  at::Tensor difference = candidate.detach().to(at::kDouble) - clean.detach().to(at::kDouble);
  if (switches) difference = hold_frozen(difference);
  difference = difference.reshape({candidate.size(0), blocks, -1});
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

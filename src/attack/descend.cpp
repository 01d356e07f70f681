#include "descend.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "rows.h"

namespace holdfast::attack {

at::Tensor descend(const ThreatModel& threat, const at::Tensor& points, const at::Tensor& gradient, const at::Tensor& clean,
                   double step, StepNotes& notes) {
  HOLDFAST_CHECK(points.sizes() == gradient.sizes() && points.sizes() == clean.sizes());
  const at::Tensor from = points.cpu().contiguous(), origin = threat.switched(points, clean).cpu().contiguous();
  const at::Tensor slope = threat.hold_frozen(gradient.cpu()).contiguous();
  at::Tensor next = at::empty_like(from);
  const rows::Shape shape = rows_of(from);
  notes.projected.resize(static_cast<std::size_t>(shape.count));
  notes.broken.resize(static_cast<std::size_t>(shape.count));
  notes.without_gradient.resize(static_cast<std::size_t>(shape.count));
  // A part with a ball of its own takes a step of its own.
  const rows::Shape parts{shape.count * threat.blocks, shape.n / threat.blocks};
  std::vector<char> broken(static_cast<std::size_t>(parts.count)), still(broken);
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "descend", [&] {
    rows::step<scalar_t>(threat.norm, parts, from.data_ptr<scalar_t>(), slope.data_ptr<scalar_t>(), step,
                         next.data_ptr<scalar_t>(), broken.data(), still.data());
    rows::project<scalar_t>(threat, shape, origin.data_ptr<scalar_t>(), next.data_ptr<scalar_t>(), notes.projected.data());
  });
  for (std::size_t row = 0; row < notes.broken.size(); ++row) {
    const auto begin = static_cast<std::ptrdiff_t>(row) * threat.blocks, end = begin + threat.blocks;
    notes.broken[row] = std::any_of(broken.begin() + begin, broken.begin() + end, [](char flag) { return flag != 0; });
    notes.without_gradient[row] = std::all_of(still.begin() + begin, still.begin() + end, [](char flag) { return flag != 0; });
  }
  return next.to(points.device());
}

}  // namespace holdfast::attack

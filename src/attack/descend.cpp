#include "descend.h"

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
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "descend", [&] {
    rows::step<scalar_t>(threat.norm, shape, from.data_ptr<scalar_t>(), slope.data_ptr<scalar_t>(), step,
                         next.data_ptr<scalar_t>(), notes.broken.data(), notes.without_gradient.data());
    rows::project<scalar_t>(threat, shape, origin.data_ptr<scalar_t>(), next.data_ptr<scalar_t>(), notes.projected.data());
  });
  return next.to(points.device());
}

}  // namespace holdfast::attack

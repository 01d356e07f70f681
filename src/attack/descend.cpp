#include "descend.h"

#include <algorithm>

#include "bounds.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast {

at::Tensor descend(const ThreatModel& threat, const at::Tensor& points, const at::Tensor& gradient, const at::Tensor& clean,
                   double step) {
  HOLDFAST_CHECK(points.sizes() == gradient.sizes() && points.sizes() == clean.sizes());
  const at::Tensor free = threat.frozen.defined() ? gradient.masked_fill(threat.frozen.to(gradient.device()), 0) : gradient;
  const at::Tensor from = points.cpu().contiguous(), slope = free.cpu().contiguous(), origin = clean.cpu().contiguous();
  at::Tensor next = at::empty_like(from);
  const rows::Shape shape{from.size(0), from.numel() / std::max<std::int64_t>(1, from.size(0))};
  const HeldBounds bounds(threat);
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "descend", [&] {
    rows::step<scalar_t>(threat.norm, shape, from.data_ptr<scalar_t>(), slope.data_ptr<scalar_t>(), step,
                         next.data_ptr<scalar_t>());
    rows::project<scalar_t>(*bounds, shape, origin.data_ptr<scalar_t>(), next.data_ptr<scalar_t>());
  });
  return next.to(points.device());
}

}  // namespace holdfast

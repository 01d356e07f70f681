#include "descend.h"

#include <ATen/ATen.h>

#include "holdfast/core/error.h"
#include "rows.h"

namespace holdfast {
namespace {

template <class Number>
void step_row(Norm norm, const bool* frozen, const Number* point, const Number* gradient, double step, Number* next, std::int64_t n) {
  const auto slope = [&](std::int64_t i) { return rows::held(frozen, i) ? 0.0 : static_cast<double>(gradient[i]); };
  const double size = rows::size(norm, n, slope);
  if (!(size > 0) || !std::isfinite(size)) {
    std::copy(point, point + n, next);
    return;
  }
  const auto move = [&](std::int64_t i) {
    if (norm != Norm::kLinf) return step / size * slope(i);
    return slope(i) > 0 ? step : slope(i) < 0 ? -step : 0;
  };
  for (std::int64_t i = 0; i < n; ++i) next[i] = static_cast<Number>(static_cast<double>(point[i]) - move(i));
}

}  // namespace

at::Tensor descend(const ThreatModel& threat, const at::Tensor& points, const at::Tensor& gradient, const at::Tensor& clean, double step) {
  HOLDFAST_CHECK(points.sizes() == gradient.sizes() && points.sizes() == clean.sizes());
  const at::Tensor from = points.cpu().contiguous(), slope = gradient.cpu().contiguous(), origin = clean.cpu().contiguous();
  const at::Tensor frozen = threat.frozen.defined() ? threat.frozen.cpu().contiguous() : threat.frozen;
  at::Tensor next = at::empty_like(from);
  const std::int64_t n = from.numel() / std::max<std::int64_t>(1, from.size(0));
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "descend", [&] {
    const bool* held = frozen.defined() ? frozen.data_ptr<bool>() : nullptr;
    for (std::int64_t start = 0; start < from.numel(); start += n) {
      scalar_t* row = next.data_ptr<scalar_t>() + start;
      step_row(threat.norm, held, from.data_ptr<scalar_t>() + start, slope.data_ptr<scalar_t>() + start, step, row, n);
      rows::project(threat, held, row, origin.data_ptr<scalar_t>() + start, n);
    }
  });
  return next.to(points.device());
}

}  // namespace holdfast

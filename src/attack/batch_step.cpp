#include "batch_step.h"

#include <cmath>
#include <limits>

#include "holdfast/core/error.h"
#include "holdfast/core/row_kernels.h"
#include "holdfast/core/row_loops.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack {
namespace step_rows {

using namespace row_loops;
#include "step_rows.kernel.h"

constexpr const char* kText =
#include "step_rows.kernel.inc"
    ;

template <class Number>
void on_cpu(const void* arguments, std::int64_t block, char* shared) {
  step_block(*static_cast<const StepArguments<Number>*>(arguments), block, shared);
}

const RowKernel& kernel() {
  static const RowKernel made({.text = kText,
                               .block = "step_block",
                               .arguments = "StepArguments",
                               .in_float = on_cpu<float>,
                               .in_double = on_cpu<double>});
  return made;
}

}  // namespace step_rows

namespace {

// As in rows.cpp: what rounding may put outside is no projection.
constexpr double kRounding = 1e-6;

// Of the sizes that are added up: what sums in double may be off by.
constexpr double kSumRounding = 1e-13;

// How far the nearest number of this type may be from a number of size 1.
double half_unit(at::ScalarType type) {
  return type == at::kDouble ? std::numeric_limits<double>::epsilon() / 2 : std::numeric_limits<float>::epsilon() / 2.0;
}

at::Tensor row_of(const std::vector<double>& numbers, const at::Tensor& like) {
  return at::tensor(at::ArrayRef<double>(numbers), at::kDouble).to(like.options()).view(like.sizes().slice(1));
}

at::Tensor frozen_mask(const ThreatModel& threat, const at::Tensor& like) {
  at::Tensor held = at::empty({static_cast<std::int64_t>(threat.frozen.size())}, at::kBool);
  std::copy(threat.frozen.begin(), threat.frozen.end(), held.data_ptr<bool>());
  return held.to(like.device()).view(like.sizes().slice(1));
}

// confine() of rows.h: box, ranges of valid rows, no new negative numbers, frozen elements.
at::Tensor confine_batch(const ThreatModel& threat, at::Tensor points, const at::Tensor& clean) {
  if (threat.box) points = points.clamp(threat.box->first, threat.box->second);
  if (threat.valid) {
    points = at::maximum(points, at::minimum(row_of(threat.valid->low, clean), clean));
    points = at::minimum(points, at::maximum(row_of(threat.valid->high, clean), clean));
  }
  if (threat.non_negative) {
    const at::Tensor has_negative = (clean.flatten(1) < 0).any(1).view({-1, 1});
    points = at::where(has_negative, points.flatten(1), points.flatten(1).clamp_min(0)).view_as(points);
  }
  if (!threat.frozen.empty()) points = at::where(frozen_mask(threat, clean), clean, points);
  return points;
}

// Sizes of parts, [rows, blocks, 1].
at::Tensor part_sizes(Norm norm, const at::Tensor& parts) {
  if (norm == Norm::kL2) return parts.square().sum(2, /*keepdim=*/true).sqrt();
  return parts.abs().sum(2, /*keepdim=*/true);
}

// Differences of the nearest points of an l1 ball around 0 (rows.cpp: shrink_l1).
at::Tensor shrink_l1(const at::Tensor& parts, const at::Tensor& radius) {
  const at::Tensor sorted = std::get<0>(parts.abs().sort(/*dim=*/2, /*descending=*/true));
  const at::Tensor counts = at::arange(1, parts.size(2) + 1, parts.options());
  const at::Tensor candidates = (sorted.cumsum(2) - radius) / counts;
  const at::Tensor last = (sorted > candidates).to(at::kLong).sum(2, /*keepdim=*/true) - 1;
  const at::Tensor amount = candidates.gather(2, last.clamp_min(0));
  return parts.sign() * (parts.abs() - amount).clamp_min(0);
}

struct Projected {
  at::Tensor points, moved;  // [rows] bool
};

Projected into_cube(const ThreatModel& threat, const at::Tensor& points, const at::Tensor& clean) {
  const at::Tensor origin = clean.to(at::kDouble), difference = points.to(at::kDouble) - origin;
  const at::Tensor outside = difference.abs() > threat.epsilon;
  const at::Tensor far = difference.abs() > threat.epsilon + kRounding * origin.abs().clamp_min(threat.epsilon);
  at::Tensor border = (origin + difference.sign() * threat.epsilon).to(points.scalar_type());
  // The sum was rounded, perhaps outwards.
  const at::Tensor rounded_out = (border.to(at::kDouble) - origin).abs() > threat.epsilon;
  border = at::where(rounded_out, at::nextafter(border, clean), border);
  return {at::where(outside, border, points), far.flatten(1).any(1)};
}

// Rounding of a point moves it by at most half a unit of its size, in either norm; the radius is smaller by that.
Projected into_ball(const ThreatModel& threat, const at::Tensor& points, const at::Tensor& clean) {
  const std::vector<std::int64_t> shape{points.size(0), threat.blocks, points.numel() / (points.size(0) * threat.blocks)};
  const at::Tensor origin = clean.to(at::kDouble).view(shape);
  const at::Tensor parts = points.to(at::kDouble).view(shape) - origin, sizes = part_sizes(threat.norm, parts);
  const at::Tensor outside = sizes > threat.epsilon;
  const at::Tensor reach = part_sizes(threat.norm, origin) + threat.epsilon;
  const at::Tensor radius = (threat.epsilon - (half_unit(points.scalar_type()) + kSumRounding) * reach).clamp_min(0);
  const at::Tensor inside = threat.norm == Norm::kL1 ? shrink_l1(parts, radius) : parts * (radius / sizes);
  const at::Tensor pulled = (origin + inside).to(points.scalar_type());
  return {at::where(outside, pulled, points.view(shape)).view_as(points),
          (sizes > threat.epsilon * (1 + kRounding)).flatten(1).any(1)};
}

Projected project_rows(const ThreatModel& threat, const at::Tensor& candidate, const at::Tensor& clean) {
  const at::Tensor confined = confine_batch(threat, candidate, clean);
  if (candidate.numel() == 0) return {confined, at::zeros({candidate.size(0)}, candidate.options().dtype(at::kBool))};
  Projected projected = threat.norm == Norm::kLinf ? into_cube(threat, confined, clean) : into_ball(threat, confined, clean);
  projected.moved = projected.moved.logical_or((confined != candidate).flatten(1).any(1));
  return projected;
}

// Whether one kernel does the whole step, or projects alone.
bool steps_in_a_kernel(const ThreatModel& threat, const at::Tensor& points) {
  return threat.norm != Norm::kL1 && !threat.valid && threat.frozen.empty() && threat.blocks == 1 && points.numel() > 0 &&
         points.numel() / points.size(0) < (std::int64_t{1} << 24) && step_rows::kernel().runs_on(points);
}

BatchStep step_in_a_kernel(const ThreatModel& threat, const at::Tensor& points, const at::Tensor& gradient,
                           const at::Tensor& clean, double step) {
  const at::Tensor from = points.detach().contiguous(),
                   slope = gradient.defined() ? gradient.detach().to(from.scalar_type()).contiguous() : at::Tensor(),
                   origin = clean.detach().contiguous();
  HOLDFAST_CHECK(origin.scalar_type() == from.scalar_type());
  BatchStep result{at::empty_like(from), at::empty({from.size(0)}, from.options().dtype(at::kDouble))};
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "step_rows", [&] {
    const std::int64_t n = from.numel() / from.size(0);
    const int lanes = n <= 64 ? 32 : RowKernel::kThreads;
    const step_rows::StepArguments<scalar_t> arguments{.points = from.const_data_ptr<scalar_t>(),
                                                       .gradient = slope.defined() ? slope.const_data_ptr<scalar_t>() : nullptr,
                                                       .clean = origin.const_data_ptr<scalar_t>(),
                                                       .next = result.next.mutable_data_ptr<scalar_t>(),
                                                       .flags = result.flags.mutable_data_ptr<double>(),
                                                       .rows = from.size(0),
                                                       .n = static_cast<int>(n),
                                                       .lanes = lanes,
                                                       .per_block = RowKernel::kThreads / lanes,
                                                       .corners = threat.norm == Norm::kLinf,
                                                       .has_box = threat.box.has_value(),
                                                       .non_negative = threat.non_negative,
                                                       .step = step,
                                                       .epsilon = threat.epsilon,
                                                       .low = threat.box ? threat.box->first : 0,
                                                       .high = threat.box ? threat.box->second : 0,
                                                       .half_unit = half_unit(from.scalar_type()),
                                                       .sum_rounding = kSumRounding,
                                                       .rounding = kRounding};
    step_rows::kernel().run(from, arguments, (arguments.rows + arguments.per_block - 1) / arguments.per_block,
                            6 * RowKernel::kThreads * static_cast<std::int64_t>(sizeof(double)));
  });
  return result;
}

}  // namespace

bool projects_in_batches(const ThreatModel& threat) {
  return !threat.switches;
}

at::Tensor project_batch(const ThreatModel& threat, const at::Tensor& candidate, const at::Tensor& clean) {
  HOLDFAST_CHECK(candidate.sizes() == clean.sizes() && candidate.scalar_type() == clean.scalar_type());
  const at::NoGradGuard no_graph;
  if (steps_in_a_kernel(threat, candidate)) return step_in_a_kernel(threat, candidate, {}, clean, 0).next;
  return project_rows(threat, candidate.detach().contiguous(), clean.detach().contiguous()).points;
}

BatchStep descend_batch(const ThreatModel& threat, const at::Tensor& points, const at::Tensor& gradient, const at::Tensor& clean,
                        double step) {
  HOLDFAST_CHECK(points.sizes() == gradient.sizes() && points.sizes() == clean.sizes());
  const at::NoGradGuard no_graph;
  if (steps_in_a_kernel(threat, points)) return step_in_a_kernel(threat, points, gradient, clean, step);
  const std::vector<std::int64_t> shape{points.size(0), threat.blocks, -1};
  at::Tensor slope = gradient.detach();
  if (!threat.frozen.empty()) slope = slope.masked_fill(frozen_mask(threat, slope), 0);
  const at::Tensor broken = slope.isfinite().logical_not().flatten(1).any(1);
  slope = slope.nan_to_num(0, 0, 0).reshape(shape);
  const at::Tensor from = points.detach().reshape(shape);
  // For signs any norm will do that is zero for zeros only.
  const at::Tensor sizes = part_sizes(threat.norm == Norm::kLinf ? Norm::kL1 : threat.norm, slope.to(at::kDouble));
  const at::Tensor stays = (sizes > 0).logical_not().logical_or(sizes.isinf());
  const at::Tensor move =
      threat.norm == Norm::kLinf ? (slope.sign().to(at::kDouble) * step) : (slope * (step / sizes).to(slope.scalar_type()));
  const at::Tensor next = at::where(stays, from, (from - move).to(from.scalar_type())).view(points.sizes());
  Projected projected = project_rows(threat, next, clean.detach().contiguous());
  const at::Tensor still = stays.flatten(1).all(1);
  const at::Tensor flags = projected.moved.to(at::kDouble) * static_cast<double>(kProjected) +
                           broken.to(at::kDouble) * static_cast<double>(kBroken) +
                           still.to(at::kDouble) * static_cast<double>(kWithoutGradient);
  return {projected.points, flags};
}

}  // namespace holdfast::attack

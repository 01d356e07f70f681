#include "draw.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "holdfast/core/device_random.h"
#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/row_kernels.h"
#include "holdfast/core/row_loops.h"
#include "holdfast/core/torch.h"
#include "rows.h"
#include "switches.h"
#include "valid.h"

namespace holdfast::attack {
namespace drawing {

using namespace row_loops;
#include "draw_rows.kernel.h"

constexpr const char* kText =
#include "draw_rows.kernel.inc"
    ;

template <class Number>
void on_cpu(const void* arguments, std::int64_t block, char* shared) {
  draw_block(*static_cast<const DrawArguments<Number>*>(arguments), block, shared);
}

const RowKernel& kernel() {
  static const RowKernel made({.text = kText,
                               .block = "draw_block",
                               .arguments = "DrawArguments",
                               .in_float = on_cpu<float>,
                               .in_double = on_cpu<double>});
  return made;
}

at::Tensor moves(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed, bool on_sphere) {
  const at::Tensor streams = ids.to(clean.device(), /*non_blocking=*/true).contiguous();
  const at::Tensor result = at::empty(clean.sizes(), clean.options().requires_grad(false));
  const std::array<std::uint32_t, 2> key = stream_key(seed, "point");
  AT_DISPATCH_FLOATING_TYPES(clean.scalar_type(), "draw_rows", [&] {
    const auto [count, n] = rows_of(clean);
    const int lanes = n <= 64 ? 32 : RowKernel::kThreads;
    const DrawArguments<scalar_t> arguments{.ids = streams.const_data_ptr<std::int64_t>(),
                                            .moves = result.mutable_data_ptr<scalar_t>(),
                                            .rows = count,
                                            .key = {key[0], key[1]},
                                            .n = static_cast<int>(n),
                                            .lanes = lanes,
                                            .per_block = RowKernel::kThreads / lanes,
                                            .norm = threat.norm == Norm::kL2     ? 0
                                                    : threat.norm == Norm::kLinf ? 1
                                                                                 : 2,
                                            .on_sphere = on_sphere,
                                            .epsilon = threat.epsilon};
    kernel().run(clean, arguments, (count + arguments.per_block - 1) / arguments.per_block,
                 RowKernel::kThreads * static_cast<std::int64_t>(sizeof(double)));
  });
  return result;
}

}  // namespace drawing

namespace {

double draw_element(Norm norm, RandomStream& stream) {
  switch (norm) {
    case Norm::kL2:
      return stream.normal();
    case Norm::kLinf:
      return stream.uniform(-1, 1);
    case Norm::kL1:
      break;
  }
  const double magnitude = -std::log(1 - stream.uniform());
  return stream.bits() % 2 == 0 ? magnitude : -magnitude;
}

// A random displacement of `free` elements, inside a ball of this radius or on its surface.
std::vector<double> draw(Norm norm, double radius, bool on_sphere, std::int64_t free, RandomStream& stream) {
  std::vector<double> move(static_cast<std::size_t>(free));
  for (double& element : move) element = draw_element(norm, stream);
  double scale = radius;
  if (norm != Norm::kLinf || on_sphere) {
    const double size = rows::size(norm, move);
    const double share = on_sphere ? 1 : std::pow(stream.uniform(), 1.0 / static_cast<double>(free));
    scale *= size > 0 ? share / size : 0;
  }
  for (double& element : move) element *= scale;
  return move;
}

RandomStream stream_of(const at::Tensor& ids, std::int64_t row, std::uint64_t seed, const char* purpose) {
  return {seed, purpose, static_cast<std::uint64_t>(ids.data_ptr<std::int64_t>()[row])};
}

// Wanted valid rows, not rounded yet.
at::Tensor draw_rows(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed,
                     bool on_sphere) {
  const at::Tensor origin = clean.cpu().to(at::kDouble).contiguous();
  at::Tensor points = at::empty_like(origin);
  const auto [count, n] = rows_of(origin);
  for (std::int64_t row = 0; row < count; ++row) {
    RandomStream stream = stream_of(ids, row, seed, "point");
    rows::draw_valid(
        threat, n, origin.data_ptr<double>() + row * n, stream,
        [&](std::int64_t free, double radius) { return draw(threat.norm, radius, on_sphere, free, stream); },
        points.data_ptr<double>() + row * n);
  }
  return points.to(clean.options().requires_grad(false));
}

// Sizes of rows, [rows, 1]: rows::size.
at::Tensor sizes_of(Norm norm, const at::Tensor& moves) {
  if (norm == Norm::kL2) return moves.square().sum(1, true).sqrt();
  return norm == Norm::kL1 ? moves.abs().sum(1, true) : moves.abs().amax(1, true);
}

}  // namespace

at::Tensor draw_moves(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed,
                      bool on_sphere) {
  const auto [count, n] = rows_of(clean);
  const std::int64_t part = n / threat.blocks;
  at::Tensor moves = at::zeros({count, n}, at::kDouble);
  for (std::int64_t row = 0; row < count; ++row) {
    RandomStream stream = stream_of(ids, row, seed, "point");
    double* elements = moves.data_ptr<double>() + row * n;
    for (std::int64_t begin = 0; begin < n; begin += part) {
      std::int64_t free = 0;
      for (std::int64_t i = begin; i < begin + part; ++i) free += threat.is_frozen(i) ? 0 : 1;
      const std::vector<double> move = draw(threat.norm, threat.epsilon, on_sphere, free, stream);
      auto next = move.begin();
      for (std::int64_t i = begin; i < begin + part; ++i) {
        if (!threat.is_frozen(i)) elements[i] = *next++;
      }
    }
  }
  return moves.view_as(clean).to(clean.options().requires_grad(false));
}

bool draws_in_batches(const ThreatModel& threat) {
  return !threat.valid && !threat.switches && threat.blocks == 1;
}

at::Tensor draw_moves_in_batches(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed,
                                 bool on_sphere) {
  HOLDFAST_CHECK(draws_in_batches(threat));
  const at::NoGradGuard no_graph;
  const auto [count, n] = rows_of(clean);
  if (threat.frozen.empty() && n > 0 && n < (std::int64_t{1} << 24) && drawing::kernel().runs_on(clean))
    return drawing::moves(threat, clean, ids, seed, on_sphere);
  std::vector<std::int64_t> free;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!threat.is_frozen(i)) free.push_back(i);
  }
  if (free.empty()) return at::zeros_like(clean);
  const auto elements = static_cast<std::int64_t>(free.size());
  // One word an element, or two; normal numbers come in pairs. The next one says how far inside a point lies.
  const std::int64_t words =
      threat.norm == Norm::kL1 ? 2 * elements : (threat.norm == Norm::kL2 ? (elements + 1) / 2 * 2 : elements);
  const at::Tensor drawn = stream_words(ids.to(clean.device(), /*non_blocking=*/true), words + 1, seed, "point");
  const at::Tensor own = drawn.slice(1, 0, words);
  at::Tensor moves;
  if (threat.norm == Norm::kL2) {
    moves = normal_from(own).slice(1, 0, elements);
  } else if (threat.norm == Norm::kLinf) {
    moves = uniform_from(own) * 2 - 1;
  } else {
    const at::Tensor pairs = own.unflatten(1, {-1, 2});
    moves = -(1 - uniform_from(pairs.select(2, 0))).log() * (1 - pairs.select(2, 1).bitwise_and(1) * 2);
  }
  if (threat.norm != Norm::kLinf || on_sphere) {
    const at::Tensor share = on_sphere ? at::ones({count, 1}, moves.options())
                                       : uniform_from(drawn.slice(1, words)).pow(1.0 / static_cast<double>(elements));
    const at::Tensor size = sizes_of(threat.norm, moves);
    moves = moves * at::where(size > 0, share / size, at::zeros_like(size));
  }
  moves = moves * threat.epsilon;
  if (elements < n) {
    const at::Tensor columns = at::tensor(at::ArrayRef<std::int64_t>(free), at::kLong).to(clean.device(), /*non_blocking=*/true);
    moves = at::zeros({count, n}, moves.options()).index_copy(1, columns, moves);
  }
  return moves.view_as(clean).to(clean.scalar_type());
}

at::Tensor draw_points(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed,
                       bool on_sphere) {
  if (!clean.is_cpu() && draws_in_batches(threat))
    return threat.project(clean + draw_moves_in_batches(threat, clean, ids, seed, on_sphere), clean);
  const at::Tensor streams = ids.cpu().contiguous(), around = draw_levels(threat, clean, ids, seed);
  if (threat.valid) return threat.admit(draw_rows(threat, around, streams, seed, on_sphere), clean);
  return threat.project(around + draw_moves(threat, around, streams, seed, on_sphere), clean);
}

at::Tensor draw_levels(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed) {
  if (!threat.switches || threat.switches->most == 0) return clean;
  const at::Tensor streams = ids.cpu().contiguous();
  at::Tensor points = clean.detach().cpu().to(at::kDouble).contiguous().clone();
  const auto [count, n] = rows_of(points);
  for (std::int64_t row = 0; row < count; ++row) {
    RandomStream stream = stream_of(streams, row, seed, "levels");
    rows::draw_levels(*threat.switches, stream, points.data_ptr<double>() + row * n);
  }
  return points.to(clean.options().requires_grad(false));
}

at::Tensor draw_signs(const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed) {
  const at::Tensor streams = ids.cpu().contiguous();
  const auto [count, n] = rows_of(clean);
  at::Tensor signs = at::empty({count, n}, at::kFloat);
  for (std::int64_t row = 0; row < count; ++row) {
    RandomStream stream = stream_of(streams, row, seed, "signs");
    float* elements = signs.data_ptr<float>() + row * n;
    std::uint32_t bits = 0;
    for (std::int64_t i = 0; i < n; ++i, bits >>= 1) {
      if (i % 32 == 0) bits = stream.bits();
      elements[i] = (bits & 1) != 0 ? 1.0f : -1.0f;
    }
  }
  return signs.view_as(clean).to(clean.options().requires_grad(false));
}

}  // namespace holdfast::attack

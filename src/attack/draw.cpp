#include "draw.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "rows.h"
#include "switches.h"
#include "valid.h"

namespace holdfast::attack {
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

}  // namespace

at::Tensor draw_points(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed,
                       bool on_sphere) {
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

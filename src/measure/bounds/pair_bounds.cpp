#include "pair_bounds.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/top_k.h"
#include "pair_loops.h"
#include "rounding.h"

namespace holdfast::measure {
namespace {

at::Tensor rows_at(const at::Tensor& matrix, const at::Tensor& index) {
  return matrix.gather(1, index.unsqueeze(2).expand({-1, -1, matrix.size(2)}));
}

}  // namespace

RankedPairs ranked_pairs(const PairChoice& choice, const at::Tensor& gradient) {
  const std::int64_t samples = gradient.size(0), n = gradient.size(1);
  const at::Tensor plain = gradient.abs().contiguous();
  const std::int64_t k = choice.j > 0 ? 1 : choice.k, rest = choice.j > 0 ? 1 : n - k;
  RankedPairs result{at::empty({samples, k}, at::kLong), at::empty({samples, rest}, at::kLong)};
  for (std::int64_t b = 0; b < samples; ++b) {
    const std::span<const double> map(plain.const_data_ptr<double>() + b * n, static_cast<std::size_t>(n));
    const std::vector<std::int64_t> ranked = top_k_ranked(map, n);
    const auto copy = [&](std::int64_t from, std::int64_t count, at::Tensor to) {
      std::copy_n(ranked.begin() + from, count, to.data_ptr<std::int64_t>());
    };
    copy(choice.j > 0 ? choice.i - 1 : 0, k, result.above[b]);
    copy(choice.j > 0 ? choice.j - 1 : k, rest, result.below[b]);
  }
  return result;
}

at::Tensor interval_gaps(const RankedPairs& pairs, const at::Tensor& rows, const at::Tensor& middle, const at::Tensor& half,
                         const at::Tensor& signs) {
  const at::Tensor features = rows.t().contiguous(), widths = half.contiguous();  // [n, units] and [B, units]
  const at::Tensor center = at::matmul(middle, rows).contiguous(), own = signs.to(at::kDouble).contiguous(),
                   above = pairs.above.contiguous(), below = pairs.below.contiguous();
  HOLDFAST_CHECK(center.scalar_type() == at::kDouble && features.scalar_type() == at::kDouble);
  const std::int64_t samples = center.size(0), n = center.size(1), units = features.size(1), tops = above.size(1),
                     others = below.size(1);
  at::Tensor result = at::empty({samples, tops, others}, at::kDouble);
  double* bound = result.mutable_data_ptr<double>();
  for (std::int64_t b = 0; b < samples; ++b) {
    const double *map = center.const_data_ptr<double>() + b * n, *sign = own.const_data_ptr<double>() + b * n,
                 *width = widths.const_data_ptr<double>() + b * units;
    for (std::int64_t top = 0; top < tops; ++top) {
      const std::int64_t i = above.const_data_ptr<std::int64_t>()[b * tops + top];
      for (std::int64_t other = 0; other < others; ++other, ++bound) {
        const std::int64_t j = below.const_data_ptr<std::int64_t>()[b * others + other];
        const double* const all = features.const_data_ptr<double>();
        const pair_loops::Distances moved = pair_loops::weighted_distances(units, width, all + i * units, all + j * units);
        *bound = std::min(sign[i] * (map[i] - map[j]) - moved.together, sign[i] * (map[i] + map[j]) - moved.apart);
      }
    }
  }
  return result;
}

PairTerms pair_terms(const RankedPairs& at, const at::Tensor& gradient, const Enclosure& hessian) {
  const at::Tensor magnitude = gradient.abs();
  const at::Tensor high = magnitude.gather(1, at.above).unsqueeze(2), low = magnitude.gather(1, at.below).unsqueeze(1);
  const at::Tensor signs = at::where(gradient < 0, -1.0, 1.0);    // either will do for 0, which has none
  const at::Tensor turned = hessian.center * signs.unsqueeze(2);  // s_i H_i
  const at::Tensor i = rows_at(turned, at.above), j = rows_at(turned, at.below);
  const at::Tensor i_spread = rows_at(hessian.radius, at.above), j_spread = rows_at(hessian.radius, at.below);
  at::Tensor together = at::empty({at.above.size(0), at.above.size(1), at.below.size(1)}, at::kDouble),
             apart = at::empty_like(together);
  const std::int64_t above = together.size(1), below = together.size(2), n = i.size(2);
  for (std::int64_t row = 0; row < together.size(0) * above; ++row) {
    const std::int64_t first = row / above * below;  // of the sample's other features
    for (std::int64_t other = 0; other < below; ++other) {
      const auto row_of = [&](const at::Tensor& all, std::int64_t index) { return all.const_data_ptr<double>() + index * n; };
      const pair_loops::Distances found = pair_loops::distances(n, row_of(i, row), row_of(j, first + other),
                                                                row_of(i_spread, row), row_of(j_spread, first + other));
      together.mutable_data_ptr<double>()[row * below + other] = found.together;
      apart.mutable_data_ptr<double>()[row * below + other] = found.apart;
    }
  }
  const auto row_norms = [](const at::Tensor& center, const at::Tensor& radius) { return (center.abs() + radius).norm(2, 2); };
  return {.gap = high - low,
          .sum = high + low,
          .together = together,
          .apart = apart,
          .rows = row_norms(i, i_spread).unsqueeze(2) + row_norms(j, j_spread).unsqueeze(1)};
}

at::Tensor gap_errors(const at::Tensor& errors, const at::Tensor& sizes, const RankedPairs& pairs, const Schema* projected,
                      double unit) {
  at::Tensor all = errors;
  if (projected != nullptr) {
    all = errors + rounding_of(kOperationsALayer, unit) * sizes;
    for (const Group& group : projected->groups) {
      const at::Tensor columns = at::tensor(group.columns, at::kLong);
      const double more = rounding_of(std::ssize(group.columns) + kOperationsALayer, unit);
      const at::Tensor mean = (errors + more * sizes).index_select(1, columns).mean(1, /*keepdim=*/true);
      all.index_copy_(1, columns, all.index_select(1, columns) + mean);
    }
  }
  return all.gather(1, pairs.above).unsqueeze(2) + all.gather(1, pairs.below).unsqueeze(1);
}

at::Tensor projected_gradient(const at::Tensor& gradient, const Schema& schema) {
  return schema.groups.empty() ? gradient : project_groups(gradient, schema);
}

Enclosure projected_hessian(const Enclosure& hessian, const Schema& schema) {
  if (schema.groups.empty()) return hessian;
  // Rows of the Hessian are the derivatives of the gradient's elements: groups are taken over the first of its two indices.
  const auto project = [&](const at::Tensor& matrix) {
    const at::Tensor turned = matrix.transpose(1, 2);
    return project_groups(turned.flatten(0, 1), schema).view_as(turned).transpose(1, 2);
  };
  // An element minus its group's mean: radii add.
  return {project(hessian.center), 2 * hessian.radius - project(hessian.radius)};
}

}  // namespace holdfast::measure

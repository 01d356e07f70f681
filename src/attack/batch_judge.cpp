#include "batch_judge.h"

#include <utility>

#include "batch_reading.h"
#include "feature_maps.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/neighborhood.h"

namespace holdfast::attack {
namespace {

// Features up to which windows that are no grid's are kept as a matrix.
constexpr std::int64_t kLargestMatrix = 2048;

bool is_grid(const Schema& schema) {
  return schema.layout.kind == Layout::Kind::kGrid && schema.neighbors.empty();
}

// Layout::fold. One channel's magnitudes are exact in their own type; sums of several are made in double.
at::Tensor folded(const Layout& layout, const at::Tensor& maps) {
  const at::Tensor magnitudes = maps.detach().abs().flatten(1);
  if (magnitudes.size(1) == layout.features()) return magnitudes;
  return magnitudes.view({maps.size(0), layout.sides, -1, layout.side_features()}).sum(2, false, at::kDouble).flatten(1);
}

at::Tensor neighbor_matrix(const Schema& schema, std::int64_t radius) {
  const Neighborhood neighborhood(schema, radius);
  const std::int64_t n = schema.layout.features();
  at::Tensor matrix = at::zeros({n, n}, at::kFloat);
  for (std::int64_t i = 0; i < n; ++i) {
    for (const std::int64_t j : neighborhood.window(i)) matrix.data_ptr<float>()[i * n + j] = 1;
  }
  return matrix;
}

}  // namespace

std::unique_ptr<BatchJudge> BatchJudge::make(const AttackTask& task, const Explanation& clean) {
  const std::optional<TopShare> share = task.metric.top_share();
  const Schema& schema = task.map_schema();
  if (!share || task.threat.tolerance || !schema.layout.is_plain() || clean.logits.size(1) < 2) return nullptr;
  if (share->w > 0 && !is_grid(schema) && schema.layout.features() > kLargestMatrix) return nullptr;
  return std::unique_ptr<BatchJudge>(new BatchJudge(task, clean, *share));
}

BatchJudge::BatchJudge(const AttackTask& task, const Explanation& clean, TopShare share)
    : schema_(task.map_schema()), share_(share) {
  const at::NoGradGuard no_graph;
  classes_ = clean.logits.detach().argmax(1);
  if (share_.w > 0 && !is_grid(schema_)) neighbors_ = neighbor_matrix(schema_, share_.w).to(clean.maps.device());
  const at::Tensor maps = folded(schema_.layout, clean.maps);
  top_ = at::zeros(maps.sizes(), maps.options().dtype(at::kFloat)).scatter_(1, top_positions(maps), 1.0);
  compared_ = share_.of == ShareOf::kPerturbed ? grow(top_) : top_;
}

// Ties go to the lower index, as everywhere.
at::Tensor BatchJudge::top_positions(const at::Tensor& maps) const {
  return std::get<1>(maps.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true)).slice(1, 0, share_.k);
}

// Adds to sets [rows, features] all that is near a member.
at::Tensor BatchJudge::grow(const at::Tensor& sets) const {
  if (share_.w == 0) return sets;
  if (neighbors_.defined()) return sets.matmul(neighbors_).clamp_max(1);
  const Layout& layout = schema_.layout;
  const std::int64_t across = 2 * share_.w + 1;
  return at::max_pool2d(sets.view({-1, 1, layout.height, layout.width}), {across, across}, {1, 1}, {share_.w, share_.w})
      .view(sets.sizes());
}

at::Tensor BatchJudge::read(const Explanation& there, const at::Tensor& owners) const {
  const at::NoGradGuard no_graph;
  const at::Tensor maps = folded(schema_.layout, there.maps), finite = maps.isfinite().all(1);
  const at::Tensor positions = top_positions(maps.nan_to_num(0, 0, 0));
  const at::Tensor kept = top_.index_select(0, owners).gather(1, positions).sum(1);
  at::Tensor common = kept;
  if (share_.w > 0 && share_.of == ShareOf::kPerturbed) {
    common = compared_.index_select(0, owners).gather(1, positions).sum(1);
  } else if (share_.w > 0) {
    const at::Tensor moved = at::zeros(maps.sizes(), top_.options()).scatter_(1, positions, 1.0);
    common = (top_.index_select(0, owners) * grow(moved)).sum(1);
  }
  const at::Tensor values = common.to(at::kDouble) / static_cast<double>(share_.k);

  const at::Tensor logits = there.logits.detach().to(at::kDouble), classes = classes_.index_select(0, owners).unsqueeze(1);
  const at::Tensor own = logits.gather(1, classes).squeeze(1);
  const at::Tensor best_other = logits.scatter(1, classes, -std::numeric_limits<double>::infinity()).amax(1);
  const at::Tensor same_class = (best_other > own).logical_not(),
                   certain = own - best_other >= kMargin + kLogitRounding * own.abs();
  const auto bit = [](const at::Tensor& is, RowFlag flag) { return is.to(at::kDouble) * static_cast<double>(flag); };
  const at::Tensor flags = bit(same_class, kSameClass) + bit(certain, kCertain) + bit(finite, kFinite) +
                           bit(kept == static_cast<double>(share_.k), kSameTop);
  return at::stack({values, flags});
}

}  // namespace holdfast::attack

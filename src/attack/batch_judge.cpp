#include "batch_judge.h"

#include <utility>

#include "batch_reading.h"
#include "feature_maps.h"
#include "holdfast/core/row_kernels.h"
#include "holdfast/core/row_loops.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/neighborhood.h"

namespace holdfast::attack {
namespace judge_rows {

using namespace row_loops;
#include "judge_rows.kernel.h"

constexpr const char* kText =
#include "judge_rows.kernel.inc"
    ;

template <class Number>
void on_cpu(const void* arguments, std::int64_t block, char* shared) {
  judge_block(*static_cast<const JudgeArguments<Number>*>(arguments), block, shared);
}

const RowKernel& kernel() {
  static const RowKernel made({.text = kText,
                               .block = "judge_block",
                               .arguments = "JudgeArguments",
                               .in_float = on_cpu<float>,
                               .in_double = on_cpu<double>});
  return made;
}

// Features up to which counting those that are larger is faster than sorting.
constexpr std::int64_t kMostCounted = 1024;

struct Size {
  int lanes, per_block;
  std::int64_t shared;
};
Size size_for(const at::Tensor& maps, std::int64_t n) {
  const int lanes = n <= 64 ? 32 : RowKernel::kThreads, per_block = RowKernel::kThreads / lanes;
  const auto bytes = static_cast<std::int64_t>(maps.element_size()) + 1;
  return {lanes, per_block, per_block * n * bytes + 3 * RowKernel::kThreads * static_cast<std::int64_t>(sizeof(int))};
}

}  // namespace judge_rows

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

// Whether one kernel reads the rows: maps of one channel, and windows of no layout but a grid's.
bool BatchJudge::reads_in_a_kernel(const Explanation& there) const {
  const std::int64_t n = schema_.layout.features();
  return there.maps.numel() == there.maps.size(0) * n && n <= judge_rows::kMostCounted && there.maps.numel() > 0 &&
         (share_.w == 0 || share_.of == ShareOf::kPerturbed || !neighbors_.defined()) &&
         there.logits.scalar_type() == there.maps.scalar_type() && judge_rows::kernel().runs_on(there.maps);
}

at::Tensor BatchJudge::read_in_a_kernel(const Explanation& there, const at::Tensor& owners) const {
  const at::Tensor maps = there.maps.detach().contiguous(), logits = there.logits.detach().contiguous();
  const std::int64_t rows = maps.size(0), n = schema_.layout.features();
  at::Tensor result = at::empty({2, rows}, maps.options().dtype(at::kDouble));
  AT_DISPATCH_FLOATING_TYPES(maps.scalar_type(), "judge_rows", [&] {
    const judge_rows::Size size = judge_rows::size_for(maps, n);
    const judge_rows::JudgeArguments<scalar_t> arguments{.maps = maps.const_data_ptr<scalar_t>(),
                                                         .logits = logits.const_data_ptr<scalar_t>(),
                                                         .owners = owners.const_data_ptr<std::int64_t>(),
                                                         .predictions = classes_.const_data_ptr<std::int64_t>(),
                                                         .top = top_.const_data_ptr<float>(),
                                                         .compared = compared_.const_data_ptr<float>(),
                                                         .values = result.mutable_data_ptr<double>(),
                                                         .flags = result.mutable_data_ptr<double>() + rows,
                                                         .rows = rows,
                                                         .n = static_cast<int>(n),
                                                         .classes = static_cast<int>(logits.size(1)),
                                                         .k = static_cast<int>(share_.k),
                                                         .lanes = size.lanes,
                                                         .per_block = size.per_block,
                                                         .window = share_.w == 0                      ? judge_rows::kNoWindow
                                                                   : share_.of == ShareOf::kPerturbed ? judge_rows::kCleanWindow
                                                                                                      : judge_rows::kMovedWindow,
                                                         .height = static_cast<int>(schema_.layout.height),
                                                         .width = static_cast<int>(schema_.layout.width),
                                                         .radius = static_cast<int>(share_.w),
                                                         .margin = kMargin,
                                                         .logit_rounding = kLogitRounding};
    judge_rows::kernel().run(maps, arguments, (rows + size.per_block - 1) / size.per_block, size.shared);
  });
  return result;
}

at::Tensor BatchJudge::read(const Explanation& there, const at::Tensor& owners) const {
  const at::NoGradGuard no_graph;
  if (reads_in_a_kernel(there)) return read_in_a_kernel(there, owners);
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

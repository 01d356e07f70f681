#include "rank_pairs.h"

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "top_rows.h"

namespace holdfast::train {
namespace {

// `inside` at the k largest of each row of magnitudes [B, features], `outside` elsewhere.
at::Tensor marked(const at::Tensor& magnitudes, std::int64_t k, double inside, double outside) {
  if (!magnitudes.is_cpu()) {
    at::Tensor marks = at::full_like(magnitudes, outside);
    return marks.scatter_(1, std::get<1>(magnitudes.topk(k, 1, true, /*sorted=*/false)), inside);
  }
  const at::Tensor rows = magnitudes.contiguous();
  at::Tensor marks = at::empty_like(rows);
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "marked", [&] {
    top_rows::mark<scalar_t>({rows.size(0), rows.size(1)}, k, rows.const_data_ptr<scalar_t>(), static_cast<scalar_t>(inside),
                             static_cast<scalar_t>(outside), marks.data_ptr<scalar_t>());
  });
  return marks;
}

}  // namespace

std::vector<OptionSpec> RankPairs::options() {
  return {{"top_k", 8, at_least(1), "features that should stay on top"},
          {"pairs", "all", one_of({"all", "next"}), "gaps to all other features, or of the pairs around rank top_k"},
          {"count", 0, at_least(0), "pairs around rank top_k with pairs=next; 0: top_k of them"}};
}

RankPairs::RankPairs(const Options& options)
    : top_k_(options.integer("top_k")),
      count_(options.integer("count") > 0 ? options.integer("count") : top_k_),
      all_(options.word("pairs") == "all") {
  check_count();
}

RankPairs::RankPairs(std::int64_t top_k, std::int64_t count) : top_k_(top_k), count_(count), all_(false) {
  check_count();
}

void RankPairs::check_count() const {
  if (count_ > top_k_) usage_error("count={} pairs around rank top_k={}: at most top_k are there", count_, top_k_);
}

void RankPairs::check(const Layout& layout, const std::string& objective) const {
  const std::int64_t needed = top_k_ + (all_ ? 1 : count_);
  if (layout.features() < needed) {
    usage_error("{}: its pairs reach rank {}, but a sample has {} features; choose a lower top_k", objective, needed,
                layout.features());
  }
}

RankPairs::Positions RankPairs::around_the_threshold(const at::Tensor& magnitudes) const {
  const at::Tensor order = std::get<1>(magnitudes.topk(top_k_ + count_, 1));
  // The pair next to the threshold comes first.
  return {order.slice(1, top_k_ - count_, top_k_).flip(1), order.slice(1, top_k_, top_k_ + count_)};
}

at::Tensor RankPairs::cotangent(const at::Tensor& gradient, const Layout& layout) const {
  const at::Tensor plain = gradient.detach(), magnitudes = folded(plain, layout);
  at::Tensor weights;
  if (all_) {
    const double n = static_cast<double>(magnitudes.size(1)), k = static_cast<double>(top_k_);
    weights = marked(magnitudes, top_k_, 1 / k, -1 / (n - k));
  } else {
    const Positions positions = around_the_threshold(magnitudes);
    weights = at::zeros_like(magnitudes);
    weights.scatter_(1, positions.upper, 1.0 / static_cast<double>(count_));
    weights.scatter_(1, positions.lower, -1.0 / static_cast<double>(count_));
  }
  return spread(weights, layout).view_as(plain) * plain.sign();
}

at::Tensor RankPairs::differences(const at::Tensor& gradient, const Layout& layout) const {
  const at::Tensor plain = gradient.detach();
  const Positions positions = around_the_threshold(folded(plain, layout));
  at::Tensor pairs = at::zeros({plain.size(0), count_, layout.features()}, plain.options());
  pairs.scatter_(2, positions.upper.unsqueeze(2), 1).scatter_(2, positions.lower.unsqueeze(2), -1);
  std::vector<std::int64_t> shape = plain.sizes().vec();
  shape.insert(shape.begin() + 1, count_);
  return spread(pairs, layout).reshape(shape) * plain.sign().unsqueeze(1);
}

at::Tensor RankPairs::mean_gap(const at::Tensor& gradient, const Layout& layout) const {
  return (gradient * cotangent(gradient, layout)).flatten(1).sum(1);
}

at::Tensor folded(const at::Tensor& gradient, const Layout& layout) {
  const at::Tensor magnitudes = gradient.abs();
  if (layout.inputs() == layout.features()) return magnitudes.flatten(1);
  return magnitudes.reshape({gradient.size(0), layout.sides, layout.channels, layout.side_features()}).sum(2).flatten(1);
}

at::Tensor spread(const at::Tensor& features, const Layout& layout) {
  if (layout.inputs() == layout.features()) return features;
  std::vector<std::int64_t> shape = features.sizes().vec();
  shape.pop_back();
  shape.insert(shape.end(), {layout.sides, 1, layout.side_features()});
  std::vector<std::int64_t> wide = shape;
  wide[wide.size() - 2] = layout.channels;
  return features.reshape(shape).expand(wide).flatten(-3);
}

}  // namespace holdfast::train

#include "contrast_descent.h"

#include <algorithm>
#include <limits>

#include "feature_descent.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/diverse.h"
#include "holdfast/metric/neighborhood.h"
#include "slopes.h"
#include "window_maximum.h"

namespace holdfast::attack::gauntlet {
namespace {

class ContrastDescent final : public FeatureDescent {
 public:
  // `top` and `near` [rows, features]: S and N_w(S). `weights`, undefined or of that shape, multiply the features.
  ContrastDescent(const Schema& schema, Aim aim, std::int64_t k, at::Tensor top, at::Tensor near, at::Tensor weights)
      : FeatureDescent(schema.layout),
        schema_(schema),
        aim_(aim),
        k_(k),
        maximum_(schema, aim.at == Aim::At::kNearTop ? aim.radius : 0),
        top_(std::move(top)),
        near_(std::move(near)),
        weights_(std::move(weights)) {}

 private:
  at::Tensor slope(const at::Tensor& values) override {
    const at::Tensor a = weights_.defined() ? values * weights_ : values;
    const at::Tensor slope = logarithm_slope(inside(a)) - logarithm_slope(outside(a));
    return weights_.defined() ? slope * weights_ : slope;
  }

  bool has_rows() const override {
    const bool plain = aim_.at == Aim::At::kTop && !aim_.diversity && top_.scalar_type() == at::kFloat;
    return plain && top_.is_contiguous() && near_.is_contiguous() && (!weights_.defined() || weights_.is_contiguous());
  }
  void slope_of_row(std::int64_t row, std::span<const float> values, float* slope) override {
    const std::int64_t begin = row * top_.size(1);
    const float* weights = weights_.defined() ? weights_.const_data_ptr<float>() + begin : nullptr;
    slopes::contrast(values, k_, top_.const_data_ptr<float>() + begin, near_.const_data_ptr<float>() + begin, weights, scratch_,
                     slope);
  }

  std::vector<at::Tensor*> state() override { return {&top_, &near_, &weights_}; }

  // A sum of some of the features' values, each as often as it is counted.
  struct Sum {
    at::Tensor counts, value;
  };
  static at::Tensor logarithm_slope(const Sum& sum) {
    return sum.counts / sum.value.clamp_min(std::numeric_limits<float>::min());
  }

  Sum inside(const at::Tensor& a) const {
    if (aim_.at == Aim::At::kTopNear) return highest(a * near_, near_);
    const auto [value, position] = maximum_(a);
    const at::Tensor counts = at::zeros_like(a).scatter_add_(1, position, top_);
    return {counts, (value * top_).sum(1, /*keepdim=*/true)};
  }

  Sum outside(const at::Tensor& a) const {
    const at::Tensor allowed = 1 - near_;
    if (!aim_.diversity) return highest(a * allowed, allowed);
    const at::Tensor chosen = diverse(a * allowed) * allowed;
    return {chosen, (a * chosen).sum(1, /*keepdim=*/true)};
  }

  // The k highest of the allowed features.
  Sum highest(const at::Tensor& a, const at::Tensor& allowed) const {
    const auto [value, position] = a.topk(std::min(k_, a.size(1)), 1);
    const at::Tensor counts = at::zeros_like(a).scatter_(1, position, 1.0) * allowed;
    return {counts, value.sum(1, /*keepdim=*/true)};
  }

  at::Tensor diverse(const at::Tensor& a) const {
    const Neighborhood apart(schema_, *aim_.diversity);
    const at::Tensor values = a.cpu().to(at::kDouble).contiguous();
    at::Tensor chosen = at::zeros_like(values);
    FeatureSet set;
    for (std::int64_t row = 0; row < values.size(0); ++row) {
      const std::span<const double> map(values.data_ptr<double>() + row * values.size(1),
                                        static_cast<std::size_t>(values.size(1)));
      diverse_top_k(map, k_, apart, set);
      for (const std::int64_t i : set.members()) chosen.data_ptr<double>()[row * values.size(1) + i] = 1;
    }
    return chosen.to(a.options());
  }

  const Schema& schema_;
  const Aim aim_;
  const std::int64_t k_;
  const WindowMaximum maximum_;
  at::Tensor top_, near_, weights_;
  std::vector<float> scratch_;
};

}  // namespace

std::unique_ptr<Descent> contrast_descent(const AttackState& state, Aim aim, const Ledger::Owners& owners, at::Tensor weights) {
  if (aim.at == Aim::At::kOrder || aim.at == Aim::At::kValues) aim = {.at = Aim::At::kTop};
  const bool plain = aim.at == Aim::At::kTop && !aim.diversity;
  return std::make_unique<ContrastDescent>(state.task.map_schema(), aim, state.k, AttackState::rows_of(state.top, owners),
                                           AttackState::rows_of(plain ? state.top : state.near, owners), std::move(weights));
}

}  // namespace holdfast::attack::gauntlet

#include "holdfast/attack/threat.h"

#include <algorithm>
#include <cmath>

#include "bounds.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast {

ThreatModel ThreatModel::make(Norm norm, double epsilon, std::optional<std::pair<double, double>> box, const Schema& schema) {
  if (!std::isfinite(epsilon) || epsilon < 0) usage_error("epsilon is {}; it must be a finite number >= 0", epsilon);
  if (box && !(box->first < box->second))
    usage_error("box {},{}: the lower bound must be below the upper one", box->first, box->second);
  ThreatModel threat{.norm = norm, .epsilon = epsilon, .box = box};
  const auto is_frozen = [](const Feature& feature) { return feature.frozen; };
  if (std::any_of(schema.features.begin(), schema.features.end(), is_frozen)) {
    threat.frozen = at::empty({static_cast<std::int64_t>(schema.features.size())}, at::kBool);
    std::transform(schema.features.begin(), schema.features.end(), threat.frozen.data_ptr<bool>(), is_frozen);
    threat.frozen = threat.frozen.view(schema.layout.sample_shape());
  }
  return threat;
}

at::Tensor ThreatModel::project(const at::Tensor& candidate, const at::Tensor& clean) const {
  HOLDFAST_CHECK(candidate.sizes() == clean.sizes() && candidate.scalar_type() == clean.scalar_type());
  const at::Tensor origin = clean.detach().cpu().contiguous();
  at::Tensor points = candidate.detach().cpu().contiguous().clone();
  const rows::Shape shape{points.size(0), points.numel() / std::max<std::int64_t>(1, points.size(0))};
  const HeldBounds bounds(*this);
  AT_DISPATCH_FLOATING_TYPES(points.scalar_type(), "project", [&] {
    rows::project<scalar_t>(*bounds, shape, origin.data_ptr<scalar_t>(), points.data_ptr<scalar_t>());
  });
  return points.to(candidate.device());
}

at::Tensor ThreatModel::distance(const at::Tensor& candidate, const at::Tensor& clean) const {
  const at::Tensor difference = (candidate.detach().to(at::kDouble) - clean.detach().to(at::kDouble)).flatten(1);
  switch (norm) {
    case Norm::kL2:
      return difference.norm(2, 1);
    case Norm::kL1:
      return difference.abs().sum(1);
    case Norm::kLinf:
      return difference.abs().amax(1);
  }
  return {};
}

Json to_json(const ThreatModel& threat) {
  Json json{{"norm", to_string(threat.norm)}, {"epsilon", threat.epsilon}, {"box", nullptr}};
  if (threat.box) json["box"] = {threat.box->first, threat.box->second};
  if (threat.frozen.defined()) json["frozen"] = threat.frozen.sum().item<std::int64_t>();
  return json;
}

}  // namespace holdfast

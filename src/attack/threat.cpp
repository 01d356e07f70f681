#include "holdfast/attack/threat.h"

#include <cmath>

#include <ATen/ATen.h>

#include "holdfast/core/error.h"
#include "holdfast/core/method.h"
#include "rows.h"

namespace holdfast {

Norm parse_norm(const std::string& text) {
  if (text == "l2") return Norm::kL2;
  if (text == "linf") return Norm::kLinf;
  if (text == "l1") return Norm::kL1;
  usage_error("unknown norm '{}'{}", text, suggestion(text, {"l2", "linf", "l1"}));
}

std::string to_string(Norm norm) {
  switch (norm) {
    case Norm::kL2:
      return "l2";
    case Norm::kLinf:
      return "linf";
    case Norm::kL1:
      return "l1";
  }
  return {};
}

ThreatModel ThreatModel::make(Norm norm, double epsilon, std::optional<std::pair<double, double>> box, const Schema& schema) {
  if (!std::isfinite(epsilon) || epsilon < 0) usage_error("epsilon is {}; it must be a finite number >= 0", epsilon);
  if (box && !(box->first < box->second)) usage_error("box {},{}: the lower bound must be below the upper one", box->first, box->second);
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
  const at::Tensor held = frozen.defined() ? frozen.cpu().contiguous() : frozen;
  if (points.numel() == 0) return points.to(candidate.device());
  const std::int64_t n = points.numel() / points.size(0);
  HOLDFAST_CHECK(!held.defined() || held.numel() == n);
  AT_DISPATCH_FLOATING_TYPES(points.scalar_type(), "project", [&] {
    for (std::int64_t row = 0; row < points.size(0); ++row) {
      rows::project(*this, held.defined() ? held.data_ptr<bool>() : nullptr, points.data_ptr<scalar_t>() + row * n,
                    origin.data_ptr<scalar_t>() + row * n, n);
    }
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

#include "holdfast/attack/threat.h"

#include <cmath>

#include "bounds.h"
#include "holdfast/core/error.h"
#include "holdfast/core/method.h"
#include "holdfast/core/torch.h"
#include "valid.h"

namespace holdfast {
namespace {

// Elements that the schema freezes, and those of a side that stays; undefined when there are none.
at::Tensor frozen_elements(const Schema& schema, Sides sides) {
  at::Tensor frozen = at::zeros({schema.layout.inputs()}, at::kBool);
  for (std::size_t i = 0; i < schema.features.size(); ++i) frozen.data_ptr<bool>()[i] = schema.features[i].frozen;
  frozen = frozen.view(schema.layout.sample_shape());
  if (sides != Sides::kBoth) frozen.select(0, sides == Sides::kFirst ? 1 : 0).fill_(true);
  return frozen.any().item<bool>() ? frozen : at::Tensor();
}

ValidRows valid_rows(const Schema& schema, const std::optional<std::pair<double, double>>& box) {
  if (schema.features.empty()) {
    usage_error("valid rows need a schema with features: their ranges, steps and one-hot groups (--schema FILE)");
  }
  if (box && !schema.groups.empty() && (box->first > 0 || box->second < 1)) {
    usage_error("box {},{}: valid rows have 0 and 1 in their one-hot groups; the box must hold both", box->first, box->second);
  }
  ValidRows rows;
  for (const Group& group : schema.groups) rows.groups.push_back(group.columns);
  for (const Feature& feature : schema.features) {
    rows.low.push_back(feature.low);
    rows.high.push_back(feature.high);
    rows.step.push_back(feature.step);
  }
  return rows;
}

bool keeps_weights_non_negative(const Schema& schema, bool negative_weights) {
  if (schema.layout.kind != Layout::Kind::kGraph || negative_weights) return false;
  return !schema.range || schema.range->first >= 0;
}

// f(rows of the clean batch, rows of the result): the result starts as a copy of `from`.
template <class Work>
at::Tensor row_by_row(const at::Tensor& from, const at::Tensor& clean, const Work& work) {
  HOLDFAST_CHECK(from.sizes() == clean.sizes() && from.scalar_type() == clean.scalar_type());
  const at::Tensor origin = clean.detach().cpu().contiguous();
  at::Tensor points = from.detach().cpu().contiguous().clone();
  AT_DISPATCH_FLOATING_TYPES(points.scalar_type(), "threat",
                             [&] { work(rows_of(points), origin.data_ptr<scalar_t>(), points.data_ptr<scalar_t>()); });
  return points.to(from.device());
}

}  // namespace

Sides parse_sides(const std::string& text) {
  if (text == "both") return Sides::kBoth;
  if (text == "first") return Sides::kFirst;
  if (text == "second") return Sides::kSecond;
  usage_error("unknown sides '{}'{}", text, suggestion(text, {"both", "first", "second"}));
}

std::string to_string(Sides sides) {
  return sides == Sides::kBoth ? "both" : sides == Sides::kFirst ? "first" : "second";
}

ThreatModel ThreatModel::make(Norm norm, double epsilon, std::optional<std::pair<double, double>> box, const Schema& schema,
                              const ThreatOptions& options) {
  if (!std::isfinite(epsilon) || epsilon < 0) usage_error("epsilon is {}; it must be a finite number >= 0", epsilon);
  if (box && !(box->first < box->second))
    usage_error("box {},{}: the lower bound must be below the upper one", box->first, box->second);
  if (options.sides != Sides::kBoth && schema.layout.sides != 2)
    usage_error("sides={}: the samples are no pairs", to_string(options.sides));
  if (options.negative_weights && schema.layout.kind != Layout::Kind::kGraph)
    usage_error("negative weights: the samples are no graphs");
  if (options.tolerance && !(*options.tolerance > 0 && *options.tolerance <= 1))
    usage_error("tolerance is {}; it must be above 0 and at most 1", *options.tolerance);
  ThreatModel threat{.norm = norm, .epsilon = epsilon, .box = box, .frozen = frozen_elements(schema, options.sides)};
  if (options.valid) threat.valid = valid_rows(schema, box);
  threat.non_negative = keeps_weights_non_negative(schema, options.negative_weights);
  threat.sides = options.sides;
  threat.tolerance = options.tolerance;
  return threat;
}

at::Tensor ThreatModel::project(const at::Tensor& candidate, const at::Tensor& clean) const {
  const HeldBounds bounds(*this);
  return row_by_row(candidate, clean,
                    [&](rows::Shape shape, const auto* origin, auto* points) { rows::project(*bounds, shape, origin, points); });
}

at::Tensor ThreatModel::admit(const at::Tensor& projected, const at::Tensor& clean) const {
  if (!valid) return projected;
  const HeldBounds bounds(*this);
  return row_by_row(projected, clean, [&](rows::Shape shape, const auto* origin, auto* points) {
    rows::round_to_valid(*bounds, shape, origin, points);
  });
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
  if (threat.valid) json["valid"] = true;
  if (threat.non_negative) json["non_negative"] = true;
  if (threat.sides != Sides::kBoth) json["sides"] = to_string(threat.sides);
  if (threat.tolerance) json["tolerance"] = *threat.tolerance;
  return json;
}

}  // namespace holdfast

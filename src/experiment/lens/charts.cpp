#include "charts.h"

#include <cmath>

namespace holdfast::lens {

Json chart_point(const Json& words, const Value& value) {
  Json point = words;
  const auto number = [](double v) { return std::isnan(v) ? Json() : Json(v); };
  point["value"] = number(value.value);
  point["low"] = number(value.low.value_or(value.value));
  point["high"] = number(value.high.value_or(value.value));
  return point;
}

Json chart(const std::vector<Json>& points, const Chart& form) {
  const Json x{{"field", form.x}, {"type", form.lines ? "quantitative" : "nominal"}, {"sort", nullptr}};
  const Json colour{{"field", form.colour}, {"type", "nominal"}, {"sort", nullptr}};
  const Json scale{{"domain", {0, 1}}};
  const auto shared = [&](const Json& y) {
    Json encoding{{"x", x}, {"y", y}, {"color", colour}};
    if (!form.lines) encoding["xOffset"] = {{"field", form.colour}, {"sort", nullptr}};
    return encoding;
  };
  Json rule = shared({{"field", "low"}, {"type", "quantitative"}});
  rule["y2"] = {{"field", "high"}};
  const Json mark = form.lines ? Json{{"type", "line"}, {"point", true}} : Json{{"type", "bar"}};
  Json layers = Json::array();
  layers.push_back(
      {{"mark", mark},
       {"encoding", shared({{"field", "value"}, {"type", "quantitative"}, {"title", form.y_title}, {"scale", scale}})}});
  layers.push_back({{"mark", {{"type", "rule"}}}, {"encoding", rule}});
  if (!form.lines) layers[1]["encoding"]["color"] = {{"value", "black"}};
  Json spec{{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"}, {"data", {{"values", points}}}};
  if (form.column.empty()) {
    spec["layer"] = layers;
  } else {
    spec["facet"] = {{"column", {{"field", form.column}, {"type", "nominal"}, {"sort", nullptr}}}};
    spec["spec"] = {{"layer", layers}};
  }
  return spec;
}

}  // namespace holdfast::lens

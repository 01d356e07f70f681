// Vega-Lite specifications with their data inside, for the report to draw.
#pragma once

#include <string>
#include <vector>

#include "holdfast/experiment/reproduce.h"

namespace holdfast::lens {

// A point of a chart: words by field name, and a number with its interval under "value", "low" and "high".
Json chart_point(const Json& words, const Value& value);

struct Chart {
  std::string x, colour, column = {};  // fields; `column` cuts the chart into several
  std::string y_title;
  bool lines = false;  // x is a number: points joined by lines; otherwise bars
};
Json chart(const std::vector<Json>& points, const Chart& form);

}  // namespace holdfast::lens

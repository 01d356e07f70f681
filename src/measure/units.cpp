#include "units.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "holdfast/core/error.h"

namespace holdfast::measure {

Units::Units(const Schema& schema, bool whole_groups) : layout_(schema.layout) {
  constexpr std::int64_t kNone = -1;
  if (!layout_.is_plain()) feature_of_element_ = layout_.element_features();
  unit_of_feature_.assign(static_cast<std::size_t>(layout_.features()), kNone);
  std::vector<std::int64_t> first(unit_of_feature_.size());  // of the feature's group: units are in the order of these
  std::iota(first.begin(), first.end(), 0);
  if (whole_groups) {
    for (const Group& group : schema.groups) {
      const std::int64_t least = *std::min_element(group.columns.begin(), group.columns.end());
      for (const std::int64_t column : group.columns) first[static_cast<std::size_t>(column)] = least;
    }
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto leader = static_cast<std::size_t>(first[i]);
    unit_of_feature_[i] = leader == i ? count_++ : unit_of_feature_[leader];
  }
}

std::vector<double> Units::importance(std::span<const double> folded) const {
  HOLDFAST_CHECK(folded.size() == unit_of_feature_.size());
  std::vector<double> sums(static_cast<std::size_t>(count_), 0.0);
  for (std::size_t i = 0; i < folded.size(); ++i) sums[static_cast<std::size_t>(unit_of_feature_[i])] += folded[i];
  return sums;
}

std::vector<std::int64_t> Units::ranked(std::span<const double> folded) const {
  const std::vector<double> value = importance(folded);
  std::vector<std::int64_t> order(value.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return value[static_cast<std::size_t>(a)] > value[static_cast<std::size_t>(b)];
  });
  return order;
}

bool Units::ranks(std::span<const double> folded) const {
  const std::vector<double> value = importance(folded);
  if (!std::all_of(value.begin(), value.end(), [](double v) { return std::isfinite(v); })) return false;
  return count_ == 1 || std::any_of(value.begin(), value.end(), [&](double v) { return v != value[0]; });
}

void Units::places(std::span<const std::int64_t> order, std::span<std::int32_t> place_of_element) const {
  HOLDFAST_CHECK(static_cast<std::int64_t>(place_of_element.size()) == layout_.inputs());
  std::vector<std::int32_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  for (std::size_t e = 0; e < place_of_element.size(); ++e) {
    const std::size_t unit = unit_of_element(e);
    place_of_element[e] = unit == kNoUnit ? -1 : place[unit];
  }
}

std::vector<std::uint8_t> Units::elements_of(std::span<const std::int64_t> features) const {
  std::vector<std::uint8_t> chosen(static_cast<std::size_t>(count_), 0);
  for (const std::int64_t feature : features)
    chosen[static_cast<std::size_t>(unit_of_feature_.at(static_cast<std::size_t>(feature)))] = 1;
  std::vector<std::uint8_t> elements(static_cast<std::size_t>(layout_.inputs()));
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const std::size_t unit = unit_of_element(e);
    elements[e] = unit == kNoUnit ? 0 : chosen[unit];
  }
  return elements;
}

std::size_t Units::unit_of_element(std::size_t element) const {
  if (!feature_of_element_.empty()) {
    const std::int64_t feature = feature_of_element_[element];
    return feature < 0 ? kNoUnit : static_cast<std::size_t>(unit_of_feature_[static_cast<std::size_t>(feature)]);
  }
  const auto side = static_cast<std::size_t>(layout_.side_features());
  const auto channels = static_cast<std::size_t>(layout_.inputs()) / unit_of_feature_.size();
  const std::size_t feature = element / (side * channels) * side + element % side;  // channels of a side lie one after the other
  return static_cast<std::size_t>(unit_of_feature_[feature]);
}

}  // namespace holdfast::measure

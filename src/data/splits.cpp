#include "holdfast/data/splits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"

namespace holdfast::data {
namespace {

using Positions = std::vector<std::int64_t>;

// The positions of each class, each in random order. A class draws from a stream of its own: what becomes of it does
// not depend on the other classes.
std::map<std::int64_t, Positions> shuffled_classes(std::span<const std::int64_t> labels, std::uint64_t seed) {
  std::map<std::int64_t, Positions> classes;
  for (std::size_t i = 0; i < labels.size(); ++i) classes[labels[i]].push_back(static_cast<std::int64_t>(i));
  for (auto& [label, members] : classes) {
    RandomStream stream(seed, "data.split", static_cast<std::uint64_t>(label));
    Positions shuffled;
    for (const std::int64_t place : stream.permutation(static_cast<std::int64_t>(members.size()))) {
      shuffled.push_back(members[static_cast<std::size_t>(place)]);
    }
    members = std::move(shuffled);
  }
  return classes;
}

// All positions in an order of which every beginning holds each class in proportion: member r of a class of m stands at
// (r + 1/2) / m of the way.
Positions proportional_order(std::span<const std::int64_t> labels, std::uint64_t seed) {
  std::vector<std::pair<double, std::int64_t>> places;
  for (const auto& [label, members] : shuffled_classes(labels, seed)) {
    for (std::size_t r = 0; r < members.size(); ++r) {
      places.emplace_back((static_cast<double>(r) + 0.5) / static_cast<double>(members.size()), members[r]);
    }
  }
  std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Positions order;
  for (const auto& place : places) order.push_back(place.second);
  return order;
}

Split cut(const Positions& order, const SplitShares& shares) {
  if (shares.validation < 0 || shares.test < 0 || shares.validation + shares.test > 1) {
    usage_error("shares for validation {} and test {} must be 0 or more and at most 1 together", shares.validation, shares.test);
  }
  const auto count = static_cast<double>(order.size());
  const auto test = order.begin() + std::lround(count * shares.test);
  const auto validation = test + std::min<std::ptrdiff_t>(std::lround(count * shares.validation), order.end() - test);
  Split split{.train = {validation, order.end()}, .validation = {test, validation}, .test = {order.begin(), test}};
  for (Positions* part : {&split.train, &split.validation, &split.test}) std::sort(part->begin(), part->end());
  return split;
}

Positions positions_from(std::int64_t first, std::int64_t count) {
  Positions positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), first);
  return positions;
}

}  // namespace

Split stratified_split(std::span<const std::int64_t> labels, std::uint64_t seed, const SplitShares& shares) {
  return cut(proportional_order(labels, seed), shares);
}

Split official_split(std::span<const std::int64_t> labels, std::int64_t train_count, std::uint64_t seed, double validation) {
  const auto count = static_cast<std::int64_t>(labels.size());
  HOLDFAST_CHECK(0 <= train_count && train_count <= count);
  Split split =
      stratified_split(labels.first(static_cast<std::size_t>(train_count)), seed, {.validation = validation, .test = 0});
  split.test = positions_from(train_count, count - train_count);
  return split;
}

Split official_split_by_group(std::span<const std::int64_t> groups, std::span<const std::int64_t> labels, std::int64_t test_count,
                              std::uint64_t seed, double validation) {
  HOLDFAST_CHECK(labels.size() >= groups.size());
  std::map<std::int64_t, Positions> members;
  for (std::size_t i = 0; i < groups.size(); ++i) members[groups[i]].push_back(static_cast<std::int64_t>(i));
  std::vector<const Positions*> group_members;
  Positions group_labels;
  for (const auto& [group, positions] : members) {
    group_members.push_back(&positions);
    group_labels.push_back(labels[static_cast<std::size_t>(positions.front())]);
  }

  const auto expand = [&](const Positions& chosen) {
    Positions positions;
    for (const std::int64_t group : chosen) {
      const Positions& some = *group_members[static_cast<std::size_t>(group)];
      positions.insert(positions.end(), some.begin(), some.end());
    }
    std::sort(positions.begin(), positions.end());
    return positions;
  };
  const Split by_group = stratified_split(group_labels, seed, {.validation = validation, .test = 0});
  return {.train = expand(by_group.train),
          .validation = expand(by_group.validation),
          .test = positions_from(static_cast<std::int64_t>(groups.size()), test_count)};
}

Split fold_split(std::span<const std::int64_t> labels, std::uint64_t seed, std::int64_t fold) {
  if (fold < 0 || fold >= kFolds) usage_error("fold {} does not exist: there are {}, 0 to {}", fold, kFolds, kFolds - 1);
  // Dealing the classes out one after the other leaves every fold with its share of each, to within one sample.
  Split split;
  std::int64_t dealt = 0;
  for (const auto& [label, members] : shuffled_classes(labels, seed)) {
    for (const std::int64_t position : members) {
      const std::int64_t distance = (dealt++ - fold % kFolds + kFolds) % kFolds;
      (distance == 0 ? split.test : distance == 1 ? split.validation : split.train).push_back(position);
    }
  }
  for (Positions* part : {&split.train, &split.validation, &split.test}) std::sort(part->begin(), part->end());
  return split;
}

}  // namespace holdfast::data

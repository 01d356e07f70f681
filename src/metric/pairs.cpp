#include "pairs.h"

#include <algorithm>
#include <set>

namespace holdfast {
namespace {

std::int64_t pair_count(const std::vector<std::int64_t>& group) {
  const auto size = static_cast<std::int64_t>(group.size());
  return size * (size - 1);
}

// Pair number `index` of a group: each first member has size-1 partners, itself left out.
SamplePair pair_at(const std::vector<std::int64_t>& group, std::int64_t index) {
  const auto partners = static_cast<std::int64_t>(group.size()) - 1;
  const std::int64_t first = index / partners;
  const std::int64_t second = index % partners;
  return {group[static_cast<std::size_t>(first)], group[static_cast<std::size_t>(second < first ? second : second + 1)]};
}

}  // namespace

std::vector<SamplePair> pairs_within(const std::vector<std::vector<std::int64_t>>& groups, std::int64_t limit,
                                     RandomStream stream) {
  std::int64_t total = 0;
  for (const auto& group : groups) total += pair_count(group);
  const auto pair_number = [&](std::int64_t index) {
    auto group = groups.begin();
    for (; index >= pair_count(*group); ++group) index -= pair_count(*group);
    return pair_at(*group, index);
  };

  std::set<SamplePair> chosen;
  if (total <= limit) {
    for (std::int64_t index = 0; index < total; ++index) chosen.insert(pair_number(index));
  } else {
    while (static_cast<std::int64_t>(chosen.size()) < limit) {
      chosen.insert(pair_number(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(total)))));
    }
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace holdfast

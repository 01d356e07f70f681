#include "ranks.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "holdfast/core/log.h"

namespace holdfast::cli {
namespace {

constexpr std::array<std::string_view, 5> kShared{"attack", "audit", "measure", "reproduce", "train"};

}  // namespace

std::unique_ptr<Communicator> join_ranks(const std::string& command) {
  const RankPlace place = rank_place();
  if (!place.is_one_of_many()) return nullptr;
  if (std::find(kShared.begin(), kShared.end(), command) == kShared.end())
    usage_error("{} runs in one process, and {} were started; audit, attack, measure, reproduce and train share work between ranks", command,
                place.size);
  if (place.rank > 0) set_log_level(LogLevel::kError);
  return std::make_unique<Communicator>(place);
}

}  // namespace holdfast::cli

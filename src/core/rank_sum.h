// Sums over ranks by torch's own process groups.
#pragma once

#include <memory>

#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "holdfast/core/communicator.h"

namespace holdfast {

// `ranks` must outlive it. `store`: where the ranks tell each other how they can be reached.
std::unique_ptr<RankSum> make_rank_sum(Communicator& ranks, const c10::intrusive_ptr<c10d::Store>& store, c10::Device device);

}  // namespace holdfast

// What follows a layer of a chain of linear layers (linear_chain.h). Apart from it, because the chain's loops need no torch.
#pragma once

#include <cstdint>

namespace holdfast::model::chain {

enum class Bend : std::int64_t { kNone, kLeaky, kSoftplus };

}  // namespace holdfast::model::chain

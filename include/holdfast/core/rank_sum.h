// Sums over ranks: what several processes that train one network together need of each step.
#pragma once

#include <cstdint>

#include "holdfast/core/stages.h"

namespace at {
class Tensor;
}

namespace holdfast {

class RankSum {
 public:
  virtual ~RankSum() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Adds a tensor up over all ranks, in place. Every rank calls this in the same order, with tensors of one shape, type and kind
  // of device. All of them get the same bytes. Throws OtherRankFailed, kInterrupted, or kFailure when another rank is gone.
  virtual void add_up(at::Tensor& tensor) = 0;
};

// A rank's part of `rows` rows of a batch: as many for each rank as can be.
struct RankRows {
  std::int64_t first = 0, count = 0;
  // False where there are fewer rows than ranks. The rank then works on the first row, so that it takes part in every sum, and
  // what it finds is not added.
  bool counts = true;
};
RankRows rows_of_rank(std::int64_t rows, int rank, int size);

}  // namespace holdfast

// Claims of table 1 that its orderings decide: P@k under er and under mse, datasets in the same order.
#pragma once

#include <vector>

#include "orderings.h"

namespace holdfast::r2et {

// R1: er moves rankings more than mse, and more than half of the models keep 90 % under mse. The paper's 69 models: its methods
// on its datasets, R2ET with ReLU.
Verdict judge_mse(const std::vector<Ordering>& er, const std::vector<Ordering>& mse, std::uint64_t seed);
// R3: few features are those of tables, many those of images and graphs.
Verdict judge_hessian_term(const std::vector<Ordering>& er);
// R7's first half, read twice: AT's P@k is below Vanilla's on some datasets (two: one of seven may be chance), and it differs
// from seed to seed more than R2ET\H's.
Verdict judge_unstable(const std::vector<Ordering>& er, std::uint64_t seed);

}  // namespace holdfast::r2et

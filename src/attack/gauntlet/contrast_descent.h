// Importance near the clean top against the highest importance anywhere else.
//     minimise  log sum_{i in S} q_i  -  log sum_{j in O} a_j
// S is the clean top set, O the k highest features of the present map outside N_w(S), chosen anew at every step (a diverse
// set where the metric's are diverse), and q is what the metric sees of S:
//     top            q_i = a_i
//     near the top   q_i = the largest a within w of i: an S pixel counts as long as anything near it is important
//     top is near    the sum runs over the k highest features inside N_w(S) instead
// A ratio of the very sums that decide the metric. On MNIST (k = 100, w = 1) 120 steps of it reach a lower 1-LENS-precision than
// objectives in softplus of log maps do in 200, and than the share of the map inside N_w(S), which spends itself on features
// that are in no top k.
#pragma once

#include <memory>

#include "state.h"

namespace holdfast::attack::gauntlet {

// For rows of the state. `aim` is the metric's, or {kTop}; metrics of whole maps are attacked at their top. `weights`, undefined
// or [rows, features], multiply the features.
std::unique_ptr<Descent> contrast_descent(const AttackState& state, Aim aim, const Ledger::Owners& owners,
                                          at::Tensor weights = {});

}  // namespace holdfast::attack::gauntlet

// What the paper does not say about its trainings, and how near Vanilla comes to the paper's numbers with each choice of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../paper/run.h"

namespace holdfast::experiment::paper::r2et {

// Optimiser, batch size, width of the hidden layer and number of optimiser steps.
struct Regime {
  std::string optimizer;  // call
  std::string batch;      // a number, or "all": one batch of all training samples
  std::string width;
  std::int64_t steps = 0;

  bool operator==(const Regime&) const = default;
  std::string words() const;  // "adam, batch 512, width 32, 300 steps"
};

// Vanilla's networks on one table, with one regime.
struct VanillaOnTable {
  std::string dataset;
  Numbers kept;              // P@k
  double published;          // the paper's P@k
  double area = kUndefined;  // AUC on validation samples, mean over seeds
  bool works = true;         // the 95 % interval of every seed's AUC is above kLeastAuc

  double difference() const;  // of P@k from the paper's, as it is: above 0 where ours is higher
};

struct RegimeFit {
  Regime regime;
  std::vector<VanillaOnTable> tables;
  double lost = 0;  // AUC below the best of all regimes on the same table, on the table where that is most

  double distance() const;  // |difference|, mean over the tables
  bool works() const;
  bool keeps_auc() const { return lost <= kAucLoss; }
};

// Fills in `lost` and leaves out what does not work and what has not all tables. First come the regimes that keep the AUC, then
// the others; the nearest to the paper first in both.
std::vector<RegimeFit> ranked(std::vector<RegimeFit> fits);

// |difference| on a table with its interval: that of P@k, folded at 0.
Value distance(const VanillaOnTable& table, std::uint64_t seed);
// Is P@k of Vanilla within `near` of the paper's, on each table?
Finding judge_regime(const RegimeFit& nearest, double near, std::uint64_t seed);

}  // namespace holdfast::experiment::paper::r2et

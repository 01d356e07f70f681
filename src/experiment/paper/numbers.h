// Numbers of several trained networks before they become values of a table: differences, gains and shares of them. Chance and
// between levels are taken out by the one definition of metric/levels.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cells.h"
#include "holdfast/experiment/reproduce_statistics.h"

namespace holdfast::experiment::paper {

using BySeed = std::vector<std::vector<double>>;  // one list for each network (seed or fold), one number a sample

struct Numbers {
  BySeed values = {}, chance = {};                              // chance has the values' shape, or is empty
  std::vector<double> between = {};                             // one for each network, or empty
  std::vector<double> effective_sets = {}, own_advantage = {};  // one for each network, or empty
  double least = 0, perfect = 1;                                // of the metric
  std::vector<AttackedCell> cells = {};                         // that they come from, one for each network
  std::vector<MeasuredCell> measured = {};                      // those of a measure

  bool is_empty() const { return values.empty(); }
  std::vector<double> means() const;  // over the defined samples of each network
};
// One number for each network.
Numbers one_each(std::vector<double> numbers);
Numbers numbers_of(std::vector<AttackedCell> cells, const std::string& metric);

// (v - level) / (perfect - level) of every sample, by above_level of metric/levels.h.
Numbers adjusted(const Numbers& numbers);
Numbers specific(const Numbers& numbers);
// value - between of every sample.
Numbers lift(const Numbers& numbers);
// The same, but 0 and not undefined where all samples have one explanation (a between level of 1): such a network explains
// nothing about an input. Orders of networks count it so.
Numbers specific_or_zero(const Numbers& numbers);
// Sample by sample; levels are left away.
Numbers minus(const Numbers& first, const Numbers& second);
// Sample by sample the lowest of several attacks.
Numbers lowest(const std::vector<Numbers>& attacks);

// Mean over samples, then over networks, with its interval kept inside what the metric can be, and its levels.
Value value_of(const Numbers& numbers, std::uint64_t seed);
// The same without a range: Student's interval may reach past what is possible.
Value plain_value(const Numbers& numbers, std::uint64_t seed);
// first - second, paired by network, or by sample where there is one network.
Value difference(const Numbers& first, const Numbers& second, std::uint64_t seed);
// The same with the interval kept inside what is possible.
Value bounded_difference(const Numbers& first, const Numbers& second, std::uint64_t seed);
// The mean of `over` divided by that of `under`, with Student's interval over networks; one network has none.
Value ratio(const Numbers& over, const Numbers& under);
// Share of the samples whose value is below a limit, over networks; one network: with its exact interval over samples.
Value share_below(const Numbers& numbers, double limit);
// Cells of the same samples: averaged over the cells for each sample first, because a sample's cells are not independent, then
// the mean over samples with its bootstrap interval.
Value mean_of_samples(const std::vector<std::vector<double>>& by_cell, std::uint64_t seed);
Value inside(Value value, double low, double high);
// first - second of shares, one for each network.
Value share_difference(const std::vector<double>& first, const std::vector<double>& second);
// first - second of values that have nothing in common: the ends' distances add as squares.
Value independent_difference(const Value& first, const Value& second);

}  // namespace holdfast::experiment::paper

// The form of `holdfast measure` that compares two sets of maps that are given.
#pragma once

#include <string>
#include <vector>

#include "common.h"

namespace holdfast::cli {

struct MeasureMapsFlags {
  std::string original, perturbed, labels;
  std::vector<std::string> metrics;

  void add_to(CLI::App& command);
};

// `out`: a CSV with a row for each sample and metric; empty: none.
void measure_maps(const MeasureMapsFlags& flags, const std::string& schema, const std::string& out, const CommonFlags& common,
                  bool json);

}  // namespace holdfast::cli

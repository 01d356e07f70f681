// The form of `holdfast measure` that looks at a model around samples instead of comparing maps that are given.
#pragma once

#include <string>
#include <vector>

#include "common.h"

namespace holdfast::cli {

struct MeasureModelFlags {
  std::string explainer = "saliency", epsilon, endpoints, out, compare;
  std::vector<std::string> measures;

  void add_to(CLI::App& command);
};

void measure_model(const MeasureModelFlags& flags, const SubjectFlags& subject, const CommonFlags& common, bool json,
                   Communicator* ranks);

}  // namespace holdfast::cli

// The calls that a conformance suite runs. Methods are found through the registry, so that a new one needs no line in a suite.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/registry.h"

namespace holdfast::testing_support {

// "top_k" of "top_k(k=4)".
inline std::string method_of(const std::string& call) {
  return call.substr(0, call.find('('));
}

// Gives a call of every registered method that none of `variants` calls. Options are the defaults, but for those of `small`
// (name and value) that the method has: a suite's samples are small, and its time is short.
template <class Product>
std::vector<std::string> calls_beside(const std::vector<std::string>& variants, const Registry<Product>& registry,
                                      const std::vector<std::pair<std::string, std::string>>& small) {
  std::vector<std::string> calls;
  for (const MethodInfo* info : registry.infos()) {
    if (std::ranges::any_of(variants, [&](const std::string& call) { return method_of(call) == info->name; })) continue;
    std::string given;
    for (const auto& [name, value] : small) {
      const bool has = std::ranges::any_of(info->options, [&](const OptionSpec& option) { return option.name == name; });
      if (has) given += (given.empty() ? "" : ",") + name + "=" + value;
    }
    calls.push_back(given.empty() ? info->name : info->name + "(" + given + ")");
  }
  return calls;
}

}  // namespace holdfast::testing_support

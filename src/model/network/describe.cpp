#include "describe.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"

namespace holdfast::model {

std::string describe_operations(const Network& network) {
  std::vector<std::pair<std::string, int>> counts;
  for (const Node& node : network.nodes()) {
    const std::string kind = operation_name(node.operation);
    if (kind == "input") continue;
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& entry) { return entry.first == kind; });
    if (found == counts.end()) {
      counts.emplace_back(kind, 1);
    } else {
      ++found->second;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [kind, count] : counts) parts.push_back(count == 1 ? kind : fmt::format("{} {}", count, kind));
  return fmt::format("{} ({})", counted(std::ssize(network.nodes()) - 1, "operation"), fmt::join(parts, ", "));
}

std::string type_word(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kByte:
      return "uint8";
    case at::kBool:
      return "bool";
    default:
      return c10::toString(type);
  }
}

std::string device_words(at::Device device) {
  return device.is_cpu() ? "the CPU" : device.is_cuda() ? "the GPU " + device.str() : device.str();
}

}  // namespace holdfast::model

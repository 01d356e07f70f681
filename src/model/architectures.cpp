#include "holdfast/model/model.h"

#include <fmt/ranges.h>

#include "architectures/initialise.h"

namespace holdfast::model {
namespace {

bool names(const MethodCall& call, const std::string& option) {
  for (const auto& [name, value] : call.options) {
    if (name == option) return true;
  }
  return false;
}

bool takes(const MethodInfo& info, const std::string& option) {
  for (const OptionSpec& spec : info.options) {
    if (spec.name == option) return true;
  }
  return false;
}

// Writes the shape of one side as the option `inputs` has it.
std::string written_shape(Layout layout) {
  layout.sides = 1;
  return fmt::format("{}", fmt::join(layout.sample_shape(), "x"));
}

}  // namespace

Network Architecture::build(std::uint64_t seed) const {
  Network network = structure();
  initialise(network, seed);
  return network;
}

Network Architecture::pretrained() const {
  input_error("this architecture has no published weights; give a file of weights or train it");
}

std::string fit_architecture(const std::string& text, const Layout& layout, std::int64_t classes) {
  MethodCall call = parse_method_call(text);
  const MethodInfo& info = architectures().info(call.name);
  const auto set = [&](const std::string& option, const std::string& value) {
    if (takes(info, option) && !names(call, option)) call.options.emplace_back(option, value);
  };
  set("inputs", written_shape(layout));
  if (layout.kind == Layout::Kind::kGraph) set("nodes", fmt::format("{}", layout.length));
  set("classes", fmt::format("{}", classes));

  const std::string fitted = Options(info, call).canonical();
  const auto architecture = architectures().make(fitted);
  if (architecture->layout().sample_shape() != layout.sample_shape()) {
    usage_error("{}: it takes a {}, the data's samples are each a {}", text, architecture->layout().describe(),
                layout.describe());
  }
  if (architecture->classes() != classes)
    usage_error("{}: it has {} classes, the data {}", text, architecture->classes(), classes);
  return fitted;
}

}  // namespace holdfast::model

#include "holdfast/model/model.h"

#include <cmath>

#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"

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

void fill_uniform(const at::Tensor& tensor, double bound, std::uint64_t seed, const std::string& name) {
  if (!tensor.defined()) return;
  HOLDFAST_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat && tensor.is_cpu());
  RandomStream random(seed, name);
  float* values = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = static_cast<float>(random.uniform(-bound, bound));
}

// Fills the weights of a linear layer [out, in] or a convolution [out, in / groups, height, width].
template <class Layer>
void initialise_layer(const Layer& layer, std::uint64_t seed, const std::string& name) {
  const double fan_in = static_cast<double>(layer.weight.numel() / layer.weight.size(0));
  const double bound = 1 / std::sqrt(fan_in);
  fill_uniform(layer.weight, bound, seed, name + ".weight");
  fill_uniform(layer.bias, bound, seed, name + ".bias");
}

// Fills every weight and bias of linear and convolution layers uniformly in +-1/sqrt(fan-in), PyTorch's default (Kaiming uniform
// with a = sqrt(5)). Each tensor has its own random stream, (seed, its name): values depend on nothing else. Batch
// normalisation starts as the identity.
void initialise(Network& network, std::uint64_t seed) {
  const at::NoGradGuard no_gradients;
  for (const Node& node : network.nodes()) {
    if (const auto* linear = std::get_if<op::Linear>(&node.operation)) initialise_layer(*linear, seed, node.name);
    if (const auto* conv = std::get_if<op::Conv2d>(&node.operation)) initialise_layer(*conv, seed, node.name);
    if (const auto* norm = std::get_if<op::BatchNorm>(&node.operation)) {
      norm->weight.fill_(1);
      norm->bias.zero_();
      norm->mean.zero_();
      norm->variance.fill_(1);
    }
  }
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

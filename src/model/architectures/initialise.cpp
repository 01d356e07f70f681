#include "initialise.h"

#include <cmath>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"

namespace holdfast::model {
namespace {

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

}  // namespace

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

}  // namespace holdfast::model

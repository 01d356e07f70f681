// The network for MNIST and Fashion-MNIST of Chen et al., "Robust Attribution Regularization", NeurIPS 2019 (and of Madry et
// al. 2018 before them): two 5x5 convolutions with pooling and a hidden layer of 1024; 3,274,634 parameters.
#include "../initialise.h"
#include "../layers.h"
#include "all.h"
#include "common.h"

namespace holdfast {
namespace {

const MethodInfo kInfo{.name = "cnn_chen",
                       .summary = "convolutional network for MNIST and Fashion-MNIST of the attribution-robustness papers",
                       .citation = "Chen et al., Robust Attribution Regularization, NeurIPS 2019",
                       .options = common_options({.inputs = "1x28x28"})};

class CnnChen final : public CommonArchitecture {
 public:
  explicit CnnChen(const Options& options) : CommonArchitecture(options) { require_image("cnn_chen", 4); }

  Network build(std::uint64_t seed) const override {
    Network network;
    network.add("input", op::Input{});
    add_normalisation(network);
    network.add("conv1", layers::conv(layout_.channels, 32, 5, {.padding = 2}));
    network.add("act1", activation());
    network.add("pool1", layers::max_pool(2));
    network.add("conv2", layers::conv(32, 64, 5, {.padding = 2}));
    network.add("act2", activation());
    network.add("pool2", layers::max_pool(2));
    network.add("flatten", op::Flatten{});
    network.add("fc1", layers::linear(64 * (layout_.height / 4) * (layout_.width / 4), 1024));
    network.add("act3", activation());
    network.add("fc2", layers::linear(1024, classes()));
    initialise(network, seed);
    return network;
  }
};

}  // namespace

void register_cnn_chen(Registry<Architecture>& registry) {
  registry.add<CnnChen>(kInfo);
}

}  // namespace holdfast

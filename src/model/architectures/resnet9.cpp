// ResNet9 for CIFAR-10, R2ET's image model: 3x3 convolutions with batch normalisation, two residual blocks, 6,575,370 parameters.
//     64, 128 pool | 128 128 + | 256 pool, 512 pool | 512 512 + | pool 4, linear
#include "common.h"
#include "layers.h"

namespace holdfast::model::resnet9 {

const MethodInfo kInfo{
    .name = "resnet9",
    .summary = "nine-layer residual network for CIFAR-10, with batch normalisation",
    .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
    .options = common_options({.inputs = "3x32x32", .mean = "0.4914x0.4822x0.4465", .deviation = "0.2470x0.2435x0.2616"})};

class Resnet9 final : public CommonArchitecture {
 public:
  explicit Resnet9(const Options& options) : CommonArchitecture(options) { require_image("resnet9", 32); }

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    add_normalisation(network);
    add_block(network, "conv1", layout_.channels, 64);
    const int before1 = add_pooled_block(network, "conv2", 64, 128);
    add_block(network, "res1.0", 128, 128);
    const int inside1 = add_block(network, "res1.1", 128, 128);
    network.add("res1.add", op::Add{}, {inside1, before1});
    add_pooled_block(network, "conv3", 128, 256);
    const int before2 = add_pooled_block(network, "conv4", 256, 512);
    add_block(network, "res2.0", 512, 512);
    const int inside2 = add_block(network, "res2.1", 512, 512);
    network.add("res2.add", op::Add{}, {inside2, before2});
    network.add("pool", layers::max_pool(4));
    network.add("flatten", op::Flatten{});
    network.add("classifier", layers::linear(512 * (layout_.height / 32) * (layout_.width / 32), classes()));
    return network;
  }

 private:
  int add_block(Network& network, const std::string& name, std::int64_t in, std::int64_t out) const {
    network.add(name + ".conv", layers::conv(in, out, 3, {.padding = 1}));
    network.add(name + ".bn", layers::batch_norm(out));
    return network.add(name + ".act", activation());
  }

  int add_pooled_block(Network& network, const std::string& name, std::int64_t in, std::int64_t out) const {
    add_block(network, name, in, out);
    return network.add(name + ".pool", layers::max_pool(2));
  }
};

void add_to(Registry<Architecture>& registry) {
  registry.add<Resnet9>(kInfo);
}

}  // namespace holdfast::model::resnet9

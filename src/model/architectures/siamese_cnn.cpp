// Whether two images show the same class: one encoder for both sides, the magnitude of their difference, a linear layer.
// R2ET's model for pairs of MNIST images; the paper does not describe it, so the encoder's sizes are ours.
#include "common.h"
#include "layers.h"

namespace holdfast::model::siamese_cnn {

const MethodInfo kInfo{
    .name = "siamese_cnn",
    .summary = "same class or not, for pairs of images: one convolutional encoder for both sides",
    .options = common_options({.inputs = "1x28x28", .classes = 2},
                              {{"width", 16, at_least(1), "channels of the first convolution; the second has twice as many"},
                               {"embedding", 64, at_least(1), "size of the encoding"}}),
    .notes = "inputs is the shape of one side"};

class SiameseCnn final : public CommonArchitecture {
 public:
  explicit SiameseCnn(const Options& options)
      : CommonArchitecture(options), width_(options.integer("width")), embedding_(options.integer("embedding")) {
    require_image("siamese_cnn", 4);
    layout_.sides = 2;
  }

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    network.add("sides", op::FoldSides{});
    add_normalisation(network);
    network.add("conv1", layers::conv(layout_.channels, width_, 5, {.padding = 2}));
    network.add("act1", activation());
    network.add("pool1", layers::max_pool(2));
    network.add("conv2", layers::conv(width_, 2 * width_, 5, {.padding = 2}));
    network.add("act2", activation());
    network.add("pool2", layers::max_pool(2));
    network.add("flatten", op::Flatten{});
    network.add("embedding", layers::linear(2 * width_ * (layout_.height / 4) * (layout_.width / 4), embedding_));
    network.add("distance", op::SideDistance{});
    network.add("output", layers::linear(embedding_, classes()));
    return network;
  }

 private:
  std::int64_t width_, embedding_;
};

void add_to(Registry<Architecture>& registry) {
  registry.add<SiameseCnn>(kInfo);
}

}  // namespace holdfast::model::siamese_cnn

// A small convolutional network that trains on a CPU in seconds: two 3x3 convolutions with pooling, one hidden layer.
#include "common.h"
#include "layers.h"

namespace holdfast::model::cnn_small {

const MethodInfo kInfo{
    .name = "cnn_small",
    .summary = "small convolutional network for quick work on small images",
    .options = common_options({.inputs = "1x28x28"},
                              {{"width", 8, at_least(1), "channels of the first convolution; the second has twice as many"},
                               {"hidden", 32, at_least(1), "width of the hidden layer"}})};

class CnnSmall final : public CommonArchitecture {
 public:
  explicit CnnSmall(const Options& options)
      : CommonArchitecture(options), width_(options.integer("width")), hidden_(options.integer("hidden")) {
    require_image("cnn_small", 4);
  }

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    add_normalisation(network);
    network.add("conv1", layers::conv(layout_.channels, width_, 3, {.padding = 1}));
    network.add("act1", activation());
    network.add("pool1", layers::max_pool(2));
    network.add("conv2", layers::conv(width_, 2 * width_, 3, {.padding = 1}));
    network.add("act2", activation());
    network.add("pool2", layers::max_pool(2));
    network.add("flatten", op::Flatten{});
    network.add("hidden", layers::linear(2 * width_ * (layout_.height / 4) * (layout_.width / 4), hidden_));
    network.add("act3", activation());
    network.add("output", layers::linear(hidden_, classes()));
    return network;
  }

 private:
  std::int64_t width_, hidden_;
};

void add_to(Registry<Architecture>& registry) {
  registry.add<CnnSmall>(kInfo);
}

}  // namespace holdfast::model::cnn_small

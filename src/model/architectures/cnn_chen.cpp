// The network for MNIST and Fashion-MNIST of Chen et al., "Robust Attribution Regularization", NeurIPS 2019 (and of Madry et
// al. 2018 before them): two 5x5 convolutions with pooling and a hidden layer of 1024; 3,274,634 parameters. width=16x32x256 is
// the narrow one for short trainings.
#include "common.h"
#include "layers.h"

namespace holdfast::model::cnn_chen {

const MethodInfo kInfo{
    .name = "cnn_chen",
    .summary = "convolutional network for MNIST and Fashion-MNIST of the attribution-robustness papers",
    .citation = "Chen et al., Robust Attribution Regularization, NeurIPS 2019",
    .options = common_options({.inputs = "1x28x28"}, {{"width", "32x64x1024", anything(),
                                                       "channels of the two convolutions and units of the hidden layer"}})};

class CnnChen final : public CommonArchitecture {
 public:
  explicit CnnChen(const Options& options) : CommonArchitecture(options), width_(parse_sizes(options.word("width"), "width")) {
    require_image("cnn_chen", 4);
    if (width_.size() != 3)
      usage_error("cnn_chen: width={} has {} sizes; write three such as 16x32x256", options.word("width"), width_.size());
  }

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    add_normalisation(network);
    network.add("conv1", layers::conv(layout_.channels, width_[0], 5, {.padding = 2}));
    network.add("act1", activation());
    network.add("pool1", layers::max_pool(2));
    network.add("conv2", layers::conv(width_[0], width_[1], 5, {.padding = 2}));
    network.add("act2", activation());
    network.add("pool2", layers::max_pool(2));
    network.add("flatten", op::Flatten{});
    network.add("fc1", layers::linear(width_[1] * (layout_.height / 4) * (layout_.width / 4), width_[2]));
    network.add("act3", activation());
    network.add("fc2", layers::linear(width_[2], classes()));
    return network;
  }

 private:
  std::vector<std::int64_t> width_;
};

void add_to(Registry<Architecture>& registry) {
  registry.add<CnnChen>(kInfo);
}

}  // namespace holdfast::model::cnn_chen

// The residual networks for GTSRB and Flowers 17 of Chen et al., "Robust Attribution Regularization", NeurIPS 2019.
//
// Each sample is standardised on the 0-255 scale; then a 3x3 convolution to 16 channels, three stages of pre-activation
// units with 16, 32 and 64 channels (the second and third halve the image), global average pooling and a linear layer.
// No batch normalisation, no bias in convolutions. A unit that changes the shape has a parameter-free shortcut: average pooling
// and zeros for the new channels. Padding is TensorFlow's.
//     gtsrb_resnet   two units a stage, 43 classes: 173,723 parameters
//     flower_resnet  one unit a stage, 17 classes: 75,265 parameters
#include "common.h"
#include "layers.h"

namespace holdfast::model::chen_resnets {

constexpr const char* kCitation = "Chen et al., Robust Attribution Regularization, NeurIPS 2019";

const MethodInfo kGtsrb{
    .name = "gtsrb_resnet",
    .summary = "residual network for traffic signs, two units a stage, without batch normalisation",
    .citation = kCitation,
    .options = common_options({.inputs = "3x32x32", .classes = 43, .activation = "leaky_relu", .slope = 0.1})};
const MethodInfo kFlower{
    .name = "flower_resnet",
    .summary = "residual network for flowers, one unit a stage, without batch normalisation",
    .citation = kCitation,
    .options = common_options({.inputs = "3x128x128", .classes = 17, .activation = "leaky_relu", .slope = 0.1})};

// A value on its way through the network.
struct Feature {
  int node;
  std::int64_t channels, height, width;
};

class ChenResnet final : public CommonArchitecture {
 public:
  ChenResnet(const Options& options, const char* name, int units) : CommonArchitecture(options), units_(units) {
    require_image(name, 4);
  }

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    add_normalisation(network);
    network.add("standardize", op::Standardize{});
    const int first = network.add("init_conv", layers::conv(layout_.channels, 16, 3, {.padding = 1, .bias = false}));
    Feature feature{first, 16, layout_.height, layout_.width};
    for (int stage = 1; stage <= 3; ++stage) {
      for (int unit = 0; unit < units_; ++unit) {
        feature = add_unit(network, feature, fmt::format("unit_{}_{}", stage, unit), stage, unit);
      }
    }
    network.add("final_act", activation(), {feature.node});
    network.add("pool", op::Mean{.dims = {2, 3}});
    network.add("logit", layers::linear(feature.channels, classes()));
    return network;
  }

 private:
  Feature add_unit(Network& network, const Feature& in, const std::string& name, int stage, int unit) const {
    const std::int64_t stride = stage > 1 && unit == 0 ? 2 : 1;
    const std::int64_t channels = std::int64_t{8} << stage;
    const int activated = network.add(name + ".act1", activation(), {in.node});
    network.add(name + ".pad", layers::same_padding(in.height, in.width, 3, stride), {activated});
    network.add(name + ".conv1", layers::conv(in.channels, channels, 3, {.stride = stride, .bias = false}));
    network.add(name + ".act2", activation());
    const int residual = network.add(name + ".conv2", layers::conv(channels, channels, 3, {.padding = 1, .bias = false}));
    // The very first unit's shortcut starts after its activation, every other one's before it.
    const int source = stage == 1 && unit == 0 ? activated : in.node;
    const int shortcut = stride == 1 ? source : add_shortcut(network, source, name, channels - in.channels);
    const int sum = network.add(name + ".add", op::Add{}, {residual, shortcut});
    return {sum, channels, (in.height + stride - 1) / stride, (in.width + stride - 1) / stride};
  }

  // Rounds up for odd sizes, as the padded convolution beside it does.
  static int add_shortcut(Network& network, int source, const std::string& name, std::int64_t new_channels) {
    network.add(name + ".shortcut_pool",
                op::AvgPool2d{.kernel = {2, 2}, .stride = {2, 2}, .ceil_mode = true, .count_include_pad = false}, {source});
    return network.add(name + ".shortcut_pad", op::Pad{.amounts = {0, 0, 0, 0, new_channels / 2, new_channels / 2}});
  }

  int units_;
};

void add_to(Registry<Architecture>& registry) {
  registry.add(kGtsrb, [](const Options& options) { return std::make_unique<ChenResnet>(options, "gtsrb_resnet", 2); });
  registry.add(kFlower, [](const Options& options) { return std::make_unique<ChenResnet>(options, "flower_resnet", 1); });
}

}  // namespace holdfast::model::chen_resnets

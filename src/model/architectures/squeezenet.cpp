// SqueezeNet 1.0 for ImageNet: Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters", 2016; 1,248,424
// parameters. The published weights take BGR on the 0-255 scale less the mean (104, 117, 123); the network does that itself from
// RGB in [0, 1]. As in the original, pools round up and the last convolution is padded and followed by an activation.
#include "common.h"
#include "layers.h"
#include "published.h"

namespace holdfast::model::squeezenet {

// (123, 117, 104) / 255 and 1 / 255.
const MethodInfo kInfo{.name = "squeezenet1_0",
                       .summary = "SqueezeNet 1.0 for ImageNet; published weights",
                       .citation = "Iandola et al., SqueezeNet, 2016",
                       .options = common_options({.inputs = "3x227x227",
                                                  .classes = 1000,
                                                  .mean = "0.4823529411764706x0.4588235294117647x0.40784313725490196",
                                                  .deviation = "0.00392156862745098"})};

class Squeezenet final : public CommonArchitecture {
 public:
  explicit Squeezenet(const Options& options) : CommonArchitecture(options) { require_image("squeezenet1_0", 21); }

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    add_normalisation(network);
    network.add("bgr", op::ReverseChannels{});
    network.add("conv1", layers::conv(layout_.channels, 96, 7, {.stride = 2}));
    network.add("relu_conv1", activation());
    add_pool(network, "pool1");
    add_fire(network, "fire2", 96, 16, 64);
    add_fire(network, "fire3", 128, 16, 64);
    add_fire(network, "fire4", 128, 32, 128);
    add_pool(network, "pool4");
    add_fire(network, "fire5", 256, 32, 128);
    add_fire(network, "fire6", 256, 48, 192);
    add_fire(network, "fire7", 384, 48, 192);
    add_fire(network, "fire8", 384, 64, 256);
    add_pool(network, "pool8");
    add_fire(network, "fire9", 512, 64, 256);
    network.add("drop9", op::Dropout{.rate = 0.5});
    network.add("conv10", layers::conv(512, classes(), 1, {.padding = 1}));
    network.add("relu_conv10", activation());
    network.add("pool10", op::Mean{.dims = {2, 3}});
    return network;
  }

  bool has_pretrained() const override { return true; }
  Network pretrained() const override {
    Network network = structure();
    network.load(read_published("squeezenet1_0"), "squeezenet1_0.f32");
    return network;
  }

 private:
  static void add_pool(Network& network, const std::string& name) {
    op::MaxPool2d pool = layers::max_pool(3, 2);
    pool.ceil_mode = true;
    network.add(name, pool);
  }

  // Squeezed to few channels, then expanded by 1x1 and 3x3 convolutions side by side.
  void add_fire(Network& network, const std::string& name, std::int64_t in, std::int64_t squeezed, std::int64_t expanded) const {
    network.add(name + "_squeeze1x1", layers::conv(in, squeezed, 1));
    const int squeeze = network.add(name + "_relu_squeeze1x1", activation());
    network.add(name + "_expand1x1", layers::conv(squeezed, expanded, 1), {squeeze});
    const int one = network.add(name + "_relu_expand1x1", activation());
    network.add(name + "_expand3x3", layers::conv(squeezed, expanded, 3, {.padding = 1}), {squeeze});
    const int three = network.add(name + "_relu_expand3x3", activation());
    network.add(name + "_concat", op::Concat{}, {one, three});
  }
};

void add_to(Registry<Architecture>& registry) {
  registry.add<Squeezenet>(kInfo);
}

}  // namespace holdfast::model::squeezenet

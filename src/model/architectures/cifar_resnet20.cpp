// ResNet-20 for CIFAR-10: He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, section 4.2. Shortcuts are their
// option A: every other pixel, and zeros for the new channels. 269,722 parameters; names are those of the published weights.
#include "common.h"
#include "layers.h"
#include "published.h"

namespace holdfast::model::cifar_resnet20 {

const MethodInfo kInfo{
    .name = "cifar_resnet20",
    .summary = "ResNet-20 for CIFAR-10; published weights of natural training",
    .citation = "He et al., Deep Residual Learning for Image Recognition, CVPR 2016",
    .options = common_options({.inputs = "3x32x32", .mean = "0.485x0.456x0.406", .deviation = "0.229x0.224x0.225"})};

class CifarResnet20 final : public CommonArchitecture {
 public:
  explicit CifarResnet20(const Options& options) : CommonArchitecture(options) { require_image("cifar_resnet20", 4); }

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    add_normalisation(network);
    network.add("conv1", layers::conv(layout_.channels, 16, 3, {.padding = 1, .bias = false}));
    network.add("bn1", layers::batch_norm(16));
    int last = network.add("act1", activation());
    std::int64_t channels = 16;
    for (int stage = 1; stage <= 3; ++stage) {
      for (int unit = 0; unit < 3; ++unit) {
        last = add_unit(network, last, fmt::format("layer{}.{}", stage, unit), channels, std::int64_t{8} << stage);
        channels = std::int64_t{8} << stage;
      }
    }
    network.add("pool", op::Mean{.dims = {2, 3}});
    network.add("linear", layers::linear(channels, classes()));
    return network;
  }

  bool has_pretrained() const override { return true; }
  Network pretrained() const override {
    Network network = structure();
    network.load(read_published("cifar10_resnet20"), "cifar10_resnet20.f32");
    return network;
  }

 private:
  int add_unit(Network& network, int source, const std::string& name, std::int64_t in, std::int64_t out) const {
    const std::int64_t stride = in == out ? 1 : 2;
    network.add(name + ".conv1", layers::conv(in, out, 3, {.stride = stride, .padding = 1, .bias = false}), {source});
    network.add(name + ".bn1", layers::batch_norm(out));
    network.add(name + ".act1", activation());
    network.add(name + ".conv2", layers::conv(out, out, 3, {.padding = 1, .bias = false}));
    const int residual = network.add(name + ".bn2", layers::batch_norm(out));
    if (stride == 2) {
      network.add(name + ".shortcut_rows", op::Slice{.dim = 2, .step = 2}, {source});
      network.add(name + ".shortcut_columns", op::Slice{.dim = 3, .step = 2});
      source = network.add(name + ".shortcut_pad", op::Pad{.amounts = {0, 0, 0, 0, (out - in) / 2, (out - in) / 2}});
    }
    network.add(name + ".add", op::Add{}, {residual, source});
    return network.add(name + ".act2", activation());
  }
};

void add_to(Registry<Architecture>& registry) {
  registry.add<CifarResnet20>(kInfo);
}

}  // namespace holdfast::model::cifar_resnet20

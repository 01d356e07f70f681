// The small adversarially trained residual networks for CIFAR-10 of the neural network verification competition 2021
// (benchmark cifar10_resnet): no batch normalisation, 1x1 convolutions as shortcuts, a hidden layer of 100. Names are those of
// the published weights.
//     cifar_resnet2b   8 channels, then a stage of two units with 16: 112,006 parameters
//     cifar_resnet4b   16 channels, then two stages of two units with 32: 123,734 parameters
#include "common.h"
#include "layers.h"
#include "published.h"

namespace holdfast::model::small_cifar_resnets {

std::vector<OptionSpec> options() {
  return common_options({.inputs = "3x32x32", .mean = "0.4914x0.4822x0.4465", .deviation = "0.2471x0.2435x0.2616"});
}

constexpr const char* kResNetSmallPaper =
    "Bak, Liu and Johnson, The Second International Verification of Neural Networks Competition, 2021";

const MethodInfo k2b{.name = "cifar_resnet2b",
                     .summary = "small residual network for CIFAR-10, two units; published weights of adversarial training",
                     .citation = kResNetSmallPaper,
                     .options = options()};
const MethodInfo k4b{.name = "cifar_resnet4b",
                     .summary = "small residual network for CIFAR-10, four units; published weights of adversarial training",
                     .citation = kResNetSmallPaper,
                     .options = options()};

class CifarResnetSmall final : public CommonArchitecture {
 public:
  CifarResnetSmall(const Options& options, const MethodInfo& info, int stages) : CommonArchitecture(options), stages_(stages) {
    require_image(info.name.c_str(), 8);
  }

  Network structure() const override {
    const std::int64_t start = 8 * stages_, width = 2 * start;
    const auto halved = [](std::int64_t size) { return (size + 1) / 2; };
    Network network;
    network.add("input", op::Input{});
    add_normalisation(network);
    network.add("conv1", layers::conv(layout_.channels, start, 3, {.stride = 2, .padding = 1}));
    int last = network.add("act1", activation());
    std::int64_t height = halved(layout_.height), columns = halved(layout_.width);
    for (int stage = 1; stage <= stages_; ++stage) {
      last = add_unit(network, last, fmt::format("layer{}.0", stage), stage == 1 ? start : width, width, 2);
      last = add_unit(network, last, fmt::format("layer{}.1", stage), width, width, 1);
      height = halved(height);
      columns = halved(columns);
    }
    network.add("flatten", op::Flatten{});
    network.add("linear1", layers::linear(width * height * columns, 100));
    network.add("act2", activation());
    network.add("linear2", layers::linear(100, classes()));
    return network;
  }

  bool has_pretrained() const override { return true; }
  Network pretrained() const override {
    const std::string name = fmt::format("cifar10_resnet{}b_adv", 2 * stages_);
    Network network = structure();
    network.load(read_published(name), name + ".f32");
    return network;
  }

 private:
  int add_unit(Network& network, int source, const std::string& name, std::int64_t in, std::int64_t out,
               std::int64_t stride) const {
    network.add(name + ".conv1", layers::conv(in, out, 3, {.stride = stride, .padding = 1}), {source});
    network.add(name + ".act1", activation());
    const int residual = network.add(name + ".conv2", layers::conv(out, out, 3, {.padding = 1}));
    if (stride != 1) source = network.add(name + ".shortcut.0", layers::conv(in, out, 1, {.stride = stride}), {source});
    network.add(name + ".add", op::Add{}, {residual, source});
    return network.add(name + ".act2", activation());
  }

  int stages_;
};

void add_to(Registry<Architecture>& registry) {
  registry.add(k2b, [](const Options& given) { return std::make_unique<CifarResnetSmall>(given, k2b, 1); });
  registry.add(k4b, [](const Options& given) { return std::make_unique<CifarResnetSmall>(given, k4b, 2); });
}

}  // namespace holdfast::model::small_cifar_resnets

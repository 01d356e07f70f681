// MobileNet v1 for ImageNet with three quarters of the channels: Howard et al., "MobileNets: Efficient Convolutional Neural
// Networks for Mobile Vision Applications", 2017; 2,585,560 parameters and 16,416 running statistics. Padding is TensorFlow's,
// the normalisation's epsilon 1e-3, inputs are scaled to [-1, 1].
#include <array>
#include <map>

#include "common.h"
#include "holdfast/core/torch.h"
#include "layers.h"
#include "published.h"

namespace holdfast::model::mobilenet {

const MethodInfo kInfo{.name = "mobilenet_v1_075",
                       .summary = "MobileNet v1 0.75 for ImageNet; published weights",
                       .citation = "Howard et al., MobileNets, 2017",
                       .options = common_options(
                           {.inputs = "3x224x224", .classes = 1000, .activation = "relu6", .mean = "0.5", .deviation = "0.5"})};

struct Block {
  std::int64_t stride, channels;
};
constexpr std::array<Block, 13> kBlocks = {{{1, 48},
                                            {2, 96},
                                            {1, 96},
                                            {2, 192},
                                            {1, 192},
                                            {2, 384},
                                            {1, 384},
                                            {1, 384},
                                            {1, 384},
                                            {1, 384},
                                            {1, 384},
                                            {2, 768},
                                            {1, 768}}};

// Keras' name and order of dimensions -> ours: HWIO -> OIHW, depthwise HWC1 -> C1HW.
Parameter from_keras(const Parameter& parameter) {
  static const std::map<std::string, std::string> kSuffixes = {{"kernel", "weight"},
                                                               {"depthwise_kernel", "weight"},
                                                               {"bias", "bias"},
                                                               {"gamma", "weight"},
                                                               {"beta", "bias"},
                                                               {"moving_mean", "running_mean"},
                                                               {"moving_variance", "running_var"}};
  const std::size_t slash = parameter.name.find('/');
  const std::string layer = parameter.name.substr(0, slash);
  const std::string theirs = slash == std::string::npos ? "" : parameter.name.substr(slash + 1);
  const auto ours = kSuffixes.find(theirs);
  if (ours == kSuffixes.end()) return parameter;  // loading will name it as unknown
  if (parameter.tensor.dim() != 4) return {layer + "." + ours->second, parameter.tensor};
  const bool depthwise = theirs == "depthwise_kernel";
  return {layer + "." + ours->second,
          depthwise ? parameter.tensor.permute({2, 3, 0, 1}) : parameter.tensor.permute({3, 2, 0, 1})};
}

class Mobilenet final : public CommonArchitecture {
 public:
  explicit Mobilenet(const Options& options) : CommonArchitecture(options) { require_image("mobilenet_v1_075", 32); }

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    add_normalisation(network);
    std::int64_t height = layout_.height, width = layout_.width, channels = 24;
    add_conv(network, "conv1", layout_.channels, channels, 3, 2, 1, height, width);
    for (std::size_t i = 0; i < kBlocks.size(); ++i) {
      add_conv(network, fmt::format("conv_dw_{}", i + 1), channels, channels, 3, kBlocks[i].stride, channels, height, width);
      add_conv(network, fmt::format("conv_pw_{}", i + 1), channels, kBlocks[i].channels, 1, 1, 1, height, width);
      channels = kBlocks[i].channels;
    }
    network.add("pool", op::Mean{.dims = {2, 3}, .keep = true});
    network.add("dropout", op::Dropout{.rate = 1e-3});
    network.add("conv_preds", layers::conv(channels, classes(), 1));
    network.add("flatten", op::Flatten{});
    return network;
  }

  bool has_pretrained() const override { return true; }
  Network pretrained() const override {
    std::vector<Parameter> values = read_published("mobilenet_v1_075_224");
    for (Parameter& value : values) value = from_keras(value);
    Network network = structure();
    network.load(values, "mobilenet_v1_075_224.f32");
    return network;
  }

 private:
  // Pad, convolve, normalise, activate; height and width become those of the result.
  void add_conv(Network& network, const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel,
                std::int64_t stride, std::int64_t groups, std::int64_t& height, std::int64_t& width) const {
    if (kernel > 1) network.add(name + "_pad", layers::same_padding(height, width, kernel, stride));
    network.add(name, layers::conv(in, out, kernel, {.stride = stride, .groups = groups, .bias = false}));
    network.add(name + "_bn", layers::batch_norm(out, 1e-3));
    network.add(name + "_relu", activation());
    height = (height + stride - 1) / stride;
    width = (width + stride - 1) / stride;
  }
};

void add_to(Registry<Architecture>& registry) {
  registry.add<Mobilenet>(kInfo);
}

}  // namespace holdfast::model::mobilenet

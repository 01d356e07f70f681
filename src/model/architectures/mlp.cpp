// A multilayer perceptron: linear layers with an activation between them. R2ET's tabular models are n-32-2.
#include "common.h"
#include "layers.h"

namespace holdfast::model::mlp {

const MethodInfo kInfo{.name = "mlp",
                       .summary = "multilayer perceptron of any widths",
                       .options = common_options({.inputs = "30", .classes = 2},
                                                 {{"hidden", "32", anything(), "widths of the hidden layers, such as 64x64"}})};

class Mlp final : public CommonArchitecture {
 public:
  explicit Mlp(const Options& options)
      : CommonArchitecture(options), hidden_(parse_sizes(options.word("hidden"), "mlp(hidden)")) {}

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    add_normalisation(network);
    if (layout_.kind != Layout::Kind::kVector) network.add("flatten", op::Flatten{});
    std::int64_t width = layout_.inputs();
    for (std::size_t i = 0; i < hidden_.size(); ++i) {
      network.add(fmt::format("hidden{}", i + 1), layers::linear(width, hidden_[i]));
      network.add(fmt::format("act{}", i + 1), activation());
      width = hidden_[i];
    }
    network.add("output", layers::linear(width, classes()));
    return network;
  }

 private:
  std::vector<std::int64_t> hidden_;
};

void add_to(Registry<Architecture>& registry) {
  registry.add<Mlp>(kInfo);
}

}  // namespace holdfast::model::mlp

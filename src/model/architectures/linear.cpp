// One linear layer: logits = W x + b. Its logits' gradients are the rows of W, whatever the input.
#include "common.h"
#include "layers.h"

namespace holdfast::model::linear {

const MethodInfo kInfo{.name = "linear",
                       .summary = "one linear layer (multinomial logistic regression)",
                       .options = {{"inputs", "30", anything(), "shape of a sample, such as 30 or 3x32x32"},
                                   {"classes", 2, at_least(2), "number of classes"}}};

class Linear final : public Architecture {
 public:
  explicit Linear(const Options& options) : layout_(input_layout(options)), classes_(options.integer("classes")) {}

  Layout layout() const override { return layout_; }
  std::int64_t classes() const override { return classes_; }

  Network structure() const override {
    Network network;
    network.add("input", op::Input{});
    if (layout_.kind != Layout::Kind::kVector) network.add("flatten", op::Flatten{});
    network.add("linear", layers::linear(layout_.inputs(), classes_));
    return network;
  }

 private:
  Layout layout_;
  std::int64_t classes_;
};

void add_to(Registry<Architecture>& registry) {
  registry.add<Linear>(kInfo);
}

}  // namespace holdfast::model::linear

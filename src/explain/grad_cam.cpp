// grad_cam: where a convolution's channels that speak for the class are active, brought to the size of the image.
//     map = max(0, sum_k alpha_k A_k)          alpha_k = mean over positions of d z_c / d A_k
// A [channels, h, w] is the value of the last convolution or of the layer named. The map is interpolated to the image's size
// and is the same for all channels of the input.
// Selvaraju et al., "Grad-CAM: Visual Explanations from Deep Networks via Gradient-Based Localization", ICCV 2017.
// guided=true multiplies it by guided backpropagation, as in the paper's section 3.2.
#include <algorithm>

#include "finish.h"
#include "graph.h"
#include "guided_backprop.h"
#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "layer_explainer.h"

namespace holdfast::explain::grad_cam {

const MethodInfo kInfo{
    .name = "grad_cam",
    .summary = "activity of a convolution's channels, weighted by their mean gradient, at the image's size",
    .citation = "Selvaraju et al., Grad-CAM: Visual Explanations from Deep Networks via Gradient-Based Localization, ICCV 2017",
    .options = {target_option("logit"),
                {"layer", "last", anything(), "the node to look at, by name; last: the last convolution"},
                {"relu", true, anything(), "keep only what speaks for the class"},
                {"interpolation", "bilinear", one_of({"bilinear", "nearest"}), "to the size of the image"},
                {"guided", false, anything(), "times guided backpropagation: fine detail, signed"}},
    .needs = {"layers of a network", "a convolution"}};

class GradCam final : public LayerExplainer {
 public:
  explicit GradCam(const Options& options)
      : LayerExplainer(options.canonical()),
        quantity_(parse_explained_quantity(options.word("target"))),
        layer_(options.word("layer")),
        relu_(options.flag("relu")),
        bilinear_(options.word("interpolation") == "bilinear"),
        guided_(options.flag("guided")) {}

  void check_task(const ExplainTask& task) const override {
    check(task.model);
    check_image(task.samples.inputs);
  }

 protected:
  void check_network(const Network& network, const std::string& model) const override { (void)position(network, model); }

 private:
  Traced trace(const ExplainTask& task, const Network& network, const at::Tensor& inputs) const override {
    check_image(inputs);
    const LayerValues here = run_layers(network, inputs, task.rule);
    const LogitCotangent cotangent = logit_cotangent(here.logits(), task.samples.targets, quantity_);
    const at::Tensor& features = here.values[position(network, task.model.name())];
    if (features.dim() != 4) {
      usage_error("{}: the value of layer {} has shape {}; a layer with channels, rows and columns is needed", name(), layer_,
                  to_string(features.sizes().vec()));
    }
    const at::Tensor gradient =
        input_gradient(here.logits(), features, cotangent.value, at::GradMode::is_enabled(), /*keep_graph=*/guided_);
    at::Tensor maps = (gradient.mean({2, 3}, /*keepdim=*/true) * features).sum(1, /*keepdim=*/true);
    if (relu_) maps = maps.relu();
    maps = like_inputs(maps, inputs);
    if (guided_) maps = maps * guided_gradient(here, cotangent.value);
    // Both factors have the cotangent's scale.
    return {.maps = maps, .log_scale = guided_ ? 2 * cotangent.log_scale : cotangent.log_scale, .logits = here.logits()};
  }

  // [rows, 1, h, w] -> the inputs' shape. Two sides of a pair are rows next to each other.
  at::Tensor like_inputs(const at::Tensor& maps, const at::Tensor& inputs) const {
    const std::vector<std::int64_t> size = {inputs.size(-2), inputs.size(-1)};
    const at::Tensor large = bilinear_ ? at::upsample_bilinear2d(maps, size, /*align_corners=*/false)  //
                                       : at::upsample_nearest2d(maps, size);
    const std::int64_t rows = maps.size(0), channels = inputs.numel() / (rows * size[0] * size[1]);
    return large.expand({rows, channels, size[0], size[1]}).reshape(inputs.sizes());
  }

  void check_image(const at::Tensor& inputs) const {
    if (inputs.dim() < 3)
      usage_error("{}: needs images; a sample has shape {}", name(), to_string(inputs.sizes().slice(1).vec()));
  }

  std::size_t position(const Network& network, const std::string& model) const {
    const std::vector<Node>& nodes = network.nodes();
    const auto found = std::find_if(nodes.rbegin(), nodes.rend(), [&](const Node& node) {
      return layer_ == "last" ? std::holds_alternative<op::Conv2d>(node.operation) : node.name == layer_;
    });
    if (found != nodes.rend()) return static_cast<std::size_t>(nodes.rend() - found) - 1;
    if (layer_ == "last") usage_error("{}: needs a convolution; {} has none", name(), model);
    std::vector<std::string> known;
    for (const Node& node : nodes) known.push_back(node.name);
    usage_error("{}: {} has no layer '{}'{}", name(), model, layer_, suggestion(layer_, known));
  }

  ExplainedQuantity quantity_;
  std::string layer_;
  bool relu_, bilinear_, guided_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<GradCam>(kInfo);
}

}  // namespace holdfast::explain::grad_cam

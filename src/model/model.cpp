#include "holdfast/model/model.h"

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/outputs.h"
#include "network/describe.h"

namespace holdfast::model {
namespace {

std::string shape_of(const at::Tensor& tensor) {
  return to_string(tensor.sizes().vec());
}

class NetworkModel final : public Model {
 public:
  NetworkModel(Network network, std::optional<Layout> layout)
      : network_(std::move(network)), layout_(std::move(layout)), device_(network_.device()), dtype_(network_.dtype()) {
    if (layout_) sample_shape_ = layout_->sample_shape();
  }

  at::Tensor logits(const at::Tensor& inputs) const override { return logits(inputs, Rule::exact()); }

  at::Tensor logits(const at::Tensor& inputs, const Rule& rule) const override {
    check(inputs);
    return network_.run(inputs, rule).logits;
  }

  Capabilities capabilities() const override {
    return {.layers = true, .float64 = true, .scale_invariant = network_.scale_invariant()};
  }
  const Network* network() const override { return &network_; }
  at::Device device() const override { return device_; }
  at::ScalarType dtype() const override { return dtype_; }
  std::optional<Layout> layout() const override { return layout_; }

  std::unique_ptr<Model> in_double() const override {
    auto copy = std::make_unique<NetworkModel>(network_.to(at::kDouble), layout_);
    copy->set_name(name());
    return copy;
  }

  std::optional<std::int64_t> parameter_count() const override { return network_.parameter_count(); }

  std::string describe() const override {
    return fmt::format("A network of {} with {} trainable parameters{}.", describe_operations(network_),
                       network_.parameter_count(), layout_ ? "; a sample is a " + layout_->describe() : "");
  }

 private:
  void check(const at::Tensor& inputs) const {
    if (inputs.scalar_type() != dtype_) {
      input_error("the inputs are {}, the model computes in {}", type_word(inputs.scalar_type()), type_word(dtype_));
    }
    if (layout_ && (inputs.dim() < 1 || inputs.sizes().slice(1) != at::IntArrayRef(sample_shape_))) {
      input_error("the inputs have shape {}, the model takes batches of samples of shape {}", shape_of(inputs),
                  to_string(sample_shape_));
    }
  }

  Network network_;
  std::optional<Layout> layout_;
  at::Device device_;
  at::ScalarType dtype_;
  std::vector<std::int64_t> sample_shape_;
};

class CallableModel final : public Model {
 public:
  CallableModel(std::function<at::Tensor(const at::Tensor&)> function, Capabilities capabilities, at::Device device)
      : function_(std::move(function)), capabilities_(capabilities), device_(device) {
    HOLDFAST_CHECK(!capabilities_.layers);
  }

  at::Tensor logits(const at::Tensor& inputs) const override {
    at::Tensor logits = function_(inputs);
    if (const std::string wrong = wrong_outputs(logits.sizes(), inputs.size(0)); !wrong.empty())
      input_error("the model {}", wrong);
    return logits;
  }

  Capabilities capabilities() const override { return capabilities_; }
  at::Device device() const override { return device_; }
  at::ScalarType dtype() const override { return at::kFloat; }
  std::string describe() const override {
    return "A function from inputs to logits. Its layers cannot be seen: surrogates and layer-wise explainers do not work on it.";
  }

 private:
  std::function<at::Tensor(const at::Tensor&)> function_;
  Capabilities capabilities_;
  at::Device device_;
};

}  // namespace

at::Tensor Model::logits(const at::Tensor& inputs, const Rule& rule) const {
  if (!rule.softplus_beta.empty()) {
    usage_error("{}: its layers cannot be seen, so softplus cannot stand in for its activations",
                name().empty() ? "the model" : name());
  }
  return logits(inputs);
}

std::unique_ptr<Model> make_model(Network network, std::optional<Layout> layout) {
  return std::make_unique<NetworkModel>(std::move(network), std::move(layout));
}

std::unique_ptr<Model> make_model(std::function<at::Tensor(const at::Tensor&)> function, Capabilities capabilities,
                                  at::Device device) {
  return std::make_unique<CallableModel>(std::move(function), capabilities, device);
}

}  // namespace holdfast::model

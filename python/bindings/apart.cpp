#include "apart.h"

#include "holdfast/core/torch.h"

namespace holdfast::python {
namespace {

class TriedModel final : public Model {
 public:
  explicit TriedModel(std::shared_ptr<Model> model) : model_(std::move(model)) { set_name(model_->name()); }

  at::Tensor logits(const at::Tensor& inputs) const override { return model_->logits(inputs); }
  at::Tensor logits(const at::Tensor& inputs, const Rule& rule) const override { return model_->logits(inputs, rule); }
  OutputKind output_kind() const override { return model_->output_kind(); }
  Capabilities capabilities() const override {
    Capabilities can = model_->capabilities();
    can.known_apart = true;
    return can;
  }
  const Network* network() const override { return model_->network(); }
  std::optional<std::int64_t> parameter_count() const override { return model_->parameter_count(); }
  std::unique_ptr<Model> in_double() const override { return model_->in_double(); }
  at::Device device() const override { return model_->device(); }
  at::ScalarType dtype() const override { return model_->dtype(); }
  std::optional<Layout> layout() const override { return model_->layout(); }
  std::string describe() const override { return model_->describe(); }

 private:
  std::shared_ptr<Model> model_;
};

}  // namespace

std::shared_ptr<Model> known_apart(std::shared_ptr<Model> model) {
  return std::make_shared<TriedModel>(std::move(model));
}

}  // namespace holdfast::python

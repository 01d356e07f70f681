#include "holdfast/experiment/subject.h"

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/outputs.h"

namespace holdfast::experiment {
namespace {

std::vector<std::int64_t> sample_shape(const at::Tensor& inputs) {
  return inputs.sizes().slice(1).vec();
}

std::string text_of(const std::vector<std::int64_t>& shape) {
  return holdfast::to_string(shape);
}

}  // namespace

void check_sample_shape(const Model& model, const at::Tensor& inputs, const std::string& name) {
  const std::optional<Layout> layout = model.layout();
  if (!layout || layout->sample_shape() == sample_shape(inputs)) return;
  input_error("{}: samples have shape {}, but {} takes {}", name, text_of(sample_shape(inputs)), model.name(),
              text_of(layout->sample_shape()));
}

at::Tensor first_logits(const Model& model, const at::Tensor& inputs) {
  const at::NoGradGuard no_grad;
  // A copy: a model may write to what it is given.
  const at::Tensor logits = model.logits(inputs.slice(0, 0, 1).to(at::TensorOptions().device(model.device()).dtype(model.dtype()),
                                                                  /*non_blocking=*/false, /*copy=*/true));
  const bool value = model.output_kind() == OutputKind::kValue;
  const std::string wrong = wrong_outputs(logits.sizes(), 1, value ? OutputKind::kValue : OutputKind::kLogits);
  if (!wrong.empty()) input_error("{} {}", model.name(), wrong);
  return logits[0];
}

std::shared_ptr<const Schema> schema_of(const std::shared_ptr<const Schema>& given, const std::string& given_name,
                                        const Model* model, const at::Tensor& inputs, const std::string& name) {
  const std::vector<std::int64_t> shape = sample_shape(inputs);
  if (given) {
    if (given->layout.sample_shape() != shape)
      input_error("{}: samples have shape {}, but {} describes {}", name, text_of(shape), given_name,
                  text_of(given->layout.sample_shape()));
    return given;
  }
  const std::optional<Layout> known = model != nullptr ? model->layout() : std::nullopt;
  return share_schema(Schema::of(known && known->sample_shape() == shape ? *known : Layout::guess(shape)));
}

at::Tensor baseline_sample(const at::Tensor& baseline, const at::Tensor& inputs, const std::string& name) {
  const at::Tensor sample = baseline.dim() == inputs.dim() && baseline.size(0) == 1 ? baseline[0] : baseline;
  if (sample.sizes() != inputs.sizes().slice(1))
    input_error("{}: has shape {}; a baseline has the shape of a sample, {}", name, text_of(sample.sizes().vec()),
                text_of(sample_shape(inputs)));
  return sample;
}

void check_background(const at::Tensor& background, const at::Tensor& inputs, const std::string& name) {
  if (background.dim() != inputs.dim() || background.sizes().slice(1) != inputs.sizes().slice(1))
    input_error("{}: has shape {}; rows of shape {} are expected", name, text_of(background.sizes().vec()),
                text_of(sample_shape(inputs)));
}

}  // namespace holdfast::experiment

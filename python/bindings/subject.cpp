#include "subject.h"

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/outputs.h"
#include "python_model.h"

namespace holdfast::python {
namespace {

// What counts as a small sample, in elements, and the tile it goes in.
constexpr std::int64_t kSmallSample = 512;
constexpr std::int64_t kPythonTile = 1024;

std::string shape_of(const at::Tensor& tensor) {
  return to_string(tensor.sizes().vec());
}

void check_finite(const at::Tensor& batch, const std::string& what) {
  if (!batch.is_floating_point() || all_finite(batch)) return;
  const at::Tensor bad = at::isfinite(batch).logical_not().flatten(1).any(1);
  input_error("{}: sample {} holds NaN or infinity", what, bad.nonzero()[0].item<std::int64_t>());
}

// The model with logits for outputs, and those of the first sample, [classes]; a model that refuses the samples does so here.
// Python's models say more (look_at).
std::pair<std::shared_ptr<const Model>, at::Tensor> with_first_logits(const std::shared_ptr<Model>& model,
                                                                      const at::Tensor& inputs) {
  check_sample_shape(*model, inputs, "inputs");
  if (auto* function = dynamic_cast<PythonModel*>(model.get())) return {model, function->look_at(inputs)};
  const std::shared_ptr<const Model> settled = with_logits(model, OutputKind::kAuto, inputs);
  return {settled, first_logits(*settled, inputs)};
}

// One sample, or a batch of one.
at::Tensor checked_baseline(const at::Tensor& baseline, const at::Tensor& inputs) {
  const bool batched = baseline.dim() == inputs.dim();
  return baseline_sample(checked_batch(batched ? baseline : baseline.unsqueeze(0), "baseline"), inputs, "baseline");
}

}  // namespace

at::Tensor checked_batch(const at::Tensor& batch, const std::string& what) {
  if (batch.layout() != at::kStrided || batch.is_quantized() || batch.is_meta() || batch.is_complex())
    input_error("{}: must be a dense array of real numbers", what);
  if (batch.scalar_type() == at::kBool) input_error("{}: has bool elements; they must be numbers", what);
  if (batch.dim() < 2) input_error("{}: has shape {}; [samples, ...] is expected", what, shape_of(batch));
  if (batch.numel() == 0) input_error("{}: is empty, its shape is {}", what, shape_of(batch));
  // Autograd cannot record inference tensors, not even outside of inference mode.
  const at::Tensor plain = batch.is_inference() ? batch.clone() : batch.detach();
  check_finite(plain, what);
  return plain;
}

at::Tensor checked_labels(const at::Tensor& labels, std::int64_t samples, std::int64_t classes, const std::string& what) {
  if (!at::isIntegralType(labels.scalar_type(), /*includeBool=*/false))
    input_error("{}: has {} elements; classes must be integers", what, at::toString(labels.scalar_type()));
  if (labels.dim() != 1) input_error("{}: has shape {}; one class for each sample is expected", what, shape_of(labels));
  if (labels.size(0) != samples) input_error("{}: has {} classes for {} samples", what, labels.size(0), samples);
  const at::Tensor plain = labels.to(at::kCPU, at::kLong).contiguous();
  const std::int64_t* label = plain.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < samples; ++i) {
    if (label[i] >= 0 && (classes == 0 || label[i] < classes)) continue;
    if (classes > 0) input_error("{}: class {} of sample {} is not in 0 to {}", what, label[i], i, classes - 1);
    input_error("{}: class {} of sample {} is negative", what, label[i], i);
  }
  return plain;
}

PythonModel* python_model(const Question& question) {
  return dynamic_cast<PythonModel*>(question.model.get());
}

TileOptions tiles_of(const Question& question, const Layout& layout) {
  TileOptions tiles = question.tiles;
  if (tiles.size == 0 && python_model(question) != nullptr && layout.inputs() <= kSmallSample) tiles.size = kPythonTile;
  return tiles;
}

void with_advice(const Question& question, const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (python_model(question) == nullptr || message.find("layers") == std::string::npos) throw;
    throw Error(error.kind(), message + "; holdfast.load_model(module, example=inputs) shows the layers of a torch module");
  }
}

Examined examine(const Question& question) {
  Samples samples = question.samples;
  samples.inputs = checked_batch(samples.inputs, "inputs");
  const auto [model, logits] = with_first_logits(question.model, samples.inputs);
  samples.schema = schema_of(samples.schema, "the schema", question.model.get(), samples.inputs, "inputs");
  if (samples.targets.defined()) samples.targets = checked_labels(samples.targets, samples.count(), logits.size(0), "targets");
  if (samples.baseline.defined()) samples.baseline = checked_baseline(samples.baseline, samples.inputs);
  if (samples.background.defined()) {
    samples.background = checked_batch(samples.background, "background");
    check_background(samples.background, samples.inputs, "background");
  }
  samples.ids = at::arange(samples.count(), at::kLong);
  return {{"inputs", model->name(), model, std::move(samples)}, logits};
}

Subject examine_twice(const Question& question) {
  Subject subject = examine(question).subject;
  if (PythonModel* function = python_model(question)) function->look_twice(subject.samples.inputs);
  return subject;
}

}  // namespace holdfast::python

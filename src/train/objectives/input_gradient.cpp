#include "input_gradient.h"

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/train/objective.h"

namespace holdfast::train {

OptionSpec InputGradient::target_option() {
  return {"target", "probability", one_of({"probability", "ce"}),
          "what is explained: the predicted class's probability, or the label's cross-entropy as in the authors' code"};
}

OptionSpec InputGradient::project_option() {
  return {"project", "auto", one_of({"auto", "groups", "none"}),
          "rank without the part of the gradient that no valid row of a one-hot group can feel; auto: where the data has groups"};
}

ExplainedPoint InputGradient::at(Trainee& trainee, const TrainBatch& batch) const {
  return at(trainee, batch.inputs, quantity_ == ExplainedQuantity::kCrossEntropy ? batch.labels : at::Tensor());
}

ExplainedPoint InputGradient::at(Trainee& trainee, const at::Tensor& inputs, at::Tensor classes) const {
  ExplainedPoint point{.inputs = inputs.detach().requires_grad_(), .logits = {}, .classes = std::move(classes), .gradient = {}};
  point.logits = trainee.logits(point.inputs);
  if (!point.classes.defined()) point.classes = predicted_class(point.logits.detach());
  const LogitCotangent cotangent = logit_cotangent(point.logits, point.classes, quantity_);
  // The scale is part of what is trained: losses see true magnitudes. It is a constant, and so is its inverse in the value.
  point.gradient =
      torch::autograd::grad({point.logits}, {point.inputs}, {cotangent.value * cotangent.log_scale.exp().unsqueeze(1)},
                            /*retain_graph=*/true, /*create_graph=*/true)[0];
  return point;
}

at::Tensor InputGradient::hessian_products(Trainee& trainee, const ExplainedPoint& point, const at::Tensor& vectors) const {
  // Copies of a sample lie next to each other, so that the networks of a stack keep their parts of the batch.
  const std::int64_t copies = vectors.size(1);
  const ExplainedPoint repeated =
      at(trainee, point.inputs.detach().repeat_interleave(copies, 0), point.classes.repeat_interleave(copies, 0));
  return hessian_times(repeated, vectors.flatten(0, 1), /*create_graph=*/true).view_as(vectors);
}

at::Tensor hessian_times(const ExplainedPoint& point, const at::Tensor& vectors, bool create_graph) {
  return torch::autograd::grad({point.gradient}, {point.inputs}, {vectors}, /*retain_graph=*/true, create_graph)[0];
}

at::Tensor ce_term(Trainee& trainee, const TrainBatch& batch, const at::Tensor& logits) {
  return cross_entropies(trainee.modes_differ() ? trainee.training_logits(batch.inputs, batch.seed) : logits, batch.labels);
}

void GroupProjection::check(const Schema& schema, const std::string& objective) const {
  if (mode_ == "groups" && schema.groups.empty()) {
    usage_error("{}: the data has no one-hot groups; write project=auto or name them in a schema", objective);
  }
}

at::Tensor GroupProjection::project(const at::Tensor& gradient, const Schema& schema) const {
  return mode_ == "none" ? gradient : project_groups(gradient, schema);
}

at::Tensor norms(const at::Tensor& vectors) {
  return at::linalg_vector_norm(vectors.flatten(1), 2, at::IntArrayRef{1});
}

at::Tensor per_sample(const at::Tensor& numbers, const at::Tensor& like) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[0] = numbers.size(0);
  return numbers.view(shape);
}

}  // namespace holdfast::train

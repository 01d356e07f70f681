// A task on all of a batch, and comparisons, for tests of single explainers.
#pragma once

#include <gtest/gtest.h>

#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::testing_support {
using namespace explain;

inline ExplainTask whole_task(const Model& model, const at::Tensor& inputs) {
  const at::NoGradGuard no_graph;
  return {.model = model,
          .samples = {
              .inputs = inputs, .targets = predicted_class(model.logits(inputs)), .ids = at::arange(inputs.size(0), at::kLong)}};
}

// maps * exp(log_scale), in double precision.
inline at::Tensor true_maps(const Explanation& explanation) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(explanation.maps.dim()), 1);
  shape[0] = explanation.maps.size(0);
  return explanation.maps.to(at::kDouble) * explanation.log_scale.to(at::kDouble).exp().view(shape);
}

inline at::Tensor explained(const std::string& call, const ExplainTask& task) {
  return true_maps(explainers().make(call)->attribute(task));
}

// Largest difference relative to the largest expected value.
inline double apart(const at::Tensor& actual, const at::Tensor& expected) {
  EXPECT_EQ(actual.sizes(), expected.sizes());
  return (actual.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>() /
         expected.to(at::kDouble).abs().max().item<double>();
}

}  // namespace holdfast::testing_support

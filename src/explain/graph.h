// Small parts that explainers made of gradients share.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "holdfast/explain/explainer.h"

namespace holdfast::explain {

// The logits under the task's rule, differentiable by `inputs`; with `create_graph`, twice.
at::Tensor task_logits(const ExplainTask& task, const at::Tensor& inputs, bool create_graph = false);

// Input gradient of sum(cotangent * outputs); zeros where the outputs do not depend on the inputs. With `create_graph` the
// result can be differentiated again; without it, `keep_graph` says whether the graph of `outputs` is wanted afterwards.
at::Tensor input_gradient(const at::Tensor& outputs, const at::Tensor& inputs, const at::Tensor& cotangent, bool create_graph,
                          bool keep_graph = false);

// A linearization that holds `maps` with their graph back to `inputs`.
std::unique_ptr<Linearization> hold_graph(at::Tensor inputs, at::Tensor maps, at::Tensor log_scale, at::Tensor logits);

}  // namespace holdfast::explain

// Gradient attacks as one would first write them: one sample, the plain softmax, the whole graph, everything spelled out.
#pragma once

#include <functional>
#include <vector>

#include "holdfast/attack/attack.h"
#include "holdfast/core/torch.h"

namespace holdfast::testing_support {
using namespace attack;

struct PlainWalk {
  const Model& model;      // whose class and clean map count
  const Model& direction;  // whose gradient is followed: the model itself, or a surrogate
  Norm norm = Norm::kL2;
  double epsilon = 1, step = 0.1;
  std::int64_t steps = 10;

  using Objective = std::function<at::Tensor(const at::Tensor& map)>;

  std::int64_t label(const at::Tensor& x) const { return model.logits(x.unsqueeze(0)).argmax(1).item<std::int64_t>(); }

  // d p_c / dx of one sample, flat.
  static at::Tensor map_at(const Model& of, const at::Tensor& x, std::int64_t c, bool create_graph) {
    const at::Tensor p = at::softmax(of.logits(x), 1)[0][c];
    return torch::autograd::grad({p}, {x}, {}, true, create_graph)[0].flatten();
  }
  at::Tensor clean_map(const at::Tensor& clean) const {
    const at::Tensor x = clean.unsqueeze(0).clone().requires_grad_();
    return map_at(model, x, label(clean), false).detach();
  }

  at::Tensor project(const at::Tensor& x, const at::Tensor& clean) const {
    const at::Tensor move = x - clean;
    if (norm == Norm::kLinf) return clean + move.clamp(-epsilon, epsilon);
    const double size = move.norm().item<double>();
    return size > epsilon ? clean + move * (epsilon / size) : x;
  }

  at::Tensor step_along(const at::Tensor& x, const at::Tensor& g) const {
    if (norm == Norm::kLinf) return x - step * g.sign();
    const double size = g.norm().item<double>();
    return size > 0 ? x - step * g / size : x;
  }

  // Gradient of an objective of the map by the input, at x.
  at::Tensor gradient(const at::Tensor& at, std::int64_t c, const Objective& objective) const {
    const at::Tensor x = at.unsqueeze(0).clone().requires_grad_();
    const at::Tensor value = objective(map_at(direction, x, c, true));
    return torch::autograd::grad({value}, {x}, {}, false, false, true)[0][0];
  }

  // All points of the descent of `objective`, the start first.
  std::vector<at::Tensor> iterates(const at::Tensor& clean, const at::Tensor& start, const Objective& objective) const {
    const std::int64_t c = label(clean);
    std::vector<at::Tensor> all{start};
    for (std::int64_t t = 0; t < steps; ++t) {
      all.push_back(project(step_along(all.back(), gradient(all.back(), c, objective)), clean));
    }
    return all;
  }
};

}  // namespace holdfast::testing_support

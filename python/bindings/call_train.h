// The functions behind holdfast.objective and holdfast.train.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/utils/pybind.h>

#include "holdfast/core/json.h"
#include "holdfast/data/schema.h"
#include "holdfast/model/model.h"
#include "holdfast/train/train_config.h"

namespace holdfast::python {

struct TrainStep {
  at::Tensor inputs, labels;
  std::shared_ptr<Schema> schema;  // null: what the shape says
  std::uint64_t seed = 0;
  double progress = 1;
};

// The loss of a batch with its graph, and its parts.
using StepLoss = std::pair<at::Tensor, std::vector<std::pair<std::string, at::Tensor>>>;
// `training` and `evaluating` call the module in the mode of that name; where the two cannot differ, `training` is enough.
StepLoss module_loss(const std::string& objective, const py::function& training, const py::function& evaluating,
                     bool modes_differ, const TrainStep& step);
// The same for a model whose layers are seen; its parameters get the gradients.
StepLoss network_loss(const std::string& objective, const Model& model, const TrainStep& step);

struct Training {
  TrainConfig config;
  at::Tensor inputs, labels;
  std::shared_ptr<Schema> schema;
  double validation = 0.2, test = 0.2;
  std::shared_ptr<Model> start;  // null: fresh weights of the architecture
  std::string out;               // empty: nothing is written
  bool restart = false;
};
struct Trained {
  std::shared_ptr<Model> model;
  Json results, history;
};
Trained train(const Training& training);

void bind_train(py::module_& module);

}  // namespace holdfast::python

// Objectives: (network, batch) -> loss with named parts. The training loop knows none of them by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/registry.h"
#include "holdfast/data/schema.h"
#include "holdfast/model/network.h"

namespace holdfast {

struct TrainBatch {
  at::Tensor inputs;      // [B, sample...]
  at::Tensor labels;      // [B] int64
  at::Tensor sample_ids;  // [B] int64: position in the dataset
  const Schema& schema;
  std::uint64_t seed = 0;  // of this step
  double progress = 0;     // share of the training that is done, [0, 1)
};

struct Loss {
  at::Tensor total;                                       // scalar, differentiable by the network's parameters
  std::vector<std::pair<std::string, at::Tensor>> parts;  // detached scalars for the history
};

class Objective {
 public:
  explicit Objective(std::string name) : name_(std::move(name)) {}
  virtual ~Objective() = default;
  virtual Loss loss(Network& network, const TrainBatch& batch) const = 0;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

const Registry<Objective>& objectives();

// A recipe: an objective, an activation and optimiser settings under one name. What a config sets itself wins.
struct Recipe {
  std::string name;
  std::string objective = "ce";  // call
  std::string activation = "";   // call: "softplus(beta=0.5)"; empty: the architecture's own
  double weight_decay = 0;
};

const Registry<Recipe>& recipes();

}  // namespace holdfast

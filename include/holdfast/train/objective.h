// Objectives: what a training makes small, as named terms with a value for each sample.
//
//     loss = sum over the terms of weight * mean over the samples of the term's value
//
// The training loop knows no objective by name. Values are one for each sample, and weights are kept apart from them, so that
// several networks of one shape (seeds, a grid of weights) can be trained as one stack (train_many.h): their samples lie one
// network after the other in one batch, and samples never mix.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/schema.h"
#include "holdfast/model/network.h"

namespace holdfast::train {

struct TrainBatch {
  at::Tensor inputs;      // [B, sample...]
  at::Tensor labels;      // [B] int64
  at::Tensor sample_ids;  // [B] int64 on the CPU: position in the dataset
  const Schema& schema;
  std::uint64_t seed = 0;  // of this step
  double progress = 0;     // share of the training that is done, [0, 1)
};

// The model in training, as objectives see it. Both functions are differentiable by the inputs and the parameters, any number of
// times.
class Trainee {
 public:
  virtual ~Trainee() = default;
  // Batch statistics (running ones are updated) and dropout keyed by `seed`: for the term that makes the model predict.
  virtual at::Tensor training_logits(const at::Tensor& inputs, std::uint64_t seed) = 0;
  // Running statistics, no dropout, so that samples do not couple: for every term about explanations.
  virtual at::Tensor logits(const at::Tensor& inputs) = 0;
  // Whether the two differ at all; where they do not, one pass serves both.
  virtual bool modes_differ() const = 0;
  // For objectives that look inside; null where there is nothing to see.
  virtual const Network* network() const { return nullptr; }
};

// Makes the trainee of a network, which must outlive it. `share`: what this rank has of each batch, where several train together;
// read at every pass.
std::unique_ptr<Trainee> make_trainee(Network& network, const BatchShare* share = nullptr);

struct Term {
  std::string name;   // as in history.jsonl: "ce", "gap", "curvature"
  double weight = 1;  // 0: reported only, as "norm" is
};

class Objective {
 public:
  // `name`: the canonical call. `weights`: those of its options that are weights of terms and change no value.
  explicit Objective(std::string name, const std::vector<std::string>& weights = {});
  virtual ~Objective() = default;

  // What the loss is made of, with the weights at this share of the training; names and their order never change.
  virtual std::vector<Term> terms(double progress) const = 0;
  // The terms' values, in their order, [B] each, differentiable by the parameters. `trainee` may be a stack: then weights of
  // linear layers have a leading dimension, one for each network, and the batch is cut into as many equal parts.
  virtual std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const = 0;
  // Throws kUsage when the objective cannot train on these samples.
  virtual void check_samples(const Schema&) const {}
  // Throws kUsage, before any training, when the objective cannot train this network or on these samples.
  virtual void check(const Network&, const Schema& schema) const { check_samples(schema); }

  // Whether a sample's values depend on the other samples of its batch. Then ranks cannot each take a part of it.
  virtual bool compares_samples() const { return false; }

  // Objectives whose optimum is known without steps say so, and put it into the network's weights, in place: then a training is
  // one epoch that consists of it.
  virtual bool fits() const { return false; }
  virtual void fit(const Network& network, const Dataset& dataset, std::uint64_t seed) const;

  const std::string& name() const { return name_; }
  // The name without its weights. Objectives of one kind have the same values.
  const std::string& kind() const { return kind_; }

 private:
  std::string name_, kind_;
};

const Registry<Objective>& objectives();
Registry<Objective>& objectives_to_extend();  // for methods that are not built in

struct Loss {
  at::Tensor total;                                       // scalar, differentiable by the network's parameters
  std::vector<std::pair<std::string, at::Tensor>> parts;  // detached means, without their weights
};
Loss loss_of(const Objective& objective, Trainee& trainee, const TrainBatch& batch);
Loss loss_of(const Objective& objective, Network& network, const TrainBatch& batch);

// Gives -log p_y of each sample, [B]: the first term of every objective.
at::Tensor cross_entropies(const at::Tensor& logits, const at::Tensor& labels);

// A recipe: an objective, an activation and optimiser settings under one name. What a config sets itself wins.
struct Recipe {
  std::string name;
  std::string objective = "ce";  // call
  std::string activation = "";   // call: "softplus(beta=0.5)"; empty: the architecture's own
  double weight_decay = 0;
};

const Registry<Recipe>& recipes();

}  // namespace holdfast::train

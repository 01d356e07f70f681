// Optimisers. Their whole state is one tensor for each parameter and slot and a count of steps, so that a checkpoint holds
// all of it and a resumed training makes the same steps. The arithmetic is torch::optim's, operation for operation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"
#include "holdfast/model/network.h"

namespace holdfast::train {

class Optimizer {
 public:
  // `slots`: what is remembered of each parameter, by name.
  explicit Optimizer(std::vector<std::string> slots) : slots_(std::move(slots)) {}
  virtual ~Optimizer() = default;

  // Takes over the trainable ones of `parameters`, with fresh state. `weight_decay` is the L2 penalty's: weight_decay * p is
  // added to the gradient of p.
  void start(const std::vector<Parameter>& parameters, double weight_decay);
  // The tensors it moves, in order.
  std::vector<at::Tensor> parameters() const;
  // The gradients of a scalar, one for each of parameters(); zeros where it does not depend on one.
  std::vector<at::Tensor> gradients_of(const at::Tensor& loss) const;
  // One step against `gradients`, one for each of parameters().
  void step(std::span<const at::Tensor> gradients, double learning_rate);

  // Makes one step against the gradients of a scalar.
  void minimise(const at::Tensor& loss, double learning_rate);

  // Moves all parameters with a few operations on lists of tensors instead of a few for each: on a GPU, where every operation has
  // to be asked for, and whoever wants to compare. The same arithmetic.
  void move_together(bool on) { together_ = on; }

  std::int64_t steps() const { return steps_; }
  // "<slot>.<parameter>" for every slot and parameter; shares storage.
  std::vector<Parameter> state() const;
  // What state() and steps() gave; a missing or misshapen tensor throws kInput naming `where`.
  void restore(const std::vector<Parameter>& state, std::int64_t steps, const std::string& where);

 protected:
  // Moves one parameter; `state` has a tensor for each slot. steps() counts this step too.
  virtual void update(at::Tensor& parameter, const at::Tensor& gradient, std::span<at::Tensor> state,
                      double learning_rate) const = 0;
  // Moves all of them; `state` has the list of all parameters' tensors for each slot.
  using Tensors = std::vector<at::Tensor>;
  virtual void update_together(const Tensors& parameters, Tensors gradients, std::span<const Tensors> state,
                               double learning_rate) const = 0;

 private:
  struct Entry {
    std::string name;
    at::Tensor parameter;
    std::vector<at::Tensor> state;
  };
  std::vector<std::string> slots_;
  std::vector<Entry> entries_;
  double weight_decay_ = 0;
  std::int64_t steps_ = 0;
  bool together_ = false;
};

const Registry<Optimizer>& optimizers();

}  // namespace holdfast::train

#include "holdfast/train/optimizer.h"

#include <algorithm>

#include "holdfast/core/torch.h"

namespace holdfast::train {

void Optimizer::start(const std::vector<Parameter>& parameters, double weight_decay) {
  entries_.clear();
  steps_ = 0;
  weight_decay_ = weight_decay;
  for (const Parameter& parameter : parameters) {
    if (!parameter.trainable) continue;
    Entry entry{parameter.name, parameter.tensor, {}};
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) entry.state.push_back(at::zeros_like(parameter.tensor.detach()));
    entries_.push_back(std::move(entry));
  }
  together_ = !entries_.empty() && !entries_.front().parameter.is_cpu();
}

std::vector<at::Tensor> Optimizer::parameters() const {
  std::vector<at::Tensor> tensors;
  for (const Entry& entry : entries_) tensors.push_back(entry.parameter);
  return tensors;
}

void Optimizer::step(std::span<const at::Tensor> gradients, double learning_rate) {
  HOLDFAST_CHECK(gradients.size() == entries_.size());
  const at::NoGradGuard no_grad;
  ++steps_;
  if (together_) {
    const Tensors all = parameters();
    std::vector<Tensors> state(slots_.size());
    for (const Entry& entry : entries_) {
      for (std::size_t slot = 0; slot < slots_.size(); ++slot) state[slot].push_back(entry.state[slot]);
    }
    const Tensors plain(gradients.begin(), gradients.end());
    update_together(all, weight_decay_ == 0 ? plain : at::_foreach_add(plain, all, weight_decay_), state, learning_rate);
    return;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const at::Tensor gradient = weight_decay_ == 0 ? gradients[i] : gradients[i].add(entry.parameter, weight_decay_);
    update(entry.parameter, gradient, entry.state, learning_rate);
  }
}

std::vector<at::Tensor> Optimizer::gradients_of(const at::Tensor& loss) const {
  const std::vector<at::Tensor> all = parameters();
  std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, all, {}, std::nullopt, false, /*allow_unused=*/true);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = at::zeros_like(all[i]);
  }
  return gradients;
}

void Optimizer::minimise(const at::Tensor& loss, double learning_rate) {
  step(gradients_of(loss), learning_rate);
}

std::vector<Parameter> Optimizer::state() const {
  std::vector<Parameter> result;
  for (const Entry& entry : entries_) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot)
      result.push_back({slots_[slot] + "." + entry.name, entry.state[slot]});
  }
  return result;
}

void Optimizer::restore(const std::vector<Parameter>& state, std::int64_t steps, const std::string& where) {
  for (Parameter& mine : this->state()) {
    const auto found = std::find_if(state.begin(), state.end(), [&](const Parameter& other) { return other.name == mine.name; });
    if (found == state.end()) input_error("{}: the optimiser's '{}' is missing", where, mine.name);
    if (found->tensor.sizes() != mine.tensor.sizes())
      input_error("{}: the optimiser's '{}' has another shape than its parameter", where, mine.name);
    mine.tensor.copy_(found->tensor);
  }
  steps_ = steps;
}

}  // namespace holdfast::train

// Runs a network in one walk over its nodes.

#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"
#include "holdfast/model/network.h"
#include "operations.h"

namespace holdfast::model {
namespace {

// The beta of each activation in turn; 0 where the activation stays as it is.
class Surrogates {
 public:
  Surrogates(const Rule& rule, const Network& network) : betas_(rule.softplus_beta) {
    if (betas_.empty()) return;
    const auto activations = static_cast<std::size_t>(network.activations());
    if (betas_.size() != 1 && betas_.size() != activations) {
      usage_error("the softplus rule has {} values of beta, the network {} activations; give one for all or one for each",
                  betas_.size(), activations);
    }
    for (const double beta : betas_) {
      if (!(beta > 0)) usage_error("the softplus rule's beta is {}; it must be above 0", beta);
    }
  }

  at::Tensor activate_next(const op::Activation& activation, const at::Tensor& x) {
    if (betas_.empty()) return activate(activation, x);
    const double beta = betas_.size() == 1 ? betas_.front() : betas_[next_++];
    return activate_smoothed(activation, x, beta);
  }

 private:
  const std::vector<double>& betas_;
  std::size_t next_ = 0;
};

// Keeps each element with probability 1 - rate and scales what is left, so that the mean stays. `first`: the first row's place in
// its batch.
at::Tensor drop(const op::Dropout& dropout, const at::Tensor& x, std::uint64_t seed, const std::string& node,
                std::int64_t first) {
  if (dropout.rate == 0) return x;
  const at::Tensor rows = at::arange(first, first + x.size(0), at::kLong);
  const at::Tensor kept = random_uniform(x.sizes().slice(1), rows, seed, "dropout." + node, x.device()) >= dropout.rate;
  return x * kept.to(x.options()).div_(1 - dropout.rate);
}

// Calls compute(node, operands) for every node but the input, in order, and gives the last value. Values are let go
// after their last reader, so that without gradients the memory is that of the widest cut, not of the whole network.
// `kept`, where given, holds all of them instead.
template <class Compute>
at::Tensor walk(const std::vector<Node>& nodes, const std::vector<int>& last_reader, const at::Tensor& x, const Compute& compute,
                std::vector<at::Tensor>* kept = nullptr) {
  HOLDFAST_CHECK(!nodes.empty());
  std::vector<at::Tensor> passing;
  std::vector<at::Tensor>& values = kept != nullptr ? *kept : passing;
  values.resize(nodes.size());
  values[0] = x;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    values[i] = compute(node, Operands(values, node.inputs));
    if (kept != nullptr) continue;
    for (const int input : node.inputs) {
      if (last_reader[static_cast<std::size_t>(input)] == static_cast<int>(i)) values[static_cast<std::size_t>(input)].reset();
    }
  }
  return values.back();
}

}  // namespace

RunResult Network::run(const at::Tensor& x, const Rule& rule) const {
  RunResult result;
  Surrogates surrogates(rule, *this);
  const auto compute = [&](const Node& node, const Operands& operands) {
    const auto* activation = std::get_if<op::Activation>(&node.operation);
    if (activation == nullptr) return evaluate(node.operation, operands);
    if (rule.keep_pre_activations) result.pre_activations.push_back(operands[0]);
    return surrogates.activate_next(*activation, operands[0]);
  };
  result.logits = walk(nodes_, last_reader_, x, compute, rule.keep_values ? &result.values : nullptr);
  return result;
}

at::Tensor Network::run_training(const at::Tensor& x, std::uint64_t seed, const BatchShare* share) {
  const std::int64_t first = share == nullptr ? 0 : share->rows.first;
  return walk(nodes_, last_reader_, x, [&](const Node& node, const Operands& operands) {
    if (const auto* norm = std::get_if<op::BatchNorm>(&node.operation)) return batch_norm_training(*norm, operands[0], share);
    if (const auto* dropout = std::get_if<op::Dropout>(&node.operation))
      return drop(*dropout, operands[0], seed, node.name, first);
    return evaluate(node.operation, operands);
  });
}

}  // namespace holdfast::model

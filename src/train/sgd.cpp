// Stochastic gradient descent with momentum.
//     v = momentum v + g     p -= rate v, or rate (g + momentum v) with Nesterov's

#include "holdfast/core/torch.h"
#include "holdfast/train/optimizer.h"

namespace holdfast::train::sgd {

const MethodInfo kInfo{
    .name = "sgd",
    .summary = "stochastic gradient descent with momentum",
    .citation = "Sutskever et al., On the importance of initialization and momentum in deep learning, ICML 2013",
    .options = {{"momentum", 0.9, between(0, 0.999999), "memory of the gradient; 0 for plain descent"},
                {"nesterov", false, anything(), "look ahead by one momentum step"}}};

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const Options& options)
      : Optimizer({"velocity"}), momentum_(options.real("momentum")), nesterov_(options.flag("nesterov")) {}

 protected:
  void update(at::Tensor& parameter, const at::Tensor& gradient, std::span<at::Tensor> state,
              double learning_rate) const override {
    at::Tensor& velocity = state[0];
    velocity.mul_(momentum_).add_(gradient);
    parameter.add_(nesterov_ ? gradient.add(velocity, momentum_) : velocity, -learning_rate);
  }

  void update_together(const Tensors& parameters, Tensors gradients, std::span<const Tensors> state,
                       double learning_rate) const override {
    const Tensors& velocities = state[0];
    at::_foreach_mul_(velocities, momentum_);
    at::_foreach_add_(velocities, gradients);
    at::_foreach_add_(parameters, nesterov_ ? at::_foreach_add(gradients, velocities, momentum_) : velocities, -learning_rate);
  }

 private:
  double momentum_;
  bool nesterov_;
};

void add_to(Registry<Optimizer>& registry) {
  registry.add<Sgd>(kInfo);
}

}  // namespace holdfast::train::sgd

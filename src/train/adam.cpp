// Adam: steps along the running mean of the gradient over the root of the running mean of its square, both corrected for
// their start at zero.
//     m = b1 m + (1 - b1) g     v = b2 v + (1 - b2) g^2     p -= rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
#include <cmath>

#include "holdfast/core/torch.h"
#include "holdfast/train/optimizer.h"

namespace holdfast::train::adam {

const MethodInfo kInfo{.name = "adam",
                       .summary = "Adam: steps scaled by running means of the gradient and its square",
                       .citation = "Kingma & Ba, Adam: A Method for Stochastic Optimization, ICLR 2015",
                       .options = {{"beta1", 0.9, between(0, 0.999999), "memory of the gradient"},
                                   {"beta2", 0.999, between(0, 0.999999), "memory of its square"},
                                   {"epsilon", 1e-8, above(0), "added to the root"}}};

class Adam final : public Optimizer {
 public:
  explicit Adam(const Options& options)
      : Optimizer({"mean", "square"}),
        beta1_(options.real("beta1")),
        beta2_(options.real("beta2")),
        epsilon_(options.real("epsilon")) {}

 protected:
  void update(at::Tensor& parameter, const at::Tensor& gradient, std::span<at::Tensor> state,
              double learning_rate) const override {
    at::Tensor &mean = state[0], &square = state[1];
    mean.mul_(beta1_).add_(gradient, 1 - beta1_);
    square.mul_(beta2_).addcmul_(gradient, gradient, 1 - beta2_);
    const double t = static_cast<double>(steps());
    const at::Tensor root = (square.sqrt() / std::sqrt(1 - std::pow(beta2_, t))).add_(epsilon_);
    parameter.addcdiv_(mean, root, -learning_rate / (1 - std::pow(beta1_, t)));
  }

  void update_together(const Tensors& parameters, Tensors gradients, std::span<const Tensors> state,
                       double learning_rate) const override {
    const Tensors &means = state[0], &squares = state[1];
    at::_foreach_mul_(means, beta1_);
    at::_foreach_add_(means, gradients, 1 - beta1_);
    at::_foreach_mul_(squares, beta2_);
    at::_foreach_addcmul_(squares, gradients, gradients, 1 - beta2_);
    const double t = static_cast<double>(steps());
    const Tensors roots = at::_foreach_sqrt(squares);
    at::_foreach_div_(roots, std::sqrt(1 - std::pow(beta2_, t)));
    at::_foreach_add_(roots, epsilon_);
    at::_foreach_addcdiv_(parameters, means, roots, -learning_rate / (1 - std::pow(beta1_, t)));
  }

 private:
  double beta1_, beta2_, epsilon_;
};

void add_to(Registry<Optimizer>& registry) {
  registry.add<Adam>(kInfo);
}

}  // namespace holdfast::train::adam

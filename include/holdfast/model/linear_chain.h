// Networks that are chains of linear layers, run without autograd: forward, input gradient, and the gradient of that gradient,
// in blocks of rows that stay in the processor's cache. Autograd's path (Network::run) is the reference; results differ from it
// by rounding alone. A row's numbers depend on the row alone, not on its block, and are the same with AVX2 and with AVX-512.
//
//     chain     [flatten], [affine], linear, activation, linear, ..., linear       activation: relu, leaky_relu or softplus
//
// With W_l the layers, z_l = W_l a_{l-1} + b_l, a_l = s(z_l), D_l = s'(z_l), for a cotangent c(z) on the logits:
//     pull         g_l = W_{l+1}' d_{l+1},  d_l = D_l g_l,  d_L = c            the map    m = W_1' d_1
//     push         t_l = W_l D_{l-1} t_{l-1},  t_1 = W_1 v                     the logits' change along v
//     pull_again   e_l = D_l W_{l+1}' e_{l+1} + s''(z_l) t_l g_l,  e_L = h     the gradient of <v, m>: W_1' e_1
// where h is the gradient of <t_L, c(z)> by the logits, which the caller knows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/model/chain_bend.h"
#include "holdfast/model/network.h"

namespace holdfast::model {

namespace chain {
struct Chain;
struct Layer;
struct Loops;
struct Shallow;
}  // namespace chain

// What a chain is made of: tensors on the inputs' device, of their type.
struct ChainParts {
  struct Layer {
    at::Tensor weight, bias;                // bias may be undefined
    chain::Bend bend = chain::Bend::kNone;  // none: the last layer
    double slope = 0;                       // of negative values; softplus has it too: slope x + (1 - slope) softplus(x)
    double beta = 0;                        // of softplus
  };
  std::vector<Layer> layers;
  at::Tensor scale = {}, shift = {};  // of the inputs, one number or one for each; undefined: none

  // The network under this rule, for inputs like these. Nothing where it is no chain.
  static std::optional<ChainParts> of(const Network& network, const Rule& rule, const at::Tensor& inputs);
};

class LinearChain {
 public:
  // The network under this rule, for inputs like these. Nothing where it is no such chain, has more weights than a cache holds,
  // or is not in single precision; where the inputs are not on the processor or do not fit; and where the processor, or
  // ATEN_CPU_CAPABILITY, has no AVX2.
  static std::optional<LinearChain> of(const Network& network, const Rule& rule, const at::Tensor& inputs);

  LinearChain(LinearChain&&) noexcept;
  LinearChain& operator=(LinearChain&&) noexcept;
  ~LinearChain();

  std::int64_t inputs() const;
  std::int64_t classes() const;
  // Rows of a block, at most.
  std::int64_t block_rows() const;
  // Numbers that the passes keep of a block; `twice`: with what pull_again needs.
  std::int64_t kept(bool twice) const;

  // The passes of one block of `rows` rows; all arrays have one row after the other. `kept` goes from pass to pass.
  void forward(const float* points, std::int64_t rows, bool twice, float* kept, float* logits);
  // `twice`: once a block, before its first push.
  void pull(const float* cotangent, std::int64_t rows, bool twice, float* kept, float* gradient);
  void push(const float* direction, std::int64_t rows, const float* kept, float* change);
  void pull_again(const float* cotangent, std::int64_t rows, const float* kept, float* gradient);

 private:
  friend class ChangedRows;
  LinearChain();
  chain::Chain chain();

  std::vector<at::Tensor> weights_;  // what the layers point to
  std::vector<chain::Layer> layers_;
  std::vector<float> scale_, shift_;  // of the inputs; empty: none
  const chain::Loops* loops_ = nullptr;
  bool bends_ = false;       // whether any activation has a second derivative
  std::int64_t hidden_ = 0;  // units of all hidden layers
  std::int64_t widest_ = 0;  // of the inputs and all layers
  std::vector<float> scratch_;
};

// The input gradient of <cotangent, logits>, cotangent [B, classes]; undefined where the network is no such chain.
at::Tensor chain_input_gradient(const Network& network, const Rule& rule, const at::Tensor& inputs, const at::Tensor& cotangent);

}  // namespace holdfast::model

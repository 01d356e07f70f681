// A network as a short list of operations with their weights, run by us.
//
// Because the operations are plain data, everything that looks inside a model is one walk over one list: softplus
// surrogates, layer-wise explainers, interval bounds, fused code. Built-in architectures are Networks; TorchScript files
// are read into one when every operation is known.
//
// Node i reads the values of earlier nodes (`inputs`); node 0 is the input [B, sample...]; the last node's value is the
// logits [B, classes]. Weights are tensors inside the operations; names are "<node name>.weight" and so on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/rank_sum.h"
#include "holdfast/core/stages.h"

namespace holdfast::model {

namespace op {

struct Input {};
// y = x * scale + shift, per channel (dimension 1), one number for all, or arrays of a sample's rank: a model's own
// preprocessing. Not trained.
struct Affine {
  at::Tensor scale, shift;
};
// (x - mean) / max(deviation, 1/sqrt(N)) per sample, after multiplying by `factor` (Chen et al.'s nets, facts of TensorFlow's
// per_image_standardization).
struct Standardize {
  double factor = 255;
};
// Reorders channels: RGB -> BGR for weights that were trained that way.
struct ReverseChannels {};
// On the last dimension; weight [out, in], bias may be undefined.
struct Linear {
  at::Tensor weight, bias;
};
struct Conv2d {
  at::Tensor weight, bias;
  std::vector<std::int64_t> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
};
// Batch normalisation over channels. `mean` and `variance` are the running statistics; weight and bias may be undefined.
struct BatchNorm {
  at::Tensor weight, bias, mean, variance;
  double epsilon = 1e-5;
  double momentum = 0.1;
};
struct Activation {
  enum class Kind { kRelu, kRelu6, kLeakyRelu, kSoftplus, kElu, kGelu, kSilu, kTanh, kSigmoid };
  Kind kind = Kind::kRelu;
  double parameter = 0;  // slope of leaky_relu, beta of softplus, alpha of elu
};
struct MaxPool2d {
  std::vector<std::int64_t> kernel, stride, padding{0, 0}, dilation{1, 1};
  bool ceil_mode = false;
};
struct AvgPool2d {
  std::vector<std::int64_t> kernel, stride, padding{0, 0};
  bool ceil_mode = false, count_include_pad = true;
};
struct AdaptiveAvgPool2d {
  std::vector<std::int64_t> size{1, 1};
};
// Over the given dimensions.
struct Mean {
  std::vector<std::int64_t> dims;
  bool keep = false;
};
// Amounts before and after, last dimension first, as torch's constant_pad_nd.
struct Pad {
  std::vector<std::int64_t> amounts;
  double value = 0;
};
// stop -1: to the end.
struct Slice {
  std::int64_t dim = 2, start = 0, stop = -1, step = 1;
};
// Adds two values.
struct Add {};
// Multiplies by a constant.
struct Multiply {
  double factor = 1;
};
struct Concat {
  std::int64_t dim = 1;
};
struct Flatten {
  std::int64_t start = 1;
};
// Shape of a sample, without the batch dimension.
struct Reshape {
  std::vector<std::int64_t> shape;
};
// [B, 2, ...] -> [2B, ...]: both sides of a pair, one after the other, go through the same encoder ...
struct FoldSides {};
// Maps [2B, d] to [B, d]: the absolute difference of the two sides.
struct SideDistance {};
// Edges of a graph [B, E] -> D^-1/2 (A + I) D^-1/2 [B, n, n], A with the magnitudes' degrees (weights may be negative).
struct Adjacency {
  std::int64_t nodes = 0;
  at::Tensor index = {};  // where the matrix's elements lie among the edges; made by Network::add
};
// Multiplies two batches of matrices.
struct MatMul {};
// Acts in training only.
struct Dropout {
  double rate = 0.5;
};
// Multiplies two values element by element; sizes of 1 are stretched.
struct Product {};
struct Abs {};
// One position of a dimension, which goes away.
struct SelectIndex {
  std::int64_t dim = 1, index = 0;
};
// All dimensions in their new order; the batch's stays first.
struct Permute {
  std::vector<std::int64_t> dims;
};

}  // namespace op

using Operation = std::variant<op::Input, op::Affine, op::Standardize, op::ReverseChannels, op::Linear, op::Conv2d, op::BatchNorm,
                               op::Activation, op::MaxPool2d, op::AvgPool2d, op::AdaptiveAvgPool2d, op::Mean, op::Pad, op::Slice,
                               op::Add, op::Multiply, op::Concat, op::Flatten, op::Reshape, op::FoldSides, op::SideDistance,
                               op::Adjacency, op::MatMul, op::Dropout, op::Product, op::Abs, op::SelectIndex, op::Permute>;

// Whether the operation is of one of these kinds: is_one_of<op::Linear, op::Conv2d>(operation).
template <class... Kinds>
bool is_one_of(const Operation& operation) {
  return (std::holds_alternative<Kinds>(operation) || ...);
}

// "conv2d": the operation's name in `describe`.
std::string operation_name(const Operation& operation);

struct Node {
  std::string name;
  Operation operation;
  std::vector<int> inputs;  // positions of earlier nodes
};

// How to run.
struct Rule {
  // Softplus with this beta in place of every piecewise-linear activation (leaky ones keep their slope as a line plus
  // softplus). One value for all activations or one for each, in order; empty: exactly as the network is.
  std::vector<double> softplus_beta;
  bool keep_pre_activations = false;
  bool keep_values = false;

  static Rule exact() { return {}; }
  static Rule softplus(double beta) { return {.softplus_beta = {beta}}; }
};

struct RunResult {
  at::Tensor logits;
  std::vector<at::Tensor> pre_activations;  // one for each activation, in order, when asked for
  std::vector<at::Tensor> values;           // one for each node, when asked for: what layer-wise explainers walk back over
};

struct Parameter {
  std::string name;
  at::Tensor tensor;
  bool trainable = true;  // false: running statistics, preprocessing
};

// What a rank has of a batch that several ranks train on together.
struct BatchShare {
  RankSum* ranks = nullptr;
  RankRows rows = {};  // in the whole batch
};

class Network {
 public:
  // Appends a node and returns its position. Without `inputs` it reads the node before it.
  int add(std::string name, Operation operation, std::vector<int> inputs = {});

  const std::vector<Node>& nodes() const { return nodes_; }
  int activations() const;
  // Whether logits(a x) = logits(x) for every a > 0: all that reads the input standardises it first. (A sample that is flat
  // but for rounding meets the floor of its deviation and is the exception.)
  bool scale_invariant() const;

  // Evaluation: running statistics, no dropout. Differentiable in x and in the parameters, any number of times. Thread-safe.
  RunResult run(const at::Tensor& x, const Rule& rule = {}) const;
  at::Tensor logits(const at::Tensor& x) const { return run(x).logits; }

  // Training: batch statistics (running ones are updated), dropout keyed by `seed`. Not thread-safe. With a share of a batch the
  // statistics are those of the whole batch, and the result can be differentiated once.
  at::Tensor run_training(const at::Tensor& x, std::uint64_t seed, const BatchShare* share = nullptr);

  // Tensors share storage with the network: an optimiser that writes to them trains it.
  std::vector<Parameter> parameters() const;
  std::int64_t parameter_count() const;  // trainable elements
  void require_grad(bool on);            // for trainable ones

  // Copies values by name; a missing, unknown, misshapen or non-finite one throws kInput naming it and `where`. Preprocessing
  // may be missing: the architecture's options set it. PyTorch's `num_batches_tracked` is passed over.
  void load(const std::vector<Parameter>& values, const std::string& where);

  // A deep copy, on another device or in another precision. Its parameters do not require gradients. Assigning a Network
  // shares the tensors instead.
  Network clone() const;
  Network to(at::Device device) const;
  Network to(at::ScalarType type) const;
  at::Device device() const;
  at::ScalarType dtype() const;

 private:
  std::vector<Node> nodes_;
  std::vector<int> last_reader_;  // of each node's value: after it the value is let go
};

// "tanh at node 'act'": for messages about what a network must not have.
std::string node_in_words(const Node& node);
bool reads_the_node_before(const Network& network, std::size_t node);
// What keeps a network from being affine maps in front, then linear layers and activations in turn, a linear layer at the end, as
// a phrase; nothing where it is so. `takes` says which activations may stand there. Dropout does nothing and may stand anywhere.
std::optional<std::string> what_breaks_chain(const Network& network, const std::function<bool(const op::Activation&)>& takes);

}  // namespace holdfast::model

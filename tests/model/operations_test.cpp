// Every operation against torch's own function or its definition, and its first two derivatives against finite differences.
#include <functional>
#include <set>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "differences.h"
#include "holdfast/model/network.h"
#include "support/small_models.h"

namespace holdfast::model {
namespace {

using testing_support::normal_tensor;
namespace F = torch::nn::functional;

struct Row {
  std::string name;
  std::vector<std::int64_t> shape;  // of the input
  Operation operation;
  std::function<at::Tensor(const at::Tensor&)> expected;
  bool with_twice_the_input = false;  // the second operand is 2 x
};

at::Tensor random(at::IntArrayRef shape, std::uint64_t seed) {
  return normal_tensor(shape, seed, at::kDouble);
}

Network network_of(const Row& row) {
  Network network;
  const int input = network.add("input", op::Input{});
  if (row.with_twice_the_input) {
    const int twice = network.add("twice", op::Multiply{.factor = 2});
    network.add("node", row.operation, {input, twice});
  } else {
    network.add("node", row.operation);
  }
  return network;
}

std::vector<Row> weighted_rows() {
  const at::Tensor weight = random({4, 5}, 1), bias = random({4}, 2), kernel = random({4, 1, 3, 2}, 3), scale = random({2}, 4),
                   shift = random({2}, 5);
  const at::Tensor mean = random({2}, 6), variance = random({2}, 7).square() + 0.1;
  return {
      {"linear", {3, 5}, op::Linear{weight, bias}, [=](const at::Tensor& x) { return F::linear(x, weight, bias); }},
      {"linear without bias", {3, 2, 5}, op::Linear{weight, {}}, [=](const at::Tensor& x) { return at::matmul(x, weight.t()); }},
      {"conv2d",
       {2, 2, 7, 6},
       op::Conv2d{.weight = kernel, .bias = bias, .stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2},
       [=](const at::Tensor& x) {
         return F::conv2d(x, kernel, F::Conv2dFuncOptions().bias(bias).stride({2, 1}).padding({1, 2}).dilation({1, 2}).groups(2));
       }},
      {"batch_norm",
       {3, 2, 4, 3},
       op::BatchNorm{scale, shift, mean, variance, 1e-3},
       [=](const at::Tensor& x) {
         return F::batch_norm(x, mean, variance, F::BatchNormFuncOptions().weight(scale).bias(shift).eps(1e-3));
       }},
      {"batch_norm with a weight alone",
       {3, 2},
       op::BatchNorm{scale, {}, mean, variance},
       [=](const at::Tensor& x) { return (x - mean) / (variance + 1e-5).sqrt() * scale; }},
      {"batch_norm without weights, on vectors",
       {3, 2},
       op::BatchNorm{{}, {}, mean, variance},
       [=](const at::Tensor& x) { return (x - mean) / (variance + 1e-5).sqrt(); }},
      {"affine a channel",
       {3, 2, 2, 2},
       op::Affine{scale, shift},
       [=](const at::Tensor& x) {
         return x * scale.view({1, 2, 1, 1}) + shift.view({1, 2, 1, 1});
       }},
      {"affine of one number",
       {3, 4},
       op::Affine{at::full({1}, 2.0, at::kDouble), at::full({1}, -1.0, at::kDouble)},
       [](const at::Tensor& x) { return 2 * x - 1; }},
  };
}

std::vector<Row> activation_rows() {
  using Kind = op::Activation::Kind;
  return {
      {"relu", {3, 5}, op::Activation{Kind::kRelu}, [](const at::Tensor& x) { return F::relu(x); }},
      {"relu6", {3, 5}, op::Activation{Kind::kRelu6}, [](const at::Tensor& x) { return F::relu6(x); }},
      {"leaky_relu",
       {3, 5},
       op::Activation{Kind::kLeakyRelu, 0.1},
       [](const at::Tensor& x) { return F::leaky_relu(x, F::LeakyReLUFuncOptions().negative_slope(0.1)); }},
      {"softplus",
       {3, 5},
       op::Activation{Kind::kSoftplus, 0.5},
       [](const at::Tensor& x) { return at::log1p((0.5 * x).exp()) / 0.5; }},
      {"elu",
       {3, 5},
       op::Activation{Kind::kElu, 1.5},
       [](const at::Tensor& x) { return F::elu(x, F::ELUFuncOptions().alpha(1.5)); }},
      {"gelu", {3, 5}, op::Activation{Kind::kGelu}, [](const at::Tensor& x) { return F::gelu(x); }},
      {"silu", {3, 5}, op::Activation{Kind::kSilu}, [](const at::Tensor& x) { return F::silu(x); }},
      {"tanh", {3, 5}, op::Activation{Kind::kTanh}, [](const at::Tensor& x) { return at::tanh(x); }},
      {"sigmoid", {3, 5}, op::Activation{Kind::kSigmoid}, [](const at::Tensor& x) { return 1 / (1 + (-x).exp()); }},
  };
}

std::vector<Row> spatial_rows() {
  return {
      {"max_pool2d",
       {2, 2, 7, 6},
       op::MaxPool2d{.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}, .ceil_mode = true},
       [](const at::Tensor& x) {
         return F::max_pool2d(x, F::MaxPool2dFuncOptions({3, 2}).stride({2, 2}).padding({1, 0}).ceil_mode(true));
       }},
      {"avg_pool2d",
       {2, 2, 7, 6},
       op::AvgPool2d{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .count_include_pad = false},
       [](const at::Tensor& x) {
         return F::avg_pool2d(x, F::AvgPool2dFuncOptions({3, 3}).stride({2, 2}).padding({1, 1}).count_include_pad(false));
       }},
      {"adaptive_avg_pool2d",
       {2, 2, 7, 6},
       op::AdaptiveAvgPool2d{.size = {3, 2}},
       [](const at::Tensor& x) {
         return F::adaptive_avg_pool2d(x, F::AdaptiveAvgPool2dFuncOptions({3, 2}));
       }},
      {"mean",
       {2, 3, 4, 5},
       op::Mean{.dims = {2, 3}, .keep = true},
       [](const at::Tensor& x) {
         return x.sum({2, 3}, true) / 20;
       }},
      {"pad",
       {2, 2, 3, 3},
       op::Pad{.amounts = {1, 2, 0, 1}, .value = 3},
       [](const at::Tensor& x) {
         return F::pad(x, F::PadFuncOptions({1, 2, 0, 1}).value(3));
       }},
      {"slice",
       {2, 3, 5, 4},
       op::Slice{.dim = 2, .start = 1, .step = 2},
       [](const at::Tensor& x) {
         return x.index({torch::indexing::Slice(), torch::indexing::Slice(), torch::indexing::Slice(1, 5, 2)});
       }},
      {"reverse_channels",
       {2, 3, 2, 2},
       op::ReverseChannels{},
       [](const at::Tensor& x) {
         return at::stack({x.select(1, 2), x.select(1, 1), x.select(1, 0)}, 1);
       }},
      {"standardize",
       {3, 2, 3, 3},
       op::Standardize{.factor = 255},
       [](const at::Tensor& x) {
         std::vector<at::Tensor> samples;
         for (const at::Tensor& sample : (255 * x).unbind(0))
           samples.push_back((sample - sample.mean()) / sample.std(/*unbiased=*/false));
         return at::stack(samples);
       }},
  };
}

// The graph convolution's matrix from its definition, one element at a time.
at::Tensor normalised_adjacency(const at::Tensor& edges, std::int64_t nodes) {
  std::vector<at::Tensor> graphs;
  for (const at::Tensor& graph : edges.unbind(0)) {
    at::Tensor matrix = at::eye(nodes, at::kDouble);
    std::int64_t edge = 0;
    for (std::int64_t i = 0; i < nodes; ++i) {
      for (std::int64_t j = i + 1; j < nodes; ++j, ++edge) {
        matrix = matrix.index_put({at::tensor({i, j}), at::tensor({j, i})}, graph[edge]);
      }
    }
    const at::Tensor inverse_root = at::diag(matrix.abs().sum(1).pow(-0.5));
    graphs.push_back(at::matmul(at::matmul(inverse_root, matrix), inverse_root));
  }
  return at::stack(graphs);
}

std::vector<Row> shape_rows() {
  return {
      {"add", {2, 3}, op::Add{}, [](const at::Tensor& x) { return 3 * x; }, true},
      {"multiply", {2, 3}, op::Multiply{.factor = -0.5}, [](const at::Tensor& x) { return x / -2; }},
      {"concat",
       {2, 3},
       op::Concat{},
       [](const at::Tensor& x) {
         return at::cat({x, 2 * x}, 1);
       },
       true},
      {"matmul", {2, 3, 3}, op::MatMul{}, [](const at::Tensor& x) { return 2 * at::bmm(x, x); }, true},
      {"flatten",
       {2, 3, 4},
       op::Flatten{},
       [](const at::Tensor& x) {
         return x.reshape({2, 12});
       }},
      {"reshape",
       {2, 12},
       op::Reshape{.shape = {3, 4}},
       [](const at::Tensor& x) {
         return x.reshape({2, 3, 4});
       }},
      {"fold_sides",
       {3, 2, 4},
       op::FoldSides{},
       [](const at::Tensor& x) {
         return x.reshape({6, 4});
       }},
      {"side_distance",
       {6, 4},
       op::SideDistance{},
       [](const at::Tensor& x) {
         return at::stack({(x[0] - x[1]).abs(), (x[2] - x[3]).abs(), (x[4] - x[5]).abs()});
       }},
      {"adjacency", {2, 6}, op::Adjacency{.nodes = 4}, [](const at::Tensor& x) { return normalised_adjacency(x, 4); }},
      {"product", {2, 3}, op::Product{}, [](const at::Tensor& x) { return 2 * x.square(); }, true},
      {"abs", {2, 3}, op::Abs{}, [](const at::Tensor& x) { return at::maximum(x, -x); }},
      {"select",
       {2, 3, 4},
       op::SelectIndex{.dim = 2, .index = 1},
       [](const at::Tensor& x) { return x.narrow(2, 1, 1).squeeze(2); }},
      {"permute", {2, 3, 4}, op::Permute{.dims = {0, 2, 1}}, [](const at::Tensor& x) { return x.transpose(1, 2); }},
      {"dropout", {2, 3}, op::Dropout{}, [](const at::Tensor& x) { return x; }},
  };
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto part : {weighted_rows(), activation_rows(), spatial_rows(), shape_rows()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

TEST(Operations, ComputeWhatTorchsFunctionsDo) {
  for (const Row& row : all_rows()) {
    SCOPED_TRACE(row.name);
    const at::Tensor x = random(row.shape, 21);
    const at::Tensor value = network_of(row).logits(x), expected = row.expected(x);
    ASSERT_EQ(value.sizes(), expected.sizes());
    EXPECT_TRUE(at::allclose(value, expected, 1e-10, 1e-10)) << value << expected;
  }
}

TEST(Operations, DifferentiateTwice) {
  for (const Row& row : all_rows()) {
    SCOPED_TRACE(row.name);
    const Network network = network_of(row);
    const at::Tensor x = random(row.shape, 21), weights = random(network.logits(x).sizes(), 22);
    // The square makes the second derivative of linear operations show as well.
    testing_support::expect_two_derivatives(
        [&](const at::Tensor& at_x) { return (network.logits(at_x).square() * weights).sum(); }, x, 1e-5);
  }
}

TEST(Operations, AllAreInTheTable) {
  std::set<std::size_t> covered = {Operation(op::Input{}).index()};
  for (const Row& row : all_rows()) covered.insert(row.operation.index());
  EXPECT_EQ(covered.size(), std::variant_size_v<Operation>);
}

TEST(Operations, FlatSamplesAreStandardisedToZeroWithFiniteDerivatives) {
  Network network;
  network.add("input", op::Input{});
  network.add("standardize", op::Standardize{});
  const at::Tensor x = at::full({1, 3, 4, 4}, 0.5).requires_grad_(true);
  const at::Tensor value = network.logits(x);
  EXPECT_LT(value.abs().max().item<double>(), 1e-6);
  EXPECT_TRUE(at::isfinite(torch::autograd::grad({value.select(1, 0).sum()}, {x})[0]).all().item<bool>());
}

TEST(Operations, NamesAreDistinct) {
  std::set<std::string> names;
  for (const Row& row : all_rows()) names.insert(operation_name(row.operation));
  EXPECT_EQ(names.size(), std::variant_size_v<Operation> - 1);
}

}  // namespace
}  // namespace holdfast::model

// Scripts that run as they are, and files that are refused.
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "model/torchscript_files.h"
#include "support/errors.h"

namespace holdfast::model {
namespace {

using ::testing::HasSubstr;

at::Tensor samples(std::int64_t count) {
  return random_uniform({6}, at::arange(count, at::kLong), /*seed=*/5, "torchscript.test");
}

struct TileResults {
  at::Tensor logits, gradients, second;
};

// Logits, input gradients and a double backward for every tile.
TileResults run_tiles(const Model& model, const at::Tensor& inputs, std::int64_t tile, int threads, bool backwards = false) {
  TileResults results{at::zeros({inputs.size(0), 3}), at::zeros_like(inputs), at::zeros_like(inputs)};
  const std::int64_t count = tile_count(inputs.size(0), tile);
  for_each_tile(inputs.size(0), tile, threads, [&](const Tile& given) {
    const Tile at = backwards ? tile_at(inputs.size(0), tile, count - 1 - given.index) : given;
    const at::Tensor part = inputs.slice(0, at.begin, at.end).clone().requires_grad_();
    const at::Tensor logits = model.logits(part);
    const at::Tensor gradient = torch::autograd::grad({weighted_sum(logits)}, {part}, {}, true, /*create_graph=*/true)[0];
    const at::Tensor second = torch::autograd::grad({gradient.square().sum()}, {part})[0];
    const at::NoGradGuard no_gradients;
    results.logits.slice(0, at.begin, at.end).copy_(logits);
    results.gradients.slice(0, at.begin, at.end).copy_(gradient);
    results.second.slice(0, at.begin, at.end).copy_(second);
  });
  return results;
}

TEST(OpaqueTorchscript, SameBytesForAnyThreadOrderAndNumberOfCalls) {
  const at::Tensor inputs = samples(64);
  const TileResults once = run_tiles(*load_script("einsum_traced"), inputs, 8, 1);
  const auto model = load_script("einsum_traced");
  for (int round = 0; round < 4; ++round) {
    const TileResults again = run_tiles(*model, inputs, 8, 2, /*backwards=*/round % 2 == 1);
    EXPECT_TRUE(at::equal(once.logits, again.logits));
    EXPECT_TRUE(at::equal(once.gradients, again.gradients));
    EXPECT_TRUE(at::equal(once.second, again.second));
  }
}

TEST(OpaqueTorchscript, SecondDerivativesAgreeWithDifferencesOfTheFirst) {
  const auto model = load_script("einsum_scripted")->in_double();
  ASSERT_NE(model, nullptr);
  const auto gradient_at = [&](const at::Tensor& point) {
    const at::Tensor leaf = point.clone().requires_grad_();
    return torch::autograd::grad({weighted_sum(model->logits(leaf))}, {leaf})[0];
  };
  const at::Tensor point = samples(1).to(at::kDouble);
  const at::Tensor direction = at::ones_like(point);
  const at::Tensor leaf = point.clone().requires_grad_();
  const at::Tensor gradient =
      torch::autograd::grad({weighted_sum(model->logits(leaf))}, {leaf}, {}, true, /*create_graph=*/true)[0];
  const at::Tensor product = torch::autograd::grad({(gradient * direction).sum()}, {leaf})[0];
  const double step = 1e-5;
  const at::Tensor difference = (gradient_at(point + step * direction) - gradient_at(point - step * direction)) / (2 * step);
  EXPECT_GT(product.abs().max().item<double>(), 1e-2);
  EXPECT_LT((product - difference).abs().max().item<double>(), 1e-7);
}

TEST(OpaqueTorchscript, LeavesTheCallersExecutorSettingAsItWas) {
  const auto model = load_script("einsum_scripted");
  for (const bool setting : {true, false}) {
    const torch::jit::GraphOptimizerEnabledGuard callers(setting);
    model->logits(samples(2));
    EXPECT_EQ(torch::jit::getGraphExecutorOptimize(), setting);
  }
}

TEST(Torchscript, LoadsTheSameInAThreadOfTiles) {
  const TileThread tiles;
  EXPECT_NE(load_script("resnet_module_scripted")->network(), nullptr);
  EXPECT_EQ(load_script("attention_scripted")->logits(stored("attention_scripted", "inputs")).size(1), 3);
}

TEST(OpaqueTorchscript, AModuleThatCountsItsCallsDoesNotShowIt) {
  const auto model = load_script("counts");
  EXPECT_EQ(model->network(), nullptr);
  EXPECT_THAT(model->describe(), HasSubstr("writes to its own attributes"));
  const at::Tensor inputs = stored("counts", "inputs");
  const at::Tensor first = model->logits(inputs);
  EXPECT_TRUE(at::equal(model->logits(inputs), first));
  EXPECT_LT((first - stored("counts", "logits")).abs().max().item<double>(), 1e-5);
}

TEST(OpaqueTorchscript, DoublePrecisionIsOfferedOnlyWhereTheScriptKeepsIt) {
  const auto keeps = load_script("einsum_traced");
  EXPECT_TRUE(keeps->capabilities().float64);
  const at::Tensor inputs = stored("einsum_traced", "inputs");
  const at::Tensor precise = keeps->in_double()->logits(inputs.to(at::kDouble));
  EXPECT_EQ(precise.scalar_type(), at::kDouble);
  EXPECT_LT((precise - keeps->logits(inputs)).abs().max().item<double>(), 1e-5);
  // The single-precision model still is what it was.
  EXPECT_EQ(keeps->logits(inputs).scalar_type(), at::kFloat);

  const auto loses = load_script("single_precision_inside_scripted");
  EXPECT_FALSE(loses->capabilities().float64);
  EXPECT_EQ(loses->in_double(), nullptr);
  EXPECT_THAT(loses->describe(), HasSubstr("no double precision"));
}

TEST(Torchscript, AFileInDoublePrecisionComputesInIt) {
  const auto model = load_script("double");
  EXPECT_EQ(model->dtype(), at::kDouble);
  EXPECT_EQ(model->logits(samples(2).to(at::kDouble)).scalar_type(), at::kDouble);
  EXPECT_ERROR(model->logits(samples(2)), kInput, "refused inputs of shape [2, 6] (float32): it computes in float64");
}

TEST(Torchscript, InputsOfAWrongShapeAreRefusedInOneSentence) {
  for (const char* name : {"mlp_module_scripted", "einsum_scripted"}) {
    EXPECT_ERROR(load_script(name)->logits(at::zeros({2, 5})), kInput,
                 "refused inputs of shape [2, 5] (float32): mat1 and mat2 shapes cannot be multiplied");
  }
  EXPECT_ERROR(load_script("mlp_module_scripted")->logits(at::zeros({6})), kInput, "no batch of samples");
}

TEST(Torchscript, FilesThatAreNoModelsAreRefusedInOneSentence) {
  EXPECT_ERROR(load_script("missing"), kInput, "missing.pt: No such file");
  EXPECT_ERROR(load_torchscript(torchscript_file(""), at::kCPU), kInput, "it is a folder");
  EXPECT_ERROR(load_script("truncated"), kInput, "truncated.pt is not a TorchScript file, or is truncated");
  EXPECT_ERROR(load_script("text"), kInput, "text.pt is not a TorchScript file");
  EXPECT_ERROR(load_script("empty"), kInput, "empty.pt is not a TorchScript file");
  EXPECT_ERROR(load_script("state_dict"), kInput, "holds weights but no TorchScript code");
  EXPECT_ERROR(load_script("nan"), kInput, "layers.3.weight holds a number that is not finite");
  EXPECT_ERROR(load_script("two_inputs"), kInput, "takes 2 inputs");
  EXPECT_ERROR(load_script("random"), kInput, "draws random numbers in evaluation (aten::rand_like at make_torchscript.py:");
}

// outputs_test.cpp has what becomes of them.
TEST(Torchscript, OfSeveralOutputsTheFirstCountsAndOneNumberIsAColumn) {
  EXPECT_EQ(load_script("two_outputs")->logits(samples(2)).sizes(), at::IntArrayRef({2, 3}));
  const auto one = load_script("one_score");
  EXPECT_EQ(one->output_kind(), OutputKind::kAuto);
  EXPECT_EQ(one->logits(samples(2)).sizes(), at::IntArrayRef({2, 1}));
}

}  // namespace
}  // namespace holdfast::model

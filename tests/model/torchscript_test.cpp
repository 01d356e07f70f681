// TorchScript files against what Python computed from the same modules.
#include "holdfast/model/torchscript.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "model/torchscript_files.h"
#include "support/errors.h"

namespace holdfast::model {
namespace {

using ::testing::HasSubstr;

double largest(const at::Tensor& difference) {
  return difference.abs().max().item<double>();
}

// Logits and input gradients as in Python, to 1e-5.
void expect_same_as_python(const Model& model, const std::string& name) {
  const TileThread alone;
  const at::Tensor inputs = stored(name, "inputs").requires_grad_();
  const at::Tensor before = inputs.detach().clone();
  const at::Tensor logits = model.logits(inputs);
  const at::Tensor expected = stored(name, "logits");
  ASSERT_EQ(logits.sizes(), expected.sizes());
  EXPECT_LT(largest(logits.detach() - expected), 1e-5 * std::max(1.0, largest(expected)));
  const at::Tensor gradient = torch::autograd::grad({weighted_sum(logits)}, {inputs})[0];
  const at::Tensor expected_gradient = stored(name, "gradients");
  EXPECT_LT(largest(gradient - expected_gradient), 1e-5 * std::max(1.0, largest(expected_gradient)));
  EXPECT_TRUE(at::equal(inputs.detach(), before)) << "the inputs were written to";
}

class TorchscriptNetworks : public ::testing::TestWithParam<std::string> {};

TEST_P(TorchscriptNetworks, BecomeNetworksWithPythonsLogitsAndGradients) {
  const auto model = load_script(GetParam());
  ASSERT_NE(model->network(), nullptr) << model->describe();
  EXPECT_TRUE(model->capabilities().layers);
  EXPECT_THAT(model->describe(), HasSubstr("read into a network"));
  expect_same_as_python(*model, GetParam());
}

TEST_P(TorchscriptNetworks, AgreeWithThemselvesInDoublePrecision) {
  const auto model = load_script(GetParam());
  ASSERT_NE(model->network(), nullptr) << model->describe();
  const TileThread alone;
  const auto precise = model->in_double();
  ASSERT_NE(precise, nullptr);
  EXPECT_EQ(precise->dtype(), at::kDouble);
  const at::Tensor inputs = stored(GetParam(), "inputs");
  const at::Tensor logits = model->logits(inputs);
  EXPECT_LT(largest(precise->logits(inputs.to(at::kDouble)) - logits), 1e-5 * std::max(1.0, largest(logits)));
}

INSTANTIATE_TEST_SUITE_P(Files, TorchscriptNetworks, ::testing::ValuesIn(listed("networks.txt")),
                         [](const auto& file) { return file.param; });

class TorchscriptOpaque : public ::testing::TestWithParam<std::string> {};

TEST_P(TorchscriptOpaque, RunAsTheyAreWithPythonsLogitsAndGradients) {
  const auto model = load_script(GetParam());
  EXPECT_EQ(model->network(), nullptr);
  EXPECT_FALSE(model->capabilities().layers);
  EXPECT_THAT(model->describe(), HasSubstr("runs as it is, because"));
  EXPECT_THAT(model->describe(), HasSubstr("no surrogates, no layer-wise explainers"));
  EXPECT_ERROR(model->logits(stored(GetParam(), "inputs"), Rule::softplus(5)), kUsage, "softplus");
  expect_same_as_python(*model, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Files, TorchscriptOpaque, ::testing::ValuesIn(listed("opaque.txt")),
                         [](const auto& file) { return file.param; });

// Without this the tables above could shrink unseen.
TEST(Torchscript, TheTablesHoldEveryFormOfEveryModel) {
  const auto names = listed("networks.txt");
  const std::set<std::string> networks(names.begin(), names.end());
  for (const char* model : {"mlp", "cnn", "resnet", "siamese"}) {
    for (const char* form : {"module", "functional", "in_place"}) {
      for (const char* way : {"scripted", "traced"}) EXPECT_EQ(networks.count(fmt::format("{}_{}_{}", model, form, way)), 1u);
    }
  }
  EXPECT_GE(listed("opaque.txt").size(), 11u);
}

TEST(Torchscript, ReadsPreprocessingNormalisationAndActivationsAsSuch) {
  const auto model = load_script("cnn_module_scripted");
  ASSERT_NE(model->network(), nullptr) << model->describe();
  std::multiset<std::string> kinds;
  for (const Node& node : model->network()->nodes()) kinds.insert(operation_name(node.operation));
  EXPECT_EQ(kinds.count("affine"), 2u);
  EXPECT_EQ(kinds.count("conv2d"), 2u);
  EXPECT_EQ(kinds.count("batch_norm"), 1u);
  EXPECT_EQ(kinds.count("activation"), 2u);
  EXPECT_EQ(kinds.count("linear"), 1u);
  EXPECT_EQ(model->network()->activations(), 2);
  // 3*4*9 + 4+4 + 2*6*9+6 + 6*5+5 weights.
  EXPECT_THAT(model->describe(), HasSubstr("265 parameters"));
}

TEST(Torchscript, KeepsTheNamesOfLayers) {
  std::vector<std::string> names;
  const auto model = load_script("cnn_module_traced");
  ASSERT_NE(model->network(), nullptr) << model->describe();
  for (const Parameter& parameter : model->network()->parameters()) names.push_back(parameter.name);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"first.weight", "norm.weight", "norm.running_mean", "second.bias", "head.weight"}));
}

TEST(Torchscript, ProductPlusBiasIsOneLinearLayer) {
  const auto model = load_script("mlp_in_place_scripted");
  ASSERT_NE(model->network(), nullptr) << model->describe();
  std::vector<std::string> kinds;
  for (const Node& node : model->network()->nodes()) kinds.push_back(operation_name(node.operation));
  EXPECT_THAT(kinds, ::testing::ElementsAre("input", "linear", "activation", "linear"));
}

TEST(Torchscript, SurrogatesWorkOnWhatWasRead) {
  const auto model = load_script("resnet_in_place_traced");
  const at::Tensor inputs = stored("resnet_in_place_traced", "inputs");
  const double sharp = largest(model->logits(inputs, Rule::softplus(1e4)) - model->logits(inputs));
  const double smooth = largest(model->logits(inputs, Rule::softplus(2)) - model->logits(inputs));
  EXPECT_LT(sharp, 1e-2);
  EXPECT_GT(smooth, 10 * sharp);
}

TEST(Torchscript, TracedFilesTellTheLayoutOfASample) {
  EXPECT_EQ(load_script("cnn_module_traced")->layout(), Layout::grid(3, 8, 8));
  EXPECT_EQ(load_script("einsum_traced")->layout(), Layout::vector(6));
  EXPECT_EQ(load_script("cnn_module_scripted")->layout(), std::nullopt);
  EXPECT_EQ(load_script("siamese_module_traced")->layout(), std::nullopt);  // a pair, but nothing says so
}

TEST(Torchscript, ScriptedImagesOfAnySizeGoThroughWhenTheModelTakesThem) {
  const auto model = load_script("cnn_functional_scripted");
  const auto other = load_script("cnn_module_traced");
  const at::Tensor large = at::rand({2, 3, 20, 14}, at::make_generator<at::CPUGeneratorImpl>(3));
  EXPECT_LT(largest(model->logits(large) - other->logits(large)), 1e-5);
}

TEST(Torchscript, TrainingModeThatTracingFixedIsUndone) {
  EXPECT_THAT(load_script("training_mlp")->describe(), HasSubstr("dropout that the file keeps on"));
  EXPECT_THAT(load_script("training_cnn")->describe(), HasSubstr("running statistics"));
  EXPECT_THAT(load_script("mlp_module_scripted")->describe(), ::testing::Not(HasSubstr("Note:")));
}

TEST(Torchscript, LogitsAreTakenBeforeASoftmaxAtTheEnd) {
  const auto network = load_script("softmax");
  ASSERT_NE(network->network(), nullptr);
  EXPECT_THAT(network->describe(), HasSubstr("logits are what goes into the softmax at its end"));
  expect_same_as_python(*network, "softmax");
  const auto opaque = load_script("log_softmax_opaque");
  EXPECT_EQ(opaque->network(), nullptr);
  EXPECT_THAT(opaque->describe(), HasSubstr("logits are what goes into the log_softmax at its end"));
  expect_same_as_python(*opaque, "log_softmax_opaque");
}

TEST(Torchscript, SaysWhichOperationItDoesNotKnowAndWhere) {
  EXPECT_THAT(load_script("einsum_scripted")->describe(), HasSubstr("operation aten::einsum at make_torchscript.py:"));
  EXPECT_THAT(load_script("attention_scripted")->describe(), HasSubstr("aten::layer_norm"));
  EXPECT_THAT(load_script("writes_to_a_view_scripted")->describe(),
              HasSubstr("writes to a tensor of which a view is read later"));
  EXPECT_THAT(load_script("data_branch_scripted")->describe(), HasSubstr("works across the samples of a batch"));
  EXPECT_THAT(load_script("batch_branch_scripted")->describe(), HasSubstr("depends on the number of samples"));
  EXPECT_THAT(load_script("detached_scripted")->describe(), HasSubstr("it stops gradients with detach"));
}

}  // namespace
}  // namespace holdfast::model

// Every architecture: parameter counts of the papers, shapes, options, fresh weights.
#include <map>

#include <gtest/gtest.h>

#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"
#include "holdfast/model/model.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::model {
namespace {

using testing_support::normal_tensor;

std::vector<std::int64_t> batch_shape(const Layout& layout, std::int64_t samples) {
  std::vector<std::int64_t> shape = layout.sample_shape();
  shape.insert(shape.begin(), samples);
  return shape;
}

// Counts as published, or worked out by hand where the sizes are ours.
const std::map<std::string, std::int64_t> kParameters = {
    {"linear", 30 * 2 + 2},
    {"mlp", 30 * 32 + 32 + 32 * 2 + 2},
    {"cnn_small", (9 * 8 + 8) + (8 * 16 * 9 + 16) + (16 * 49 * 32 + 32) + (32 * 10 + 10)},
    {"cnn_chen", 3'274'634},
    {"cnn_chen(width=16x32x256)", 417'482},
    {"gtsrb_resnet", 173'723},
    {"flower_resnet", 75'265},
    {"resnet9", 6'575'370},
    {"cifar_resnet20", 269'722},
    {"cifar_resnet2b", 112'006},
    {"cifar_resnet4b", 123'734},
    {"squeezenet1_0", 1'248'424},
    {"mobilenet_v1_075", 2'585'560},
    {"siamese_cnn", (25 * 16 + 16) + (16 * 32 * 25 + 32) + (32 * 49 * 64 + 64) + (64 * 2 + 2)},
    {"siamese_gcn", (111 * 32 + 32) + (32 * 32 + 32) + (32 * 2 + 2)},
    {"siamese_gcn(convolutions=1,readout=nodes)", (111 * 32 + 32) + (111 * 32 * 8 + 8) + (8 * 2 + 2)},
};

TEST(Architectures, HaveTheirNumberOfParameters) {
  for (const MethodInfo* info : architectures().infos()) {
    EXPECT_TRUE(kParameters.contains(info->name)) << info->name << " has no row";
  }
  for (const auto& [call, count] : kParameters) EXPECT_EQ(architectures().make(call)->build(0).parameter_count(), count) << call;
}

TEST(Architectures, GiveFiniteLogitsAndInputGradientsForTheirLayout) {
  const TileThread one_thread;
  for (const MethodInfo* info : architectures().infos()) {
    SCOPED_TRACE(info->name);
    const auto architecture = architectures().make(info->name);
    const Network network = architecture->build(1);
    const at::Tensor x = normal_tensor(batch_shape(architecture->layout(), 2), 1).mul_(0.2).add_(0.5).requires_grad_(true);
    const at::Tensor logits = network.logits(x);
    EXPECT_EQ(logits.sizes(), at::IntArrayRef({2, architecture->classes()}));
    const at::Tensor gradient = torch::autograd::grad({logits.sum()}, {x})[0];
    EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
    EXPECT_GT(gradient.abs().max().item<double>(), 0);
  }
}

// One sample gives what it gives in company.
TEST(Architectures, TreatSamplesSeparately) {
  for (const char* call : {"mlp", "cnn_small", "gtsrb_resnet", "cifar_resnet20", "siamese_cnn", "siamese_gcn(nodes=9)",
                           "siamese_gcn(nodes=9,convolutions=1,readout=nodes)"}) {
    const auto architecture = architectures().make(call);
    const Network network = architecture->build(1);
    const at::Tensor x = normal_tensor(batch_shape(architecture->layout(), 3), 1);
    EXPECT_TRUE(at::allclose(network.logits(x)[1], network.logits(x.narrow(0, 1, 1))[0], 1e-4, 1e-5)) << call;
  }
}

TEST(Architectures, SiameseNetworksDoNotMindWhichSideIsWhich) {
  for (const char* call : {"siamese_cnn", "siamese_gcn(nodes=9)", "siamese_gcn(nodes=9,readout=nodes)"}) {
    const auto architecture = architectures().make(call);
    const Network network = architecture->build(1);
    const at::Tensor x = normal_tensor(batch_shape(architecture->layout(), 3), 1);
    EXPECT_TRUE(at::allclose(network.logits(x), network.logits(x.flip(1)), 1e-5, 1e-6)) << call;
    EXPECT_FALSE(at::allclose(network.logits(x)[0], network.logits(x)[1], 1e-5, 1e-6)) << call;
  }
}

TEST(Architectures, ActivationIsAnOptionOfAllButTheLinearOne) {
  for (const MethodInfo* info : architectures().infos()) {
    if (info->name == "linear") continue;
    const Network network = architectures().make(info->name + "(activation=softplus,beta=0.5)")->build(0);
    EXPECT_GT(network.activations(), 0) << info->name;
    for (const Node& node : network.nodes()) {
      const auto* activation = std::get_if<op::Activation>(&node.operation);
      EXPECT_TRUE(activation == nullptr || to_string(*activation) == "softplus(beta=0.5)") << info->name << " " << node.name;
    }
  }
}

TEST(Architectures, MlpHasAnyWidthsAndInputs) {
  const Network network = architectures().make("mlp(inputs=1x4x5,hidden=7x8x9,classes=3)")->build(0);
  EXPECT_EQ(network.parameter_count(), (20 * 7 + 7) + (7 * 8 + 8) + (8 * 9 + 9) + (9 * 3 + 3));
  EXPECT_EQ(network.logits(at::zeros({2, 1, 4, 5})).sizes(), at::IntArrayRef({2, 3}));
}

TEST(Architectures, NormaliseFirst) {
  const auto plain = architectures().make("cnn_small(inputs=3x8x8)")->build(4);
  const auto normalised = architectures().make("cnn_small(inputs=3x8x8,mean=0.5x0.4x0.3,deviation=0.25)")->build(4);
  const at::Tensor x = normal_tensor({2, 3, 8, 8}, 1);
  const at::Tensor mean = at::tensor({0.5f, 0.4f, 0.3f}).view({1, 3, 1, 1});
  EXPECT_TRUE(at::allclose(normalised.logits(x), plain.logits((x - mean) / 0.25), 1e-4, 1e-5));
}

TEST(Architectures, SayWhatIsWrongWithTheirOptions) {
  const auto& all = architectures();
  EXPECT_ERROR(all.make("mpl"), kUsage, "unknown architecture 'mpl' (did you mean 'mlp'?)");
  EXPECT_ERROR(all.make("mlp(activation=swish)"), kUsage, "activation must be one of relu | ");
  EXPECT_ERROR(all.make("mlp(beta=2)"), kUsage, "activation relu has no beta; softplus has");
  EXPECT_ERROR(all.make("mlp(activation=softplus,beta=0)"), kUsage, "beta must be > 0");
  EXPECT_ERROR(all.make("mlp(inputs=3x4)"), kUsage, "inputs=3x4: write a length such as 30 or an image's");
  EXPECT_ERROR(all.make("mlp(hidden=64y64)"), kUsage, "'64y64' is not a size; write whole numbers from 1 on with x between them");
  EXPECT_ERROR(all.make("mlp(hidden=0)"), kUsage, "mlp(hidden): '0' is not a size");
  EXPECT_ERROR(all.make("cnn_small(inputs=30)"), kUsage, "cnn_small takes images such as inputs=3x32x32");
  EXPECT_ERROR(all.make("resnet9(inputs=3x16x16)"), kUsage, "at least 32 x 32 pixels");
  EXPECT_ERROR(all.make("cnn_small(mean=0.5x0.4)"), kUsage, "mean has 2 numbers; the input has 1 channels");
  EXPECT_ERROR(all.make("cnn_small(mean=half)"), kUsage, "mean=half: give a number");
  EXPECT_ERROR(all.make("cnn_small(deviation=0)"), kUsage, "deviation=0: it must be above 0");
}

TEST(Architectures, AreFittedToADataset) {
  EXPECT_EQ(fit_architecture("mlp(hidden=64)", Layout::vector(13), 3), "mlp(inputs=13,hidden=64,classes=3)");
  EXPECT_EQ(fit_architecture("mlp", Layout::grid(1, 28, 28), 10), "mlp(inputs=1x28x28,classes=10)");
  EXPECT_EQ(fit_architecture("resnet9", Layout::grid(3, 32, 32), 10), "resnet9");
  EXPECT_EQ(fit_architecture("siamese_cnn", Layout::grid(1, 28, 28, 2), 2), "siamese_cnn");
  EXPECT_EQ(fit_architecture("siamese_gcn", Layout::graph(9, 2), 2), "siamese_gcn(nodes=9)");
  EXPECT_ERROR(fit_architecture("mlp(classes=2)", Layout::vector(13), 3), kUsage, "it has 2 classes, the data 3");
  EXPECT_ERROR(fit_architecture("mlp(inputs=12)", Layout::vector(13), 2), kUsage, "mlp(inputs=12): it takes a ");
  EXPECT_ERROR(fit_architecture("cnn_small", Layout::grid(1, 28, 28, 2), 2), kUsage, "the data's samples are each a ");
}

TEST(Activations, AreParsedAndWritten) {
  for (const MethodInfo& info : activation_infos()) EXPECT_EQ(to_string(parse_activation(info.name)), info.name);
  EXPECT_EQ(to_string(parse_activation("leaky_relu(slope=0.2)")), "leaky_relu(slope=0.2)");
  EXPECT_EQ(with_activation("mlp(hidden=64)", "softplus(beta=0.5)"), "mlp(hidden=64,activation=softplus,beta=0.5)");
  EXPECT_EQ(with_activation("mlp", "tanh"), "mlp(activation=tanh)");
  EXPECT_EQ(with_activation("mlp(activation=elu)", "softplus(beta=0.5)"), "mlp(activation=elu)");
  EXPECT_ERROR(parse_activation("softplus(slope=1)"), kUsage, "unknown option 'slope'");
  EXPECT_ERROR(parse_activation("reluu"), kUsage, "unknown activation 'reluu' (did you mean 'relu'?)");
}

TEST(Initialise, IsPytorchsDefaultAndDependsOnSeedAndNameAlone) {
  const Network small = architectures().make("mlp(hidden=64)")->build(7),
                deep = architectures().make("mlp(hidden=64x64)")->build(7);
  EXPECT_TRUE(at::equal(small.parameters()[0].tensor, deep.parameters()[0].tensor));
  EXPECT_FALSE(at::equal(small.parameters()[0].tensor, architectures().make("mlp(hidden=64)")->build(8).parameters()[0].tensor));

  const Network chen = architectures().make("cnn_chen")->build(7);
  for (const Parameter& parameter : chen.parameters()) {
    if (parameter.name != "fc1.weight" && parameter.name != "conv2.weight") continue;
    const double bound = 1 / std::sqrt(parameter.name == "fc1.weight" ? 3136.0 : 800.0);
    const at::Tensor& weight = parameter.tensor;
    const double count = static_cast<double>(weight.numel());
    EXPECT_LE(weight.abs().max().item<double>(), bound);
    EXPECT_GT(weight.abs().max().item<double>(), 0.999 * bound);
    // A uniform variable's mean and variance, within five standard errors.
    EXPECT_NEAR(weight.to(at::kDouble).mean().item<double>(), 0, 5 * bound / std::sqrt(3 * count));
    EXPECT_NEAR(weight.to(at::kDouble).var().item<double>(), bound * bound / 3, 5 * bound * bound * std::sqrt(4.0 / 45 / count));
  }
}

}  // namespace
}  // namespace holdfast::model

#include <cmath>

#include "holdfast/model/model.h"
#include "holdfast/train/objective.h"
#include "support/errors.h"
#include "train/toy.h"

namespace holdfast::train {
namespace {

TrainBatch batch_of(const Dataset& dataset, std::int64_t count, std::uint64_t seed = 0) {
  return {.inputs = dataset.inputs.slice(0, 0, count),
          .labels = dataset.labels.slice(0, 0, count),
          .sample_ids = at::arange(count),
          .schema = dataset.schema,
          .seed = seed};
}

// A linear network: the loss is the mean of log sum exp(l) - l_y, its gradient by W is (p - onehot)^T x / B.
TEST(CrossEntropy, HasItsClosedFormOnALinearNetwork) {
  const Dataset dataset = two_clouds();
  Network network = architectures().make("linear(inputs=6,classes=2)")->build(1);
  network.require_grad(true);
  const TrainBatch batch = batch_of(dataset, 40);
  const Loss loss = loss_of(*objectives().make("ce"), network, batch);

  const at::Tensor weight = network.parameters()[0].tensor.detach().to(at::kDouble),
                   bias = network.parameters()[1].tensor.detach().to(at::kDouble);
  const at::Tensor x = batch.inputs.to(at::kDouble), logits = at::matmul(x, weight.t()) + bias;
  const at::Tensor expected = (logits.exp().sum(1).log() - logits.gather(1, batch.labels.unsqueeze(1)).squeeze(1)).mean();
  EXPECT_NEAR(loss.total.item<double>(), expected.item<double>(), 1e-6);
  ASSERT_EQ(loss.parts.size(), 1u);
  EXPECT_EQ(loss.parts[0].first, "ce");
  EXPECT_EQ(loss.parts[0].second.item<double>(), loss.total.item<double>());

  const at::Tensor probabilities = logits.exp() / logits.exp().sum(1, true);
  const at::Tensor by_weight = at::matmul((probabilities - at::one_hot(batch.labels, 2)).t(), x) / 40;
  const auto gradients = torch::autograd::grad({loss.total}, {network.parameters()[0].tensor, network.parameters()[1].tensor});
  EXPECT_TRUE(at::allclose(gradients[0].to(at::kDouble), by_weight, 1e-4, 1e-6));
  EXPECT_TRUE(at::allclose(gradients[1].to(at::kDouble), (probabilities - at::one_hot(batch.labels, 2)).sum(0) / 40, 1e-4, 1e-6));
}

TEST(CrossEntropy, ParameterGradientsAreThoseOfFiniteDifferences) {
  const Dataset dataset = two_clouds();
  Network network =
      architectures().make("mlp(inputs=6,hidden=5x4,classes=2,activation=softplus,beta=2)")->build(3).to(at::kDouble);
  network.require_grad(true);
  TrainBatch batch = batch_of(dataset, 20);
  batch.inputs = batch.inputs.to(at::kDouble);
  const auto objective = objectives().make("ce");
  const auto value = [&] { return loss_of(*objective, network, batch).total.item<double>(); };
  for (const Parameter& parameter : network.parameters()) {
    const at::Tensor gradient =
        torch::autograd::grad({loss_of(*objective, network, batch).total}, {parameter.tensor})[0].view(-1);
    const at::Tensor flat = parameter.tensor.detach().view(-1);
    for (std::int64_t i = 0; i < flat.numel(); i += 3) {
      const double before = flat[i].item<double>();
      flat[i] = before + 1e-5;
      const double above = value();
      flat[i] = before - 1e-5;
      const double below = value();
      flat[i] = before;
      EXPECT_NEAR(gradient[i].item<double>(), (above - below) / 2e-5, 1e-8) << parameter.name << " " << i;
    }
  }
}

TEST(CrossEntropy, RunsTheNetworkInTrainingMode) {
  const Dataset dataset = two_clouds();
  Network network;
  network.add("input", op::Input{});
  network.add("norm", op::BatchNorm{at::ones({6}), at::zeros({6}), at::zeros({6}), at::ones({6})});
  network.add("drop", op::Dropout{0.5});
  network.add("output", op::Linear{at::arange(12).reshape({2, 6}).to(at::kFloat) / 12, at::zeros({2})});
  const auto objective = objectives().make("ce");
  const auto loss_with = [&](std::uint64_t seed) {
    return loss_of(*objective, network, batch_of(dataset, 40, seed)).total.item<double>();
  };
  const double first = loss_with(1);
  const at::Tensor mean = std::get<op::BatchNorm>(network.nodes()[1].operation).mean;
  // Momentum 0.1 from a mean of zero.
  EXPECT_TRUE(at::allclose(mean, 0.1 * dataset.inputs.slice(0, 0, 40).mean(0), 1e-4, 1e-6));
  EXPECT_EQ(loss_with(1), first);  // the same elements are dropped, and batch statistics do not depend on running ones
  EXPECT_NE(loss_with(2), first);
}

TEST(Recipes, SetTheirPartsUnderTheirNames) {
  EXPECT_EQ(recipes().make("vanilla")->activation, "");
  EXPECT_EQ(recipes().make("sp")->activation, "softplus(beta=0.5)");
  EXPECT_EQ(recipes().make("sp(beta=5)")->activation, "softplus(beta=5)");
  EXPECT_EQ(recipes().make("wd(decay=0.01)")->weight_decay, 0.01);
  for (const MethodInfo* info : recipes().infos())
    EXPECT_NO_THROW(objectives().make(recipes().make(info->name)->objective)) << info->name;
  EXPECT_ERROR(recipes().make("vanila"), kUsage, "did you mean 'vanilla'?");
}

}  // namespace
}  // namespace holdfast::train

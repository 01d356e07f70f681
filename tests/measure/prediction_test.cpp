#include "holdfast/measure/prediction.h"

#include <cmath>

#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/torch.h"
#include "support/errors.h"

namespace holdfast::measure {
namespace {

// Logits that are multiples of 1/4, with many ties, and labels; the values below are scikit-learn 1.9's on the same arrays:
//   l = np.array([[((i*31+c*17+i*i*c)%13)/4 for c in range(3)] for i in range(30)]); y = [(i*5+i//4)%3 for i in range(30)]
//   p = scipy.special.softmax(l, axis=1); roc_auc_score(y, p, multi_class="ovr"); log_loss(y, p); accuracy_score(y, l.argmax(1))
at::Tensor fixed_logits(std::int64_t classes) {
  const at::Tensor logits = at::empty({30, classes});
  for (std::int64_t i = 0; i < 30; ++i) {
    for (std::int64_t c = 0; c < classes; ++c) logits[i][c] = static_cast<double>((i * 31 + c * 17 + i * i * c) % 13) / 4;
  }
  return logits;
}

at::Tensor fixed_labels() {
  const at::Tensor labels = at::empty({30}, at::kLong);
  for (std::int64_t i = 0; i < 30; ++i) labels[i] = (i * 5 + i / 4) % 3;
  return labels;
}

TEST(Prediction, EqualsScikitLearnOnThreeClasses) {
  const PredictionQuality quality = prediction_quality(fixed_logits(3), fixed_labels());
  EXPECT_NEAR(quality.auc.mean, 0.49065486647008383, 1e-14);
  EXPECT_NEAR(quality.loss, 1.326071051107828, 1e-12);
  EXPECT_EQ(quality.accuracy.mean, 11.0 / 30);
}

TEST(Prediction, EqualsScikitLearnOnTwoClasses) {
  const PredictionQuality quality = prediction_quality(fixed_logits(2), (fixed_labels() > 0).to(at::kLong));
  EXPECT_NEAR(quality.auc.mean, 0.38222222222222224, 1e-15);
  EXPECT_NEAR(quality.loss, 1.0321913256619937, 1e-12);
  EXPECT_EQ(quality.accuracy.mean, 13.0 / 30);
}

// In float, p = 1 for both samples of class 1: ranking by p would call them tied with the misranked one.
TEST(Prediction, AucSeesThroughSaturatedProbabilities) {
  const at::Tensor logits = torch::tensor({{0.f, 60.f}, {0.f, 90.f}, {0.f, 70.f}, {0.f, 80.f}});
  EXPECT_EQ(auc(logits, torch::tensor({0, 1, 0, 1}, at::kLong)).mean, 1);
}

TEST(Prediction, SensitivityIsTheMoveOfThePredictedProbability) {
  // Class 1 is predicted at the clean input; p_1 goes from 1 / (1 + e^-2) to 1/2, and stays for the second sample.
  const at::Tensor clean = torch::tensor({{0.f, 2.f}, {3.f, 1.f}}), moved = torch::tensor({{1.f, 1.f}, {5.f, 3.f}});
  const std::vector<double> values = sensitivities(clean, moved);
  EXPECT_NEAR(values[0], 1 / (1 + std::exp(-2.0)) - 0.5, 1e-12);
  EXPECT_NEAR(values[1], 0, 1e-12);
  EXPECT_NEAR(sensitivity(clean, moved, 0).mean, values[0] / 2, 1e-12);
}

Network two_class_net() {
  Network network;
  network.add("input", op::Input{});
  network.add("linear", op::Linear{torch::tensor({{1.f, 2.f, 3.f}, {-1.f, 0.5f, 0.f}}), torch::tensor({0.5f, -0.5f})});
  return network;
}

TEST(Predict, IsTheSameBytesForAnyNumberOfThreads) {
  const Network network = two_class_net();
  const at::Tensor inputs = at::arange(300).reshape({100, 3}).to(at::kFloat) / 37;
  const at::Tensor one = predict(network, inputs, 1, 7), two = predict(network, inputs, 2, 7);
  EXPECT_TRUE(at::equal(one, two));
  EXPECT_TRUE(
      at::allclose(one, at::linear(inputs, torch::tensor({{1.f, 2.f, 3.f}, {-1.f, 0.5f, 0.f}}), torch::tensor({0.5f, -0.5f}))));
}

TEST(Predict, NamesTheFirstSampleWithNonFiniteLogits) {
  const at::Tensor inputs = at::ones({5, 3});
  inputs[3][1] = std::nan("");
  EXPECT_ERROR(predict(two_class_net(), inputs), kInput, "not finite for sample 3");
}

}  // namespace
}  // namespace holdfast::measure

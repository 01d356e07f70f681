#include "holdfast/model/outputs.h"

#include <gtest/gtest.h>

#include "holdfast/core/torch.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::model {
namespace {

using testing_support::linear_model;
using testing_support::normal_tensor;

TEST(Outputs, EveryKindGivesTheProbabilitiesThatItMeans) {
  const at::Tensor z = normal_tensor({7}, 1, at::kDouble), p = at::sigmoid(z), both = at::stack({1 - p, p}, 1);
  const auto close = [](const at::Tensor& logits, const at::Tensor& expected) {
    return at::allclose(at::softmax(logits, 1), expected, 1e-9, 1e-12);
  };
  for (const at::Tensor& shaped : {z, z.unsqueeze(1)}) {
    EXPECT_TRUE(close(logits_from(shaped, OutputKind::kLogit), both));
    EXPECT_TRUE(close(logits_from(at::sigmoid(shaped), OutputKind::kProbability), both));
    EXPECT_TRUE(at::equal(logits_from(shaped, OutputKind::kValue), z.unsqueeze(1)));
  }
  EXPECT_TRUE(close(logits_from(both, OutputKind::kProbabilities), both));
  EXPECT_TRUE(at::equal(logits_from(both, OutputKind::kLogits), both));
}

TEST(Outputs, LogarithmsOfProbabilitiesThatVanishAreFiniteAndSoAreTheirDerivatives) {
  at::Tensor p = at::tensor({0.0f, 1e-30f, 1.0f}).view({1, 3}).requires_grad_();
  const at::Tensor logits = logits_from(p, OutputKind::kProbabilities);
  const at::Tensor first = torch::autograd::grad({logits.sum()}, {p}, {}, true, true)[0];
  const at::Tensor second = torch::autograd::grad({first.sum()}, {p})[0];
  for (const at::Tensor& values : {logits, first, second}) EXPECT_TRUE(at::isfinite(values).all().item<bool>());
}

TEST(Outputs, KindsAreGuessedFromSeveralSamples) {
  const at::Tensor z = normal_tensor({9, 3}, 2);
  EXPECT_EQ(guess_output_kind(z, "m"), OutputKind::kLogits);
  EXPECT_EQ(guess_output_kind(at::softmax(z, 1), "m"), OutputKind::kProbabilities);
  EXPECT_EQ(guess_output_kind(at::softmax(z, 1).abs() * 2, "m"), OutputKind::kLogits);
  EXPECT_EQ(guess_output_kind(z.select(1, 0), "m"), OutputKind::kLogit);
  EXPECT_ERROR(guess_output_kind(z.select(1, 0).sigmoid(), "m"), kInput, "lies in [0, 1] for each of 9 samples");
}

// Keeps how many samples it was asked about.
class CountedModel final : public Model {
 public:
  explicit CountedModel(bool squashed) : squashed_(squashed) {}
  at::Tensor logits(const at::Tensor& inputs) const override {
    asked_ += inputs.size(0);
    return squashed_ ? at::softmax(inputs, 1) : inputs;
  }
  using Model::logits;
  OutputKind output_kind() const override { return OutputKind::kAuto; }
  Capabilities capabilities() const override { return {}; }
  at::Device device() const override { return at::kCPU; }
  at::ScalarType dtype() const override { return at::kFloat; }
  std::string describe() const override { return ""; }
  std::int64_t asked() const { return asked_; }

 private:
  bool squashed_;
  mutable std::int64_t asked_ = 0;
};

TEST(Outputs, LogitsAreSeenInOneSampleAndProbabilitiesInSeveral) {
  const at::Tensor x = normal_tensor({20, 3}, 5);
  const auto logits = std::make_shared<CountedModel>(false), probabilities = std::make_shared<CountedModel>(true);
  EXPECT_EQ(with_logits(logits, OutputKind::kAuto, x), logits);
  EXPECT_EQ(logits->asked(), 1);
  EXPECT_EQ(with_logits(probabilities, OutputKind::kAuto, x)->output_kind(), OutputKind::kProbabilities);
  EXPECT_EQ(probabilities->asked(), 21);
}

TEST(Outputs, OneLogitOfANetworkStaysANetwork) {
  const at::Tensor weight = normal_tensor({1, 4}, 3), x = normal_tensor({6, 4}, 4);
  const std::shared_ptr<const Model> plain = linear_model(weight, at::zeros({1}));
  EXPECT_EQ(with_logits(plain, OutputKind::kAuto, x), plain) << "a network says itself that it gives logits";

  class OneColumn final : public Model {
   public:
    explicit OneColumn(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
    at::Tensor logits(const at::Tensor& inputs) const override { return model_->logits(inputs); }
    using Model::logits;
    OutputKind output_kind() const override { return OutputKind::kAuto; }
    Capabilities capabilities() const override { return model_->capabilities(); }
    const Network* network() const override { return model_->network(); }
    at::Device device() const override { return at::kCPU; }
    at::ScalarType dtype() const override { return at::kFloat; }
    std::string describe() const override { return ""; }

   private:
    std::shared_ptr<const Model> model_;
  };
  const auto read = with_logits(std::make_shared<OneColumn>(plain), OutputKind::kAuto, x);
  EXPECT_EQ(read->output_kind(), OutputKind::kLogit);
  ASSERT_NE(read->network(), nullptr);
  const at::Tensor z = at::matmul(x, weight.t());
  EXPECT_TRUE(at::allclose(read->logits(x), at::cat({-z / 2, z / 2}, 1), 1e-6, 1e-7));
  EXPECT_TRUE(at::allclose(read->network()->logits(x), read->logits(x), 1e-6, 1e-7));
  const auto value = with_logits(std::make_shared<OneColumn>(plain), OutputKind::kValue, x);
  EXPECT_TRUE(at::equal(value->logits(x), plain->logits(x)));
  EXPECT_ERROR(with_logits(std::make_shared<OneColumn>(plain), OutputKind::kProbabilities, x), kInput,
               "it must give probabilities, [samples, classes], of at least two classes");
}

}  // namespace
}  // namespace holdfast::model

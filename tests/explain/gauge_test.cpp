// The one-hot gauge: adding a constant to a group's columns of the first layer and taking it from the bias changes no prediction
// on any valid row. Explanations that are projected must not change either; those that are not, do.
#include <gtest/gtest.h>

#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "support/small_models.h"

namespace holdfast::explain {
namespace {

using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::softplus;

// Calls without `project`: by default groups are projected.
const std::vector<std::string> kCalls{
    "saliency",
    "saliency(target=logit,signed=true)",
    "input_x_gradient",
    "integrated_gradients(steps=5)",
    "integrated_gradients(steps=4,rule=gauss,target=logit)",
    "integrated_gradients(steps=4,rule=trapezoid,baseline=mean)",
    "integrated_gradients(steps=4,rule=left,baseline=given,target=ce)",
    "smooth_grad(samples=5,sigma=0.4)",
    "smooth_grad(samples=5,sigma=0.4,kind=squared)",
    "smooth_grad(samples=5,sigma=0.4,kind=variance)",
    "gradient_shap(samples=5,sigma=0.2)",
    "occlusion",
    "occlusion(target=logit)",
    "deep_lift",
    "deep_lift(target=logit,baseline=mean)",
    "deep_lift(target=ce,baseline=given)",
    "lrp",
    "lrp(rule=epsilon,target=probability)",
    "guided_backprop",
    "guided_backprop(target=probability)",
};

std::string unprojected(const std::string& call) {
  return call.back() == ')' ? call.substr(0, call.size() - 1) + ",project=none)" : call + "(project=none)";
}

// Columns 2-3 and 4-6 are one-hot groups.
class Gauge : public testing::TestWithParam<std::string> {
 protected:
  Gauge() : model_(make_model(mlp_network(kShape))) {
    schema_.groups = {{.name = "sex", .columns = {2, 3}, .levels = {}}, {.name = "race", .columns = {4, 5, 6}, .levels = {}}};
    Network network = mlp_network(kShape);
    const auto& first = std::get<op::Linear>(network.nodes()[1].operation);
    at::Tensor weight = first.weight, bias = first.bias;  // share storage with the network
    const at::Tensor constant = normal_tensor({16}, 22, at::kDouble);
    for (const std::int64_t column : schema_.groups[1].columns) weight.select(1, column) += constant;
    bias -= constant;
    gauged_ = make_model(network);
  }

  at::Tensor valid_rows(std::int64_t count, std::uint64_t seed) const {
    at::Tensor rows = normal_tensor({count, 8}, seed, at::kDouble);
    rows.slice(1, 2, 7).zero_();
    for (std::int64_t b = 0; b < count; ++b) {
      rows[b][2 + b % 2] = 1;
      rows[b][4 + b % 3] = 1;
    }
    return rows;
  }

  Explanation explain(const std::string& call, const Model& model) const {
    const at::NoGradGuard no_graph;
    const auto explainer = explainers().make(call);
    return explainer->attribute({.model = model,
                                 .samples = {.inputs = inputs_,
                                             .targets = predicted_class(model_->logits(inputs_)),
                                             .ids = at::arange(inputs_.size(0), at::kLong),
                                             .schema = share_schema(schema_),
                                             .baseline = background_[1],
                                             .background = background_}});
  }
  static at::Tensor true_maps(const Explanation& explanation) {
    return explanation.maps * explanation.log_scale.exp().unsqueeze(1);
  }

  static inline const testing_support::MlpShape kShape{
      .features = 8, .classes = 3, .activation = softplus(3), .type = at::kDouble};
  Schema schema_ = Schema::of(Layout::vector(8));
  std::unique_ptr<Model> model_, gauged_;
  at::Tensor inputs_ = valid_rows(6, 20), background_ = valid_rows(4, 21);
};

TEST_P(Gauge, ProjectedMapsDoNotFeelItAndPlainOnesDo) {
  ASSERT_LT((model_->logits(inputs_) - gauged_->logits(inputs_)).abs().max().item<double>(), 1e-12) << "no prediction may change";
  const at::Tensor before = true_maps(explain(GetParam(), *model_)), after = true_maps(explain(GetParam(), *gauged_));
  const double size = before.abs().max().item<double>();
  EXPECT_GT(size, 1e-4);
  EXPECT_LT((before - after).abs().max().item<double>(), 1e-10 * size);

  const at::Tensor plain_before = true_maps(explain(unprojected(GetParam()), *model_));
  const at::Tensor plain_after = true_maps(explain(unprojected(GetParam()), *gauged_));
  EXPECT_GT((plain_before - plain_after).abs().max().item<double>(), 0.01 * plain_before.abs().max().item<double>());
}

TEST_P(Gauge, TheShareThatWasTakenAwayIsReportedWhereGradientsAreProjected) {
  const Explanation before = explain(GetParam(), *model_), after = explain(GetParam(), *gauged_);
  EXPECT_FALSE(explain(unprojected(GetParam()), *model_).gauge_share.defined());
  if (!before.gauge_share.defined()) GTEST_SKIP() << "not made of gradients";
  ASSERT_EQ(before.gauge_share.sizes(), at::IntArrayRef({6}));
  EXPECT_GE(before.gauge_share.min().item<double>(), 0);
  EXPECT_LE(after.gauge_share.max().item<double>(), 1);
  EXPECT_GT(after.gauge_share.mean().item<double>(), before.gauge_share.mean().item<double>() + 0.05);
}

INSTANTIATE_TEST_SUITE_P(Explainers, Gauge, testing::ValuesIn(kCalls), [](const auto& test) {
  return test.param.substr(0, test.param.find('(')) + "_" + std::to_string(test.index);
});

}  // namespace
}  // namespace holdfast::explain

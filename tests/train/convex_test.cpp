// Rows that every contest has: logistic regression, with gates, and with what is zero on valid rows.
#include <gtest/gtest.h>

#include "gated_table.h"
#include "holdfast/attack/attack.h"
#include "holdfast/model/model.h"
#include "support/errors.h"

namespace holdfast::train {
namespace {

TEST(Convex, LogisticRegressionIsAtItsOptimum) {
  const Dataset dataset = gated_table();
  const Network network = fitted(dataset, "linear(ridge=0.01)", "linear").network;
  const auto& layer = std::get<op::Linear>(network.nodes().back().operation);
  const at::Tensor rows = dataset.inputs_of(dataset.train).to(at::kDouble),
                   labels = dataset.labels_of(dataset.train).to(at::kDouble);
  const at::Tensor residual = at::sigmoid(margins(network, dataset.inputs_of(dataset.train))) - labels;
  const at::Tensor gradient =
      at::mv(rows.t(), residual) / rows.size(0) + 0.01 * (layer.weight[1] - layer.weight[0]).to(at::kDouble);
  EXPECT_LT(gradient.abs().max().item<double>(), 1e-5);
  EXPECT_LT(std::abs(residual.mean().item<double>()), 1e-5);
  // The same margin, whether it is written into one layer or into a hidden unit.
  const Network wide = fitted(dataset, "linear(ridge=0.01)").network;
  EXPECT_LT((margins(wide, dataset.inputs) - margins(network, dataset.inputs)).abs().max().item<double>(), 1e-5);
}

TEST(Convex, GatesFindTheInteraction) {
  const Dataset dataset = gated_table();
  const TrainResult linear = fitted(dataset, "linear"), gated = fitted(dataset, "gated_linear(gates=3)");
  EXPECT_GT(gated.test->auc.mean, linear.test->auc.mean + 0.1);
  EXPECT_GT(gated.test->auc.mean, 0.85);
  EXPECT_EQ(gated.history.size(), 1U);
  // The effect of the first number has the other sign behind the gate, and is nowhere between.
  at::Tensor rows = dataset.inputs_of(dataset.test).clone();
  const auto slope = [&](std::int64_t level) {
    at::Tensor there = rows.clone();
    there.slice(1, 6, 8).zero_();
    there.select(1, level).fill_(1);
    at::Tensor moved = there.clone();
    moved.select(1, 0) += 0.1;
    return (margins(gated.network, moved) - margins(gated.network, there)) / 0.1;
  };
  EXPECT_GT(slope(6).min().item<double>(), 1);
  EXPECT_LT(slope(7).max().item<double>(), -1);
}

// Valid rows within the ball of a sample, of both models: the gauge must show nowhere.
TEST(Convex, AGaugeChangesTheGradientAndNothingElse) {
  const Dataset dataset = gated_table();
  const Network plain = fitted(dataset, "linear").network;
  const at::Tensor rows = dataset.inputs_of(dataset.test);
  for (const char* recipe : {"gauged_linear", "gauged_linear(gauge=steps)"}) {
    const Network gauged = fitted(dataset, recipe).network;
    EXPECT_LT((margins(gauged, dataset.inputs) - margins(plain, dataset.inputs)).abs().max().item<double>(), 2e-4) << recipe;
    const auto maps = [&](const Network& network, const std::string& call) {
      const auto model = make_model(network);
      const Samples samples{.inputs = rows,
                            .targets = predicted_class(model->logits(rows)),
                            .ids = at::arange(rows.size(0), at::kLong),
                            .schema = share_schema(dataset.schema)};
      const Explanation found = explainers().make(call)->attribute({.model = *model, .samples = samples});
      return found.maps * found.log_scale.exp().unsqueeze(1);
    };
    const auto apart = [&](const std::string& call) {
      const at::Tensor one = maps(plain, call), other = maps(gauged, call);
      return ((one - other).abs().max() / one.abs().max()).item<double>();
    };
    EXPECT_LT(apart("valid_effect"), 1e-3) << recipe;
    EXPECT_GT(apart("saliency(target=logit)"), 0.5) << recipe << ": a gauge that turns no gradient shows nothing";
  }
}

TEST(Convex, UnderValidEffectAGaugeScoresExactlyAsLinearDoes) {
  const Dataset dataset = gated_table();
  const auto explainer = explainers().make("valid_effect");
  const auto metric = metrics().make("top_k(k=2)");
  const at::Tensor rows = dataset.inputs_of(dataset.test).slice(0, 0, 40);
  const auto values = [&](const std::string& recipe, std::int64_t switches) {
    const auto model = make_model(fitted(dataset, recipe).network);
    const ThreatModel threat = ThreatModel::make({.epsilons = {0.3}, .valid = true, .switches = switches}, dataset.schema);
    const at::NoGradGuard no_graph;
    const AttackResult result = attacks()
                                    .make("gauntlet(effort=light)")
                                    ->run({.model = *model,
                                           .explainer = *explainer,
                                           .metric = *metric,
                                           .threat = threat,
                                           .samples = {.inputs = rows,
                                                       .targets = predicted_class(model->logits(rows)),
                                                       .ids = at::arange(rows.size(0), at::kLong),
                                                       .schema = share_schema(dataset.schema)}});
    std::vector<double> found;
    for (const SampleOutcome& sample : result.samples) found.push_back(sample.value);
    return found;
  };
  const std::vector<double> plain = values("linear", 1);
  EXPECT_EQ(values("gauged_linear", 1), plain);
  EXPECT_EQ(values("gauged_linear(gauge=steps)", 0), std::vector<double>(40, 1.0)) << "as any linear model without switches";
}

TEST(Convex, RefusesWhatItCannotWrite) {
  const Dataset dataset = gated_table(50);
  EXPECT_ERROR(fitted(dataset, "gated_linear", "mlp(hidden=8)"), kUsage, "15 gates need 31 hidden units, and the network has 8");
  EXPECT_ERROR(fitted(dataset, "linear", "mlp(hidden=8x8)"), kUsage, "one hidden layer with relu");
  EXPECT_ERROR(fitted(two_clouds(), "gauged_linear"), kUsage, "no one-hot groups");
  EXPECT_ERROR(fitted(dataset, "gauged_linear(gauge=steps)", "mlp(hidden=4)"), kUsage, "no number of the table has a step");
}

}  // namespace
}  // namespace holdfast::train

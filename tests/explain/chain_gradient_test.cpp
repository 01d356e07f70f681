// Saliency of chains of linear layers, which runs without autograd, against the same network that autograd runs: a last node that
// multiplies by 1 is no linear layer.
#include <gtest/gtest.h>

#include "../../src/explain/chain_gradient.h"
#include "../../src/explain/chain_rows.h"
#include "holdfast/core/row_kernels.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/model/activation.h"
#include "holdfast/model/linear_chain.h"
#include "support/small_models.h"

namespace holdfast::explain::chain_gradient_test {
namespace {

using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::softplus;

const std::vector<op::Activation> kActivations = {
    {}, {.kind = op::Activation::Kind::kLeakyRelu, .parameter = 0.1}, softplus(1), softplus(40)};

// Two hidden layers behind preprocessing.
Network deep_network(const op::Activation& activation, std::int64_t classes) {
  const auto linear = [](std::int64_t out, std::int64_t in, std::uint64_t seed) {
    return op::Linear{normal_tensor({out, in}, seed).mul_(1.5 / std::sqrt(static_cast<double>(in))),
                      normal_tensor({out}, seed + 1).mul_(0.3)};
  };
  Network network;
  network.add("input", op::Input{});
  network.add("scale", op::Affine{normal_tensor({12}, 20).abs_().add_(0.5), normal_tensor({12}, 21)});
  network.add("first", linear(20, 12, 22));
  network.add("act1", activation);
  network.add("drop", op::Dropout{});
  network.add("second", linear(11, 20, 24));
  network.add("act2", activation);
  network.add("out", linear(classes, 11, 26));
  return network;
}

Network by_autograd(Network network) {
  network.add("same", op::Multiply{});
  return network;
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  ASSERT_EQ(actual.scalar_type(), expected.scalar_type()) << what;
  const double scale = expected.abs().max().item<double>() + 1e-30;
  EXPECT_LE((actual - expected).abs().max().item<double>(), tolerance * scale) << what;
}

struct Case {
  std::string name;
  Network network;
  Rule rule = {};
  bool groups = false;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const op::Activation& activation : kActivations) {
    const std::string kind = to_string(activation);
    for (const std::int64_t classes : {2, 5}) {
      all.push_back({kind, mlp_network({.hidden = 19, .classes = classes, .activation = activation})});
      all.push_back({kind + ", deep", deep_network(activation, classes), {}, classes == 2});
    }
    all.push_back({kind + ", one surrogate", deep_network(activation, 2), Rule::softplus(4)});
    all.push_back({kind + ", surrogates", deep_network(activation, 3), {.softplus_beta = {2, 300}}, true});
  }
  return all;
}

std::shared_ptr<const Schema> schema_of(bool groups) {
  Schema schema = Schema::of(Layout::vector(12));
  if (groups) schema.groups = {{"a", {2, 3, 4}, {"x", "y", "z"}}, {"b", {7, 8}, {"u", "v"}}};
  return share_schema(schema);
}

ExplainTask task_for(const Model& model, const Case& one, std::int64_t rows) {
  return {.model = model,
          .samples = {.inputs = normal_tensor({rows, 12}, 30),
                      .targets = at::arange(rows, at::kLong).remainder(2),
                      .ids = at::arange(rows, at::kLong),
                      .schema = schema_of(one.groups)},
          .rule = one.rule};
}

TEST(ChainGradient, MapsAndPullbacksAreAutograds) {
  for (const Case& one : cases()) {
    const auto model = make_model(one.network), reference = make_model(by_autograd(one.network));
    for (const char* options : {"", "(target=logit)", "(target=ce)", "(signed=true)"}) {
      for (const std::int64_t rows : {1, 32, 77}) {
        const std::string what = one.name + options + ", " + std::to_string(rows) + " rows";
        const auto explainer = explainers().make(std::string("saliency") + options);
        const ExplainTask task = task_for(*model, one, rows), other = task_for(*reference, one, rows);
        ASSERT_TRUE(LinearChain::of(*model->network(), one.rule, task.samples.inputs)) << what;
        ASSERT_FALSE(LinearChain::of(*reference->network(), one.rule, task.samples.inputs));
        const Explanation fused = explainer->attribute(task), expected = explainer->attribute(other);
        expect_close(fused.maps, expected.maps, 2e-5, what);
        expect_close(fused.logits, expected.logits, 2e-5, what);
        expect_close(fused.log_scale, expected.log_scale, 2e-5, what);
        ASSERT_EQ(fused.gauge_share.defined(), expected.gauge_share.defined());
        if (fused.gauge_share.defined()) expect_close(fused.gauge_share, expected.gauge_share, 2e-4, what);
        const auto here = explainer->linearize(task), there = explainer->linearize(other);
        EXPECT_TRUE(at::equal(here->at().maps, fused.maps)) << what;
        for (const std::uint64_t seed : {40, 41}) {
          const at::Tensor cotangent = normal_tensor({rows, 12}, seed);
          expect_close(here->pullback(cotangent), there->pullback(cotangent), 1e-4, what);
        }
      }
    }
  }
}

// The kernels of a GPU, in single and in double precision.
TEST(ChainRows, MapsAndPullbacksAreAutograds) {
  for (const Case& one : cases()) {
    if (one.groups) continue;
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const auto model = make_model(one.network.to(type)), reference = make_model(by_autograd(one.network).to(type));
      const double near = type == at::kFloat ? 2e-5 : 1e-9;
      for (const char* options : {"", "(target=logit)", "(target=ce)", "(signed=true)"}) {
        for (const std::int64_t rows : {1, 8, 21}) {
          const std::string what = one.name + options + ", " + std::to_string(rows) + " rows";
          const auto explainer = explainers().make(std::string("saliency") + options);
          ExplainTask task = task_for(*model, one, rows), other = task_for(*reference, one, rows);
          task.samples.inputs = other.samples.inputs = task.samples.inputs.to(type);
          const Explanation expected = explainer->attribute(other);
          const auto there = explainer->linearize(other);
          const RowKernelsOnCpu kernels;
          ASSERT_TRUE(explain_chain_rows(task, {.quantity = ExplainedQuantity::kLogit})) << what;
          const Explanation found = explainer->attribute(task);
          expect_close(found.maps, expected.maps, near, what);
          expect_close(found.logits, expected.logits, near, what);
          expect_close(found.log_scale, expected.log_scale, near, what);
          const auto here = explainer->linearize(task);
          EXPECT_TRUE(at::equal(here->at().maps, found.maps)) << what;
          const at::Tensor cotangent = normal_tensor({rows, 12}, 40).to(type);
          expect_close(here->pullback(cotangent), there->pullback(cotangent), 5 * near, what);
        }
      }
    }
  }
}

TEST(Cuda, MapsOfChainsAreTheProcessors) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  for (const Case& one : cases()) {
    if (one.groups) continue;
    const auto model = make_model(one.network), moved = make_model(one.network.to(at::kCUDA));
    const auto explainer = explainers().make("saliency");
    const ExplainTask task = task_for(*model, one, 77);
    ExplainTask there = task_for(*moved, one, 77);
    there.samples = task.samples.to(at::TensorOptions().device(at::kCUDA).dtype(at::kFloat));
    const auto expected = explainer->linearize(task), found = explainer->linearize(there);
    expect_close(found->at().maps.cpu(), expected->at().maps, 2e-5, one.name);
    const at::Tensor cotangent = normal_tensor({77, 12}, 40);
    expect_close(found->pullback(cotangent.cuda()).cpu(), expected->pullback(cotangent), 1e-4, one.name);
  }
}

// A class that the model does not have gives no map, rather than another row's memory.
TEST(ChainRows, AClassThatIsNotThereGivesNoMap) {
  const Case one = cases()[0];
  const auto model = make_model(one.network);
  ExplainTask task = task_for(*model, one, 4);
  task.samples.targets = at::tensor({0, 7, -1, 1}, at::kLong);
  const RowKernelsOnCpu kernels;
  const auto there = explain_chain_rows(task, {.quantity = ExplainedQuantity::kProbability});
  ASSERT_TRUE(there);
  EXPECT_TRUE(at::equal(there->maps.isfinite().all(1).to(at::kLong), at::tensor({1, 0, 0, 1}, at::kLong)));
}

TEST(ChainGradient, ASaturatedProbabilityKeepsItsRanking) {
  const Network network = mlp_network({.gain = 100});
  const auto model = make_model(network), reference = make_model(by_autograd(network));
  const Case one{"saturated", network};
  const auto explainer = explainers().make("saliency");
  const Explanation fused = explainer->attribute(task_for(*model, one, 20)),
                    expected = explainer->attribute(task_for(*reference, one, 20));
  expect_close(fused.maps, expected.maps, 1e-5, "maps");
  expect_close(fused.log_scale, expected.log_scale, 1e-5, "scales");
}

// A sample's numbers do not depend on the others of its batch: tiles of any size give the same bytes.
TEST(ChainGradient, ARowIsTheSameInEveryBatch) {
  const Case one = cases()[3];
  const auto model = make_model(one.network);
  const auto explainer = explainers().make("saliency");
  const ExplainTask all = task_for(*model, one, 50);
  ExplainTask some = all;
  some.samples = all.samples.slice(17, 30);
  EXPECT_TRUE(at::equal(explainer->attribute(all).maps.slice(0, 17, 30), explainer->attribute(some).maps));
  const at::Tensor cotangent = normal_tensor({50, 12}, 42);
  EXPECT_TRUE(at::equal(explainer->linearize(all)->pullback(cotangent).slice(0, 17, 30),
                        explainer->linearize(some)->pullback(cotangent.slice(0, 17, 30))));
}

// The logit of a model that gives one goes through a second linear layer, [0, z].
TEST(ChainGradient, TwoLinearLayersInARowAreAChain) {
  Network network = mlp_network({.classes = 1});
  network.add("head", op::Linear{at::tensor({0.0f, 1.0f}).view({2, 1}), at::zeros({2})});
  const auto model = make_model(network), reference = make_model(by_autograd(network));
  const Case one{"head", network};
  const auto explainer = explainers().make("saliency");
  ASSERT_TRUE(LinearChain::of(network, {}, normal_tensor({3, 12}, 1)));
  expect_close(explainer->attribute(task_for(*model, one, 9)).maps, explainer->attribute(task_for(*reference, one, 9)).maps, 1e-5,
               "maps");
}

TEST(ChainGradient, OtherNetworksAreLeftToAutograd) {
  const at::Tensor inputs = normal_tensor({4, 12}, 1);
  EXPECT_FALSE(LinearChain::of(mlp_network({.type = at::kDouble}), {}, inputs.to(at::kDouble)));
  EXPECT_FALSE(LinearChain::of(mlp_network({.activation = {.kind = op::Activation::Kind::kTanh}}), {}, inputs));
  EXPECT_FALSE(LinearChain::of(mlp_network({}), {.softplus_beta = {1, 2}}, inputs));  // one value too many: the network says so
  EXPECT_FALSE(LinearChain::of(mlp_network({}), {}, normal_tensor({4, 11}, 1)));
  EXPECT_FALSE(LinearChain::of(mlp_network({.hidden = 20000}), {}, inputs));  // better in large products
}

}  // namespace
}  // namespace holdfast::explain::chain_gradient_test

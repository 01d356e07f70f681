#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "explain_case.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::explain {
namespace {

using testing_support::apart;
using testing_support::explained;
using testing_support::linear_model;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::whole_task;

TEST(Shapley, OfALinearLogitIsTheClosedForm) {
  const at::Tensor weight = normal_tensor({3, 5}, 60, at::kDouble);
  const auto model = linear_model(weight, normal_tensor({3}, 61, at::kDouble));
  ExplainTask task = whole_task(*model, normal_tensor({4, 5}, 62, at::kDouble));
  task.samples.baseline = normal_tensor({5}, 63, at::kDouble);
  const at::Tensor slopes = weight.index_select(0, task.samples.targets);
  EXPECT_LT(apart(explained("shapley(samples=1,target=logit,baseline=given)", task),
                  slopes * (task.samples.inputs - task.samples.baseline)),
            1e-12);
}

// Every order of four columns, in plain loops.
TEST(Shapley, TendsToTheMeanOverAllOrdersAndAlwaysAddsUp) {
  const auto model = mlp_model({.features = 4, .classes = 3, .type = at::kDouble});
  const ExplainTask task = whole_task(*model, normal_tensor({2, 4}, 64, at::kDouble));
  const at::Tensor inputs = task.samples.inputs;
  const auto value = [&](const at::Tensor& x) {
    return at::softmax(model->logits(x), 1).gather(1, task.samples.targets.unsqueeze(1)).squeeze(1);
  };
  at::Tensor exact = at::zeros_like(inputs);
  std::vector<std::int64_t> order(4);
  std::iota(order.begin(), order.end(), 0);
  do {
    at::Tensor x = at::zeros_like(inputs), before = value(x);
    for (const std::int64_t column : order) {
      x.select(1, column).copy_(inputs.select(1, column));
      const at::Tensor after = value(x);
      exact.select(1, column) += (after - before) / 24;
      before = after;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_LT(apart(explained("shapley(samples=2000)", task), exact), 0.02);
  const Explanation rough = explainers().make("shapley(samples=1)")->attribute(task);
  EXPECT_LT(rough.delta.abs().max().item<double>(), 1e-12);
}

TEST(Shapley, GivesAGroupOneValueAndAStepOneValue) {
  const auto model = mlp_model({.features = 6, .classes = 3, .type = at::kDouble});
  Schema schema = Schema::of(Layout::vector(6));
  schema.groups = {{.name = "colour", .columns = {1, 2, 4}, .levels = {}}};
  at::Tensor inputs = normal_tensor({2, 6}, 65, at::kDouble);
  for (const std::int64_t column : schema.groups[0].columns) inputs.select(1, column).fill_(column == 4 ? 1 : 0);
  ExplainTask task = whole_task(*model, inputs);
  task.samples.schema = share_schema(schema);
  const Explanation of_groups = explainers().make("shapley(samples=4)")->attribute(task);
  EXPECT_TRUE((of_groups.maps.index_select(1, at::tensor({1, 2})) == 0).all().item<bool>());
  EXPECT_TRUE((of_groups.maps.select(1, 4) != 0).all().item<bool>());
  EXPECT_LT(of_groups.delta.abs().max().item<double>(), 1e-12);

  Network network;
  network.add("input", op::Input{});
  network.add("flatten", op::Flatten{});
  network.add("out", op::Linear{normal_tensor({3, 6}, 66, at::kDouble), normal_tensor({3}, 67, at::kDouble)});
  const auto steps = make_model(std::move(network));
  ExplainTask series = whole_task(*steps, normal_tensor({2, 3, 2}, 68, at::kDouble));
  series.samples.schema = share_schema(Schema::of(Layout::sequence(3, 2)));
  const at::Tensor map = explained("shapley(samples=2)", series);
  EXPECT_TRUE(at::equal(map.select(2, 0), map.select(2, 1)));
  EXPECT_EQ(explainers().make("shapley(samples=2)")->evaluations(*series.samples.schema), 2 + 4 * 2);
}

}  // namespace
}  // namespace holdfast::explain

// Every registered measure is held to the contract of measure.h. Measures are found through the registry.
#include <algorithm>
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"
#include "support/errors.h"
#include "support/method_calls.h"
#include "support/small_models.h"

namespace holdfast::measure {
namespace {

using testing_support::method_of;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::softplus;

constexpr std::int64_t kRows = 6, kColumns = 7;

struct Row {
  std::string call;
  std::int64_t classes = 3;
  bool relu = false;  // instead of softplus
};

// Calls that run quickly, and variants that take other code.
const std::vector<Row> kMeasureVariants{
    {.call = "thickness(k=3,endpoints=6,points=4)"},
    {.call = "thickness(k=3,endpoints=6,points=4,form=relaxed)"},
    {.call = "thickness(i=1,j=4,endpoints=6,points=4,from=gaussian)"},
    {.call = "thickness(k=3,from=given,points=5)"},
    {.call = "thickness_bounds(k=3)"},
    {.call = "thickness_bounds(k=3,by=printed)"},
    {.call = "thickness_bounds(i=1,j=3)", .classes = 2},
    {.call = "no_swap_radius(k=3)"},
    {.call = "certified_overlap(k=3,radius=0.3)"},
    {.call = "certified_overlap(k=3,radius=0.2)", .classes = 2, .relu = true},
    {.call = "exact_overlap(k=3,radius=0.2)", .classes = 2, .relu = true},
    {.call = "smoothed_overlap(k=3,radius=0.02,samples=40)"},
    {.call = "smoothed_overlap(k=3,w=1,radius=0.02,samples=40)", .relu = true},
    {.call = "curvature"},
    {.call = "curvature(norm=spectral)"},
    {.call = "curvature(norm=largest,of=ce)"},
    {.call = "curvature(norm=estimate)"},
    {.call = "curvature(by=closed)", .relu = true},
    {.call = "curvature(norm=largest,of=ce)", .relu = true},
    {.call = "dffot"},
    {.call = "comp(remove=mean)"},
    {.call = "suff(remove=resample,draws=3)"},
    {.call = "deletion(random=3)"},
    {.call = "insertion(curve=true)"},
    {.call = "max_sensitivity(samples=12)"},
    {.call = "avg_sensitivity(samples=12,from=gaussian)"},
    {.call = "local_lipschitz(samples=12,radius=0.2)"},
    {.call = "local_lipschitz(samples=12,normalise=max)"},
    {.call = "relative_input_stability(samples=12)"},
    {.call = "relative_output_stability(samples=12)"},
    {.call = "relative_representation_stability(samples=12)"},
};

// The variants, and every measure that has none with few samples.
std::vector<Row> measure_rows() {
  std::vector<Row> rows = kMeasureVariants;
  std::vector<std::string> calls;
  for (const Row& row : rows) calls.push_back(row.call);
  for (const std::string& call : testing_support::calls_beside(calls, measures(), {{"k", "3"}, {"samples", "12"}})) {
    rows.push_back({.call = call});
  }
  return rows;
}

class MeasureConformance : public testing::TestWithParam<Row> {
 protected:
  // Samples begin <= b < end. Their ids are not their positions.
  MeasureTask task(std::int64_t begin = 0, std::int64_t end = kRows) const {
    const at::NoGradGuard no_graph;
    const at::Tensor inputs = inputs_.slice(0, begin, end);
    return {.model = *model_,
            .explainer = *explainer_,
            .samples = {.inputs = inputs,
                        .targets = predicted_class(model_->logits(inputs)),
                        .ids = at::arange(40 + begin, 40 + end, at::kLong),
                        .schema = share_schema(schema_),
                        .baseline = at::zeros({kColumns}, at::kDouble),
                        .background = background_},
            .seed = 3,
            .epsilon = 0.8,
            .endpoints = endpoints_.slice(0, begin, end)};
  }

  // Every column: the values and the parts, in order.
  static std::vector<std::vector<double>> columns(const Measurement& measured) {
    std::vector<std::vector<double>> all{measured.values};
    for (const auto& [name, part] : measured.parts) all.push_back(part);
    return all;
  }

  static void expect_near(const Measurement& one, const Measurement& other, std::int64_t shift, const std::string& what) {
    const auto some = columns(one), all = columns(other);
    ASSERT_EQ(some.size(), all.size());
    for (std::size_t c = 0; c < some.size(); ++c) {
      for (std::size_t b = 0; b < some[c].size(); ++b) {
        const double expected = all[c][b + static_cast<std::size_t>(shift)];
        EXPECT_EQ(std::isnan(some[c][b]), std::isnan(expected)) << what << ", column " << c;
        if (!std::isnan(expected)) {
          EXPECT_NEAR(some[c][b], expected, 1e-9 * (1 + std::abs(expected))) << what << ", column " << c;
        }
      }
    }
  }

  std::unique_ptr<Measure> measure_ = measures().make(GetParam().call);
  std::unique_ptr<Explainer> explainer_ = explainers().make("saliency");
  std::unique_ptr<Model> model_ = mlp_model({.features = kColumns,
                                             .classes = GetParam().classes,
                                             .activation = GetParam().relu ? op::Activation{} : softplus(1.5),
                                             .type = at::kDouble});
  Schema schema_ = Schema::of(Layout::vector(kColumns));
  at::Tensor inputs_ = normal_tensor({kRows, kColumns}, 30, at::kDouble);
  at::Tensor endpoints_ = inputs_ + 0.5 * normal_tensor({kRows, kColumns}, 31, at::kDouble);
  at::Tensor background_ = normal_tensor({20, kColumns}, 32, at::kDouble);
};

TEST_P(MeasureConformance, GivesOneValueASampleInEveryColumn) {
  const Measurement measured = measure_->run(task());
  ASSERT_EQ(measured.values.size(), std::size_t{kRows});
  EXPECT_TRUE(std::all_of(measured.values.begin(), measured.values.end(), [](double value) { return std::isfinite(value); }));
  for (const auto& [name, part] : measured.parts) EXPECT_EQ(part.size(), std::size_t{kRows}) << name;
  EXPECT_FALSE(std::all_of(measured.values.begin(), measured.values.end(), [&](double v) { return v == measured.values[0]; }))
      << "samples differ; a measure that is the same for all of them shows nothing here";
}

TEST_P(MeasureConformance, IsDeterministicAndWorksWhereGradientsAreOff) {
  const Measurement first = measure_->run(task());
  const at::NoGradGuard no_graph;
  const Measurement again = measure_->run(task());
  EXPECT_EQ(first.values, again.values);
}

TEST_P(MeasureConformance, ABatchIsItsSamplesOneByOne) {
  const Measurement all = measure_->run(task());
  for (std::int64_t b = 0; b < kRows; ++b) expect_near(measure_->run(task(b, b + 1)), all, b, "sample " + std::to_string(b));
}

TEST_P(MeasureConformance, TheMemoryLimitChangesNothing) {
  const Measurement all = measure_->run(task());
  MeasureTask tight = task();
  tight.memory = 1;
  expect_near(measure_->run(tight), all, 0, "one row at a time");
}

TEST_P(MeasureConformance, ThreadsSideBySideGiveTheSameBytes) {
  Measurement apart[2];
  std::thread other([&] { apart[1] = measure_->run(task(3, 6)); });
  apart[0] = measure_->run(task(0, 3));
  other.join();
  EXPECT_EQ(apart[0].values, measure_->run(task(0, 3)).values);
  EXPECT_EQ(apart[1].values, measure_->run(task(3, 6)).values);
}

TEST_P(MeasureConformance, LeavesTheModelAndTheInputsAsTheyWere) {
  const at::Tensor before = inputs_.clone(), background = background_.clone();
  (void)measure_->run(task());
  EXPECT_TRUE(at::equal(inputs_, before));
  EXPECT_TRUE(at::equal(background_, background));
  EXPECT_FALSE(inputs_.requires_grad());
  for (const Parameter& parameter : model_->network()->parameters())
    EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
}

TEST_P(MeasureConformance, NameIsACallThatMakesTheSameMeasure) {
  EXPECT_EQ(measures().make(measure_->name())->name(), measure_->name());
}

INSTANTIATE_TEST_SUITE_P(Measures, MeasureConformance, testing::ValuesIn(measure_rows()),
                         [](const auto& row) { return method_of(row.param.call) + "_" + std::to_string(row.index); });

}  // namespace
}  // namespace holdfast::measure

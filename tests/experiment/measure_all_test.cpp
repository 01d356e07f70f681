// Measures over many samples: tiles side by side, and what audits make of their values.
#include "holdfast/experiment/measure_all.h"

#include <cmath>

#include <gtest/gtest.h>

#include "../../src/experiment/audit/files.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "support/errors.h"

namespace holdfast::experiment {
namespace {

struct MeasureSetting {
  std::unique_ptr<Model> model = make_model(architectures().make("mlp(inputs=12,hidden=16,classes=3)")->build(1));
  std::unique_ptr<Explainer> explainer = explainers().make("saliency");
  Schema schema = Schema::of(Layout::vector(12));
  at::Tensor ids = at::arange(23, at::kLong);
  at::Tensor inputs = random_uniform({12}, ids, 5, "measure test");

  MeasureTask task() const {
    return {.model = *model,
            .explainer = *explainer,
            .samples = {.inputs = inputs, .ids = ids, .schema = share_schema(schema)},
            .seed = 3,
            .epsilon = 0.5};
  }
};

TEST(MeasureAll, IsTheSameForAnyNumberOfThreadsAndNearlySoForAnyTile) {
  const MeasureSetting setting;
  const auto measure = measures().make("thickness(k=4,endpoints=8,points=4,form=relaxed)");
  const Measurement one = measure_all(*measure, setting.task(), {.size = 5, .threads = 1});
  const Measurement two = measure_all(*measure, setting.task(), {.size = 5, .threads = 2});
  const Measurement whole = measure_all(*measure, setting.task(), {.size = 64, .threads = 1});
  EXPECT_EQ(one.values, two.values);
  ASSERT_EQ(one.values.size(), 23U);
  ASSERT_EQ(one.parts[0].second.size(), 23U);
  for (std::size_t b = 0; b < 23; ++b) EXPECT_NEAR(one.values[b], whole.values[b], 1e-5 * (1e-3 + std::abs(whole.values[b])));
}

TEST(MeasureAll, RefusesBeforeAnyWork) {
  const MeasureSetting setting;
  MeasureTask task = setting.task();
  task.epsilon = 0;
  EXPECT_ERROR(check_measure(*measures().make("thickness(k=4)"), task), kUsage, "epsilon");
  EXPECT_ERROR(check_measure(*measures().make("thickness(k=40)"), setting.task()), kUsage, "choose k < 12");
}

TEST(MeasureAll, JsonLeavesUndefinedValuesOut) {
  const auto measure = measures().make("curvature");
  const Measurement measured{.values = {1, std::nan(""), 3}, .parts = {{"residual", {0, 0, 6}}}};
  const Json json = to_json(*measure, measured, 0);
  EXPECT_EQ(json.at("mean"), 2);
  EXPECT_EQ(json.at("median"), 2);
  EXPECT_EQ(json.at("count"), 2);
  EXPECT_EQ(json.at("parts").at("residual").at("mean"), 2);
  EXPECT_FALSE(json.at("higher_is_better"));
}

// All of four samples: as many as 1 - 0.025^(1/4) of others may have another value, within the range that the measure has.
TEST(MeasureAll, EqualValuesLeaveRoomWithinTheMeasuresRange) {
  const double unseen = 1 - std::pow(0.025, 0.25);
  const Measurement measured{.values = {1, 1, 1, 1}};
  for (const char* call : {"thickness(k=4)", "dffot", "deletion"}) {
    const Interval interval = measured_interval(*measures().make(call), measured, 0);
    EXPECT_DOUBLE_EQ(interval.low, 1 - unseen) << call;
    EXPECT_EQ(interval.high, 1) << call;
  }
  for (const char* call : {"thickness(k=4,form=relaxed)", "curvature"})
    EXPECT_EQ(measured_interval(*measures().make(call), measured, 0).low, 1) << call << " has no end";
}

RowSummary attacked(const std::string& model, std::vector<double> values, std::vector<std::int64_t> first_swap) {
  return {.dataset = "d",
          .model = model,
          .explainer = "saliency",
          .attack = "er",
          .metric = "top_k(k=8)",
          .threat = {},
          .random = {},
          .values = std::move(values),
          .first_swap = std::move(first_swap)};
}

MeasureRow measured(const std::string& model, const std::string& measure, const std::string& explainer,
                    std::vector<double> values) {
  return {.cell = {.subject = {.dataset = "d", .model_name = model, .model = nullptr, .samples = {}},
                   .explainer = explainers().make(explainer),
                   .measure = measures().make(measure)},
          .measured = {.values = std::move(values)}};
}

TEST(AuditStatistics, ComparesModelsOnTheSameSettingAlone) {
  const std::vector<RowSummary> rows{attacked("a", {1, 1, 1, 1, 1, 1}, {}), attacked("b", {0, 0, 0, 0, 0, 0}, {})};
  std::vector<RowSummary> apart = rows;
  apart[1].attack = "random";
  const std::vector<MeasureRow> measures{measured("a", "curvature", "saliency", {2, 1, 2, 1, 2, 1}),
                                         measured("b", "curvature", "saliency", {1, 2, 1, 2, 1, 2})};
  EXPECT_EQ(comparisons_json(apart, {}, 0).size(), 0U);
  const Json found = comparisons_json(rows, measures, 0);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].at("models"), Json({"a", "b"}));
  EXPECT_EQ(found[0].at("difference").at("mean"), 1);
  EXPECT_EQ(found[0].at("p_value"), 2.0 / 64);  // all six in one direction, or in the other
  EXPECT_EQ(found[0].at("corrected"), 4.0 / 64);
  EXPECT_EQ(found[1].at("p_value"), 1);
}

TEST(AuditStatistics, CorrelatesFirstSwapsWithTheSameModelsMeasures) {
  const std::vector<RowSummary> rows{attacked("a", {}, {1, 5, -1, 3}), attacked("b", {}, {-1, -1, -1, -1})};
  const std::vector<MeasureRow> measures{measured("a", "curvature", "saliency", {9, 2, 1, 4}),
                                         measured("b", "curvature", "saliency", {1, 2, 3, 4}),
                                         measured("a", "dffot", "lrp", {1, 2, 3, 4})};
  const Json found = correlations_json(rows, measures, 0);
  ASSERT_EQ(found.size(), 1U) << "a never-swapped row has nothing to rank, and another explainer's measure is of other maps";
  EXPECT_EQ(found[0].at("model"), "a");
  EXPECT_NEAR(found[0].at("kendall").at("value"), -1, 1e-12);
  EXPECT_EQ(found[0].at("censored"), 1);
}

}  // namespace
}  // namespace holdfast::experiment

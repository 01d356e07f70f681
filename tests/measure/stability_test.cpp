// Stability measures against closed forms, and against a plain reference that goes from point to point.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"
#include "measure_case.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::measure {
namespace {

using testing_support::linear_model;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::part;
using testing_support::softplus;

constexpr std::int64_t kStabilitySamples = 5, kStabilityPoints = 9, kStabilityFeatures = 6;

// A task with everything it points to.
struct StabilityCase {
  std::unique_ptr<Model> model;
  std::unique_ptr<Explainer> explainer;
  Schema schema = Schema::of(Layout::vector(kStabilityFeatures));
  at::Tensor inputs = normal_tensor({kStabilitySamples, kStabilityFeatures}, 70, at::kDouble);
  at::Tensor endpoints = {};

  MeasureTask task() const {
    const at::NoGradGuard no_graph;
    return {.model = *model,
            .explainer = *explainer,
            .samples = {.inputs = inputs,
                        .targets = predicted_class(model->logits(inputs)),
                        .ids = at::arange(11, 11 + inputs.size(0), at::kLong),
                        .schema = share_schema(schema)},
            .seed = 4,
            .endpoints = endpoints};
  }

  Measurement measure(const std::string& call) const { return measures().make(call)->run(task()); }
};

StabilityCase linear_case(const std::string& explainer) {
  StabilityCase made{
      .model = linear_model(normal_tensor({3, kStabilityFeatures}, 71, at::kDouble), normal_tensor({3}, 72, at::kDouble)),
      .explainer = explainers().make(explainer)};
  return made;
}

// Far enough from the samples for some predictions to change.
StabilityCase mlp_case(const std::string& explainer = "saliency", double distance = 0.7) {
  StabilityCase made{
      .model = mlp_model({.features = kStabilityFeatures, .classes = 3, .activation = softplus(2), .type = at::kDouble}),
      .explainer = explainers().make(explainer)};
  made.endpoints = made.inputs.unsqueeze(1) +
                   distance * normal_tensor({kStabilitySamples, kStabilityPoints, kStabilityFeatures}, 73, at::kDouble);
  return made;
}

// ---- the reference: one sample, one point at a time ---------------------------------------------------------------------

struct Point {
  at::Tensor x, y;  // inputs, [n]
  at::Tensor a, b;  // maps
  at::Tensor h, g;  // logits
  at::Tensor l, m;  // values of the hidden layer after its activation
  bool flip = false;
};

Point point_at(const StabilityCase& of, std::int64_t sample, std::int64_t number) {
  const MeasureTask task = of.task();
  const auto explain = [&](const at::Tensor& input) {
    ExplainTask one = task.explain_task();
    one.samples.inputs = input.unsqueeze(0);
    one.samples.targets = task.samples.targets.slice(0, sample, sample + 1);
    one.samples.ids = task.samples.ids.slice(0, sample, sample + 1);
    return of.explainer->attribute(one);
  };
  const at::NoGradGuard no_graph;
  Point point{.x = of.inputs[sample], .y = of.endpoints[sample][number]};
  const Explanation here = explain(point.x), there = explain(point.y);
  point.a = here.maps[0] * here.log_scale[0].exp();
  point.b = there.maps[0] * there.log_scale[0].exp();
  point.h = here.logits[0];
  point.g = there.logits[0];
  const auto hidden = [&](const at::Tensor& input) {
    return of.model->network()->run(input.unsqueeze(0), {.keep_values = true}).values[2][0];
  };
  point.l = hidden(point.x);
  point.m = hidden(point.y);
  point.flip = point.h.argmax().item<std::int64_t>() != point.g.argmax().item<std::int64_t>();
  return point;
}

double length(const at::Tensor& vector) {
  double sum = 0;
  for (std::int64_t i = 0; i < vector.numel(); ++i) sum += std::pow(vector[i].item<double>(), 2);
  return std::sqrt(sum);
}

template <class Number>
std::vector<double> largest_over_points(const StabilityCase& of, const Number& number) {
  std::vector<double> result;
  for (std::int64_t b = 0; b < kStabilitySamples; ++b) {
    double largest = std::numeric_limits<double>::quiet_NaN();
    for (std::int64_t p = 0; p < kStabilityPoints; ++p) {
      const Point point = point_at(of, b, p);
      if (!point.flip) largest = std::fmax(largest, number(point));
    }
    result.push_back(largest);
  }
  return result;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance = 1e-9) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << "sample " << i;
    if (!std::isnan(expected[i])) {
      EXPECT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "sample " << i;
    }
  }
}

double relative(const at::Tensor& from, const at::Tensor& to) {
  return length((to - from) / from);
}

TEST(Stability, LargestNumbersAreThoseOfPointsOneByOne) {
  const StabilityCase some = mlp_case();
  const auto flips = part(some.measure("max_sensitivity(from=given)"), "label_flips");
  ASSERT_GT(*std::max_element(flips.begin(), flips.end()), 0) << "points with another prediction belong to this test";
  ASSERT_LT(*std::min_element(flips.begin(), flips.end()), kStabilityPoints);

  expect_near(some.measure("max_sensitivity(from=given)").values,
              largest_over_points(some, [](const Point& p) { return length(p.b - p.a) / length(p.a); }));
  expect_near(some.measure("local_lipschitz(from=given)").values,
              largest_over_points(some, [](const Point& p) { return length(p.b - p.a) / length(p.y - p.x); }));
  expect_near(some.measure("local_lipschitz(from=given,normalise=max)").values, largest_over_points(some, [](const Point& p) {
                return length(p.b / p.b.abs().max() - p.a / p.a.abs().max()) / length(p.y - p.x);
              }));
  expect_near(some.measure("relative_input_stability(from=given)").values,
              largest_over_points(some, [](const Point& p) { return relative(p.a, p.b) / relative(p.x, p.y); }));
  expect_near(some.measure("relative_output_stability(from=given)").values,
              largest_over_points(some, [](const Point& p) { return relative(p.a, p.b) / length(p.g - p.h); }));
  expect_near(some.measure("relative_representation_stability(from=given)").values,
              largest_over_points(some, [](const Point& p) { return relative(p.a, p.b) / relative(p.l, p.m); }));
}

TEST(Stability, OtherNorms) {
  const StabilityCase some = mlp_case("saliency(signed=true)");
  const auto sum = [](const at::Tensor& v) { return v.abs().sum().item<double>(); };
  const auto most = [](const at::Tensor& v) { return v.abs().max().item<double>(); };
  expect_near(some.measure("max_sensitivity(from=given,norm=l1)").values,
              largest_over_points(some, [&](const Point& p) { return sum(p.b - p.a) / sum(p.a); }));
  expect_near(some.measure("local_lipschitz(from=given,norm=linf,input_norm=l1)").values,
              largest_over_points(some, [&](const Point& p) { return most(p.b - p.a) / sum(p.y - p.x); }));
}

TEST(Stability, AverageIsTheMeanOfThePointsThatKeepThePrediction) {
  const StabilityCase some = mlp_case();
  std::vector<double> expected;
  for (std::int64_t b = 0; b < kStabilitySamples; ++b) {
    double sum = 0;
    int kept = 0;
    for (std::int64_t p = 0; p < kStabilityPoints; ++p) {
      const Point point = point_at(some, b, p);
      if (point.flip) continue;
      sum += length(point.b - point.a) / length(point.a);
      ++kept;
    }
    expected.push_back(sum / kept);
  }
  expect_near(some.measure("avg_sensitivity(from=given)").values, expected);
}

TEST(Stability, AMapThatNeverMovesIsStable) {
  const StabilityCase linear = linear_case("saliency(target=logit)");
  for (const char* call : {"max_sensitivity", "avg_sensitivity", "local_lipschitz", "local_lipschitz(normalise=max)",
                           "relative_input_stability", "relative_output_stability"}) {
    for (const double value : linear.measure(call).values) EXPECT_EQ(value, 0) << call;
  }
}

// w * x moves as the input does: relatively by the same amount in every element, absolutely by |w| where all are alike.
TEST(Stability, ClosedFormsOfInputTimesGradientOnLinearModels) {
  const at::Tensor signs = normal_tensor({kStabilityFeatures}, 74, at::kDouble).sign();
  StabilityCase linear{.model = linear_model(at::stack({3 * signs, 0 * signs}), at::tensor({40.0, 0.0}, at::kDouble)),
                       .explainer = explainers().make("input_x_gradient(target=logit)")};
  for (const double value : linear.measure("relative_input_stability").values) EXPECT_NEAR(value, 1, 1e-6);
  for (const double value : linear.measure("local_lipschitz").values) EXPECT_NEAR(value, 3, 1e-6);
  linear.endpoints = 1.5 * linear.inputs;
  for (const double value : linear.measure("max_sensitivity(from=given)").values) EXPECT_NEAR(value, 0.5, 1e-12);
}

TEST(Stability, WherePredictionsChangeEverywhereNothingIsLeft) {
  StabilityCase linear = linear_case("saliency");
  linear.model =
      linear_model(at::stack({at::ones({kStabilityFeatures}, at::kDouble), -at::ones({kStabilityFeatures}, at::kDouble)}),
                   at::zeros({2}, at::kDouble));
  linear.endpoints = (-linear.inputs).unsqueeze(1).expand({-1, 4, -1});
  for (const std::string method : {"max_sensitivity", "avg_sensitivity", "local_lipschitz", "relative_input_stability"}) {
    const Measurement measured = linear.measure(method + "(from=given)");
    for (const double value : measured.values) EXPECT_TRUE(std::isnan(value)) << method;
    EXPECT_EQ(part(measured, "label_flips"), std::vector<double>(kStabilitySamples, 4)) << method;
    for (const double value : linear.measure(method + "(from=given,flips=keep)").values)
      EXPECT_TRUE(std::isfinite(value)) << method;
  }
}

TEST(Stability, AZeroMapIsUndefinedAndCounted) {
  StabilityCase flat = linear_case("saliency(target=logit)");
  flat.model = linear_model(at::zeros({3, kStabilityFeatures}, at::kDouble), at::tensor({1.0, 0.0, 0.0}, at::kDouble));
  for (const std::string method : {"max_sensitivity", "relative_input_stability", "local_lipschitz"}) {
    const Measurement measured =
        flat.measure(method + (method == "local_lipschitz" ? "(samples=7,normalise=max)" : "(samples=7)"));
    for (const double value : measured.values) EXPECT_TRUE(std::isnan(value)) << method;
    EXPECT_EQ(part(measured, "undefined"), std::vector<double>(kStabilitySamples, 7)) << method;
  }
}

TEST(Stability, ElementsThatAreZeroHaveNoRelativeChange) {
  StabilityCase some = mlp_case("saliency", 0.1);
  some.inputs.index_put_({at::tensor({0, 0, 1}), at::tensor({1, 4, 0})}, at::zeros({3}, at::kDouble));
  const Measurement measured = some.measure("relative_input_stability(from=given,flips=keep)");
  EXPECT_EQ(part(measured, "input_zeros"), (std::vector<double>{2, 1, 0, 0, 0}));
  double largest = 0;
  for (std::int64_t p = 0; p < kStabilityPoints; ++p) {
    const Point point = point_at(some, 0, p);
    const at::Tensor there = at::tensor({0, 2, 3, 5});
    const double below = relative(point.x.index_select(0, there), point.y.index_select(0, there));
    largest = std::max(largest, relative(point.a, point.b) / below);
  }
  EXPECT_NEAR(measured.values[0], largest, 1e-9 * largest);

  some.inputs.zero_();
  for (const double value : some.measure("relative_input_stability(from=given)").values) EXPECT_TRUE(std::isnan(value));
}

TEST(Stability, SaturatedProbabilitiesKeepTheirDigits) {
  const auto saturated = [](at::ScalarType type) {
    StabilityCase made{.model = mlp_model({.features = kStabilityFeatures, .activation = softplus(2), .gain = 60, .type = type}),
                       .explainer = explainers().make("saliency")};
    made.inputs = (3 * made.inputs).to(type);
    return made.measure("max_sensitivity(samples=20,radius=0.05)").values;
  };
  const std::vector<double> exact = saturated(at::kDouble);
  EXPECT_GT(*std::min_element(exact.begin(), exact.end()), 0);
  expect_near(saturated(at::kFloat), exact, 2e-3);
}

// ---- points ------------------------------------------------------------------------------------------------------------

// A linear model that remembers what it was asked.
struct Watched {
  at::Tensor asked;
  std::unique_ptr<Model> model = make_model(
      [this](const at::Tensor& inputs) {
        asked = inputs.detach().clone();
        return at::stack({inputs.sum(1), -inputs.sum(1)}, 1);
      },
      {}, at::kCPU);
};

TEST(Surroundings, BoxIsUniformAndKeyedBySampleAndPoint) {
  Watched watched;
  const auto explainer = explainers().make("saliency(target=logit)");
  const Schema schema = Schema::of(Layout::vector(kStabilityFeatures));
  const at::Tensor inputs = normal_tensor({2, kStabilityFeatures}, 75);
  const auto noise = [&](const std::string& call, at::Tensor ids) {
    const MeasureTask task{
        .model = *watched.model,
        .explainer = *explainer,
        .samples = {
            .inputs = inputs, .targets = at::zeros({2}, at::kLong), .ids = std::move(ids), .schema = share_schema(schema)}};
    (void)measures().make(call)->run(task);
    return watched.asked.view({2, -1, kStabilityFeatures}) - inputs.unsqueeze(1);
  };
  const at::Tensor box = noise("max_sensitivity(samples=400,radius=0.3)", at::tensor({5, 6}));
  EXPECT_LE(box.abs().max().item<double>(), 0.3 + 1e-6);
  EXPECT_GT(box.abs().max().item<double>(), 0.29);
  EXPECT_NEAR(box.mean().item<double>(), 0, 0.012);               // 4 standard errors
  EXPECT_NEAR(box.square().mean().item<double>(), 0.03, 0.0016);  // radius^2 / 3
  EXPECT_TRUE(at::allclose(noise("max_sensitivity(samples=100,radius=0.3)", at::tensor({5, 6})), box.slice(1, 0, 100)));
  const at::Tensor swapped = noise("max_sensitivity(samples=400,radius=0.3)", at::tensor({6, 5}));
  EXPECT_TRUE(at::allclose(swapped[0], box[1], 0, 1e-6));
  EXPECT_FALSE(at::allclose(box[0], box[1], 0, 1e-3));

  const at::Tensor gaussian = noise("local_lipschitz(samples=400,radius=0.3)", at::tensor({5, 6}));
  EXPECT_NEAR(gaussian.square().mean().item<double>(), 0.09, 0.008);
  const at::Tensor one_sided = noise("relative_input_stability(samples=400,quantus=true)", at::tensor({5, 6}));
  EXPECT_GE(one_sided.min().item<double>(), 0.02 - 1e-6);
  EXPECT_LE(one_sided.max().item<double>(), 0.2 + 1e-6);
}

// ---- Quantus' ways ------------------------------------------------------------------------------------------------------

TEST(QuantusOption, OneFlipMakesRelativeStabilityUndefined) {
  const StabilityCase some = mlp_case();
  const Measurement ours = some.measure("relative_output_stability(from=given)");
  const Measurement theirs = some.measure("relative_output_stability(from=given,quantus=true)");
  const std::vector<double> flips = part(ours, "label_flips");
  for (std::size_t b = 0; b < flips.size(); ++b) {
    EXPECT_EQ(std::isnan(theirs.values[b]), flips[b] > 0);
    EXPECT_FALSE(std::isnan(ours.values[b]));
  }
}

TEST(QuantusOption, LipschitzIsDividedByTheLargestValueOfABatch) {
  const StabilityCase some = mlp_case();
  const std::int64_t batch = 3;
  std::vector<double> expected;
  for (std::int64_t b = 0; b < kStabilitySamples; ++b) {
    const std::int64_t begin = b / batch * batch, end = std::min(kStabilitySamples, begin + batch);
    double largest = 0;
    for (std::int64_t p = 0; p < kStabilityPoints; ++p) {
      double clean = 0, there = 0;
      for (std::int64_t other = begin; other < end; ++other) {
        const Point point = point_at(some, other, p);
        clean = std::max(clean, point.a.abs().max().item<double>());
        there = std::max(there, point.b.abs().max().item<double>());
      }
      const Point point = point_at(some, b, p);
      largest = std::max(largest, length(point.b / there - point.a / clean) / length(point.y - point.x));
    }
    expected.push_back(largest);
  }
  expect_near(some.measure("local_lipschitz(from=given,quantus=true,batch=3)").values, expected, 1e-7);
}

// ---- refusals ----------------------------------------------------------------------------------------------------------

TEST(Stability, SaysWhatIsMissing) {
  StabilityCase some = mlp_case();
  EXPECT_ERROR(some.measure("relative_representation_stability(layer=hiden)"), kUsage,
               "no layer 'hiden' (did you mean 'hidden'?)");
  EXPECT_ERROR(linear_case("saliency").measure("relative_representation_stability"), kUsage, "no hidden layer");
  EXPECT_ERROR(linear_case("saliency").measure("max_sensitivity(from=given)"), kUsage, "--endpoints");
  EXPECT_ERROR(some.measure("relative_input_stability(quantus=true,radius=0.01)"), kUsage, "starts at 0.02");
  EXPECT_ERROR(some.measure("local_lipschitz(quantus=true,norm=l1)"), kUsage, "norm=l2");
  some.endpoints = some.endpoints.slice(2, 1);
  EXPECT_ERROR(some.measure("max_sensitivity(from=given)"), kInput, "endpoints have shape");
  Watched watched;
  some.model = std::move(watched.model);
  EXPECT_ERROR(some.measure("relative_representation_stability"), kUsage, "opaque");
}

TEST(Stability, LayersByName) {
  const StabilityCase some = mlp_case();
  const std::vector<double> last = some.measure("relative_representation_stability(from=given)").values;
  EXPECT_EQ(some.measure("relative_representation_stability(from=given,layer=act)").values, last);
  EXPECT_NE(some.measure("relative_representation_stability(from=given,layer=hidden)").values, last);
  EXPECT_NE(some.measure("relative_representation_stability(from=given,layer=all)").values, last);
}

TEST(Stability, NoSamplesGiveNoValues) {
  StabilityCase some = mlp_case();
  some.inputs = some.inputs.slice(0, 0, 0);
  EXPECT_TRUE(some.measure("max_sensitivity").values.empty());
}

}  // namespace
}  // namespace holdfast::measure

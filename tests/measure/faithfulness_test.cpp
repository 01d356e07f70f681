// Faithfulness against closed forms, and against a plain reference that removes features from one sample at a time.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/blur.h"
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

using Order = std::vector<std::int64_t>;

// An explainer whose maps are given.
class GivenMaps final : public Explainer {
 public:
  explicit GivenMaps(at::Tensor maps) : Explainer("given"), maps_(std::move(maps)) {}
  void check(const Model&) const override {}
  Explanation attribute(const ExplainTask& task) const override {
    const at::NoGradGuard no_graph;
    return {.maps = maps_,
            .log_scale = at::zeros({maps_.size(0)}, maps_.options()),
            .logits = task.model.logits(task.samples.inputs)};
  }

 private:
  at::Tensor maps_;
};

struct RemovalCase {
  std::unique_ptr<Model> model;
  std::unique_ptr<Explainer> explainer;
  Schema schema;
  at::Tensor inputs;
  at::Tensor background = {};

  MeasureTask task() const {
    const at::NoGradGuard no_graph;
    return {.model = *model,
            .explainer = *explainer,
            .samples = {.inputs = inputs,
                        .targets = predicted_class(model->logits(inputs)),
                        .ids = at::arange(20, 20 + inputs.size(0), at::kLong),
                        .schema = share_schema(schema),
                        .background = background},
            .seed = 9};
  }

  Measurement measure(const std::string& call) const { return measures().make(call)->run(task()); }
};

constexpr std::int64_t kRemovalSamples = 5, kRemovalFeatures = 7;

// Columns 1-3 and 5-6 are one-hot groups.
RemovalCase table() {
  RemovalCase made{
      .model = mlp_model({.features = kRemovalFeatures, .classes = 3, .activation = softplus(2), .type = at::kDouble}),
      .explainer = explainers().make("saliency"),
      .schema = Schema::of(Layout::vector(kRemovalFeatures)),
      .inputs = normal_tensor({kRemovalSamples, kRemovalFeatures}, 80, at::kDouble),
      .background = normal_tensor({12, kRemovalFeatures}, 81, at::kDouble)};
  made.schema.groups = {{"colour", {1, 2, 3}, {"r", "g", "b"}}, {"sex", {5, 6}, {"f", "m"}}};
  return made;
}

// ---- the reference ------------------------------------------------------------------------------------------------------

struct Reference {
  const RemovalCase& of;
  std::string remove;
  std::vector<Order> units;  // the columns of each
  std::int64_t draws = 1;

  Reference(const RemovalCase& some, std::string kind, std::int64_t rows = 1) : of(some), remove(std::move(kind)), draws(rows) {
    if (remove == "resample") {
      units = {{0}, {1, 2, 3}, {4}, {5, 6}};
    } else {
      for (std::int64_t i = 0; i < kRemovalFeatures; ++i) units.push_back({i});
    }
  }

  Order ranked(std::int64_t sample) const {
    const at::Tensor map = of.explainer->attribute(of.task().explain_task()).maps[sample].abs();
    std::vector<double> value;
    for (const Order& unit : units) {
      double sum = 0;
      for (const std::int64_t column : unit) sum += map[column].item<double>();
      value.push_back(sum);
    }
    Order order(units.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return value[static_cast<std::size_t>(a)] > value[static_cast<std::size_t>(b)]; });
    return order;
  }

  Order random(std::int64_t sample) const {
    return RandomStream(9, "faithfulness.random", static_cast<std::uint64_t>(20 + sample))
        .permutation(static_cast<std::int64_t>(units.size()));
  }

  at::Tensor replacement(std::int64_t sample, std::int64_t draw) const {
    if (remove == "zero") return at::zeros({kRemovalFeatures}, at::kDouble);
    if (remove == "mean") return of.background.mean(0);
    RandomStream stream(9, "removal.resample", static_cast<std::uint64_t>(20 + sample));
    std::uint64_t row = 0;
    for (std::int64_t i = 0; i <= draw; ++i) row = stream.below(12);
    return of.background[static_cast<std::int64_t>(row)];
  }

  struct Answer {
    double probability = 0, flips = 0;
  };

  // With the first k of the order removed, or with only these.
  Answer answer(std::int64_t sample, const Order& order, std::size_t k, bool keep) const {
    const at::NoGradGuard no_graph;
    const at::Tensor logits = of.model->logits(of.inputs);
    const std::int64_t c = logits[sample].argmax().item<std::int64_t>();
    Answer result;
    for (std::int64_t draw = 0; draw < draws; ++draw) {
      at::Tensor x = of.inputs[sample].clone();
      for (std::size_t i = 0; i < order.size(); ++i) {
        if ((i < k) == keep) continue;
        for (const std::int64_t column : units[static_cast<std::size_t>(order[i])]) x[column] = replacement(sample, draw)[column];
      }
      const at::Tensor there = of.model->logits(x.unsqueeze(0))[0];
      result.probability += at::softmax(there, 0)[c].item<double>() / static_cast<double>(draws);
      result.flips += (there.argmax().item<std::int64_t>() != c) / static_cast<double>(draws);
    }
    return result;
  }

  double score(const std::string& method, std::int64_t sample, const Order& order) const {
    const std::size_t n = units.size();
    const bool keep = method == "suff" || method == "insertion";
    const auto at = [&](std::size_t k) { return answer(sample, order, k, keep); };
    if (method == "dffot") {
      for (std::size_t k = 1; k <= n; ++k) {
        if (at(k).flips >= 0.5) return static_cast<double>(k) / static_cast<double>(n);
      }
      return 1;
    }
    double sum = 0;
    const double clean = answer(sample, order, 0, false).probability;
    for (std::size_t k = 1; k <= n; ++k) {
      const double p = at(k).probability;
      sum += method == "comp" || method == "suff" ? std::abs(clean - p) : (at(k - 1).probability + p) / 2;
    }
    return sum / static_cast<double>(n);
  }
};

TEST(Faithfulness, IsThatOfSamplesOneByOneForEveryMethodAndRemoval) {
  const RemovalCase some = table();
  for (const std::string remove : {"zero", "mean", "resample"}) {
    const Reference reference(some, remove, remove == "resample" ? 3 : 1);
    for (const std::string method : {"dffot", "comp", "suff", "deletion", "insertion"}) {
      const Measurement measured = some.measure(method + "(remove=" + remove + ",draws=3)");
      const std::vector<double> random = part(measured, "random");
      for (std::int64_t b = 0; b < kRemovalSamples; ++b) {
        const auto i = static_cast<std::size_t>(b);
        EXPECT_NEAR(measured.values[i], reference.score(method, b, reference.ranked(b)), 1e-12) << method << " " << remove;
        EXPECT_NEAR(random[i], reference.score(method, b, reference.random(b)), 1e-12) << method << " " << remove;
      }
    }
  }
}

// Logits (w.x - 4, 0): the first class is predicted until less than 4 is left of 5 + 2 + 1 + 0.5.
RemovalCase counted() {
  return {.model = linear_model(at::tensor({5.0, 1.0, 2.0, 0.5, 0.0, 0.0, 0.0, 0.0}, at::kDouble).view({2, 4}),
                                at::tensor({-4.0, 0.0}, at::kDouble)),
          .explainer = explainers().make("saliency(target=logit)"),
          .schema = Schema::of(Layout::vector(4)),
          .inputs = at::ones({1, 4}, at::kDouble)};
}

TEST(Faithfulness, ClosedFormsOnALinearModel) {
  const auto p = [](double left) { return 1 / (1 + std::exp(4 - left)); };
  const RemovalCase some = counted();
  EXPECT_EQ(some.measure("dffot").values[0], 0.25);
  EXPECT_EQ(part(some.measure("dffot"), "flipped")[0], 1);
  EXPECT_NEAR(some.measure("comp").values[0], p(8.5) - (p(3.5) + p(1.5) + p(0.5) + p(0)) / 4, 1e-12);
  EXPECT_NEAR(some.measure("suff").values[0], p(8.5) - (p(5) + p(7) + p(8) + p(8.5)) / 4, 1e-12);
  EXPECT_NEAR(some.measure("deletion").values[0], (p(8.5) / 2 + p(3.5) + p(1.5) + p(0.5) + p(0) / 2) / 4, 1e-12);
  const Measurement inserted = some.measure("insertion(curve=true)");
  EXPECT_NEAR(inserted.values[0], (p(0) / 2 + p(5) + p(7) + p(8) + p(8.5) / 2) / 4, 1e-12);
  EXPECT_NEAR(part(inserted, "p_0")[0], p(0), 1e-12);
  EXPECT_NEAR(part(inserted, "p_2")[0], p(7), 1e-12);
  EXPECT_NEAR(part(inserted, "random_p_4")[0], p(8.5), 1e-12);
}

TEST(Faithfulness, NoFlipIsTheWholeAndSaidSo) {
  RemovalCase some = counted();
  some.model = linear_model(at::tensor({5.0, 1.0, 2.0, 0.5, 0.0, 0.0, 0.0, 0.0}, at::kDouble).view({2, 4}),
                            at::tensor({1.0, 0.0}, at::kDouble));
  const Measurement measured = some.measure("dffot");
  EXPECT_EQ(measured.values[0], 1);
  EXPECT_EQ(part(measured, "flipped")[0], 0);
}

TEST(Faithfulness, TrueImportanceBeatsRandomFeatures) {
  RemovalCase some = counted();
  some.inputs = at::ones({40, 4}, at::kDouble);
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  for (const char* method : {"dffot", "suff", "deletion", "comp", "insertion"}) {
    const Measurement measured = some.measure(method);
    const double own = mean(measured.values), random = mean(part(measured, "random"));
    if (measures().make(method)->higher_is_better()) {
      EXPECT_GT(own, random + 0.01) << method;
    } else {
      EXPECT_LT(own, random - 0.01) << method;
    }
  }
}

TEST(Faithfulness, RandomOrdersAreAveragedAndCanBeLeftOut) {
  const RemovalCase some = counted();
  EXPECT_NE(part(some.measure("deletion(random=200)"), "random"), part(some.measure("deletion"), "random"));
  // Every subset of one, two and three features is equally likely.
  const auto p = [](double left) { return 1 / (1 + std::exp(4 - left)); };
  double area = (p(8.5) + p(0)) / 2;
  for (const double removed : {5.0, 1.0, 2.0, 0.5}) area += (p(8.5 - removed) + p(removed)) / 4;
  for (const double removed : {6.0, 7.0, 5.5, 3.0, 1.5, 2.5}) area += p(8.5 - removed) / 6;
  EXPECT_NEAR(part(some.measure("deletion(random=4000)"), "random")[0], area / 4, 0.01);
  EXPECT_TRUE(some.measure("comp(random=0)").parts.empty());
}

TEST(Faithfulness, MapsThatRankNothingAreUndefined) {
  RemovalCase some = counted();
  some.inputs = at::ones({3, 4}, at::kDouble);
  at::Tensor maps = at::ones({3, 4}, at::kDouble);
  maps[1].zero_();
  maps[2][1] = 2;
  some.explainer = std::make_unique<GivenMaps>(maps);
  for (const char* method : {"dffot", "comp", "suff", "deletion", "insertion"}) {
    const Measurement measured = some.measure(method);
    EXPECT_TRUE(std::isnan(measured.values[0]) && std::isnan(measured.values[1])) << method;
    EXPECT_TRUE(std::isfinite(measured.values[2])) << method;
  }
}

TEST(Faithfulness, OneFeature) {
  const RemovalCase one{
      .model = linear_model(at::tensor({2.0, 0.0}, at::kDouble).view({2, 1}), at::tensor({-1.0, 0.0}, at::kDouble)),
      .explainer = explainers().make("saliency(target=logit)"),
      .schema = Schema::of(Layout::vector(1)),
      .inputs = at::ones({1, 1}, at::kDouble)};
  EXPECT_EQ(one.measure("dffot").values[0], 1);
  EXPECT_EQ(part(one.measure("dffot"), "flipped")[0], 1);
  EXPECT_EQ(one.measure("suff").values[0], 0);
}

// ---- images --------------------------------------------------------------------------------------------------------------

// A model of 2 x 4 x 5 images that remembers what it was asked.
struct Pictures {
  at::Tensor asked;
  RemovalCase some{.model = make_model(
                       [this](const at::Tensor& inputs) {
                         asked = inputs.clone();
                         return at::stack({inputs.sum({1, 2, 3}), at::zeros({inputs.size(0)}, inputs.options())}, 1);
                       },
                       {}, at::kCPU),
                   .explainer = std::make_unique<GivenMaps>(at::arange(40, at::kFloat).view({1, 2, 4, 5})),
                   .schema = Schema::of(Layout::grid(2, 4, 5)),
                   .inputs = 1 + normal_tensor({1, 2, 4, 5}, 82).abs()};
};

TEST(Faithfulness, PixelsAreRemovedWithAllTheirChannelsInThePapersShares) {
  Pictures pictures;
  (void)pictures.some.measure("comp(random=0)");
  // 1, 5, 10, 20 and 50 % of 20 pixels, at least one; the map grows with the position, so the last pixels go first.
  const std::vector<std::int64_t> expected{1, 1, 2, 4, 10};
  ASSERT_EQ(pictures.asked.size(0), 5);
  for (std::int64_t i = 0; i < 5; ++i) {
    for (std::int64_t channel = 0; channel < 2; ++channel) {
      const at::Tensor zero = pictures.asked[i][channel].flatten().eq(0);
      EXPECT_EQ(zero.sum().item<std::int64_t>(), expected[static_cast<std::size_t>(i)]);
      EXPECT_TRUE(zero.slice(0, 20 - expected[static_cast<std::size_t>(i)]).all().item<bool>());
    }
  }
}

TEST(Faithfulness, BlurPutsTheBlurredPictureInPlace) {
  Pictures pictures;
  (void)pictures.some.measure("deletion(remove=blur,blur=1.5,steps=4,random=0)");
  const at::Tensor blur = blurred(pictures.some.inputs, pictures.some.schema.layout, 1.5)[0];
  ASSERT_EQ(pictures.asked.size(0), 5);  // none, 5, 10, 15, all of 20 pixels
  EXPECT_TRUE(at::equal(pictures.asked[0], pictures.some.inputs[0]));
  EXPECT_TRUE(at::equal(pictures.asked[1].flatten(1).slice(1, 15), blur.flatten(1).slice(1, 15)));
  EXPECT_TRUE(at::equal(pictures.asked[1].flatten(1).slice(1, 0, 15), pictures.some.inputs[0].flatten(1).slice(1, 0, 15)));
  EXPECT_TRUE(at::equal(pictures.asked[4], blur));
}

TEST(Faithfulness, SaysWhatIsMissing) {
  RemovalCase some = table();
  EXPECT_ERROR(some.measure("comp(remove=blur)"), kUsage, "only images can be blurred");
  some.background = some.background.slice(1, 1);
  EXPECT_ERROR(some.measure("comp(remove=mean)"), kInput, "rows of the background have shape");
  some.background = at::Tensor();
  EXPECT_ERROR(some.measure("comp(remove=resample)"), kUsage, "--background");
}

}  // namespace
}  // namespace holdfast::measure

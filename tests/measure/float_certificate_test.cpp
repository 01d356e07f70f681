// Certificates in the arithmetic that is used: float32 networks made to be close to ties, against attacks and points that cross
// every kink of the ball. HOLDFAST_MANY_CASES=thousands tries as many times more.
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "holdfast/attack/attack.h"
#include "holdfast/core/rng.h"
#include "measure_case.h"
#include "support/errors.h"

namespace holdfast::measure {
namespace {

using testing_support::MeasureCase;

constexpr std::int64_t kFeatures = 6, kSamples = 4, kTop = 3;

std::int64_t networks() {
  const char* many = std::getenv("HOLDFAST_MANY_CASES");
  return 50 * (many != nullptr && std::string(many) == "thousands" ? 100 : 1);
}

// A network of one or two hidden layers of any scale whose rows and units nearly repeat each other, with both signs: gaps are the
// differences of sums that almost cancel.
std::unique_ptr<Model> adversarial_network(RandomStream& stream) {
  const auto uniform = [&] { return stream.uniform(); };
  const double scale = std::pow(10, 6 * uniform() - 3), nearness = std::pow(10, -8 * uniform());
  const std::int64_t hidden = 2 * (2 + static_cast<std::int64_t>(stream.below(6)));
  const auto near_copies = [&](std::int64_t rows, std::int64_t columns, double size) {
    at::Tensor weight = at::empty({rows, columns}, at::kDouble);
    double* w = weight.data_ptr<double>();
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const bool copy = i % columns > 0 && uniform() < 0.6;  // of the column before, nearly, maybe with the other sign
      w[i] = copy ? w[i - 1] * (stream.bits() % 2 == 0 ? 1 : -1) * (1 + nearness * stream.normal()) : size * stream.normal();
    }
    return weight.to(at::kFloat);
  };
  const bool smooth = stream.below(4) == 0;
  const op::Activation activation = smooth ? testing_support::softplus(std::pow(10, 3 * uniform() - 1)) : op::Activation{};
  Network network;
  network.add("input", op::Input{});
  at::Tensor weight = near_copies(hidden, kFeatures, scale);
  // Units in pairs that cancel each other, and that switch near the samples.
  for (std::int64_t h = 1; h < hidden; h += 2) {
    if (uniform() < 0.5) weight[h] = weight[h - 1] * static_cast<float>(1 + nearness * stream.normal());
  }
  at::Tensor bias = at::empty({hidden}, at::kFloat);
  for (std::int64_t h = 0; h < hidden; ++h) bias[h] = scale * nearness * stream.normal();
  network.add("hidden", op::Linear{weight, bias});
  network.add("act", activation);
  std::int64_t last = hidden;
  if (stream.below(3) == 0) {
    last = 4;
    network.add("hidden2", op::Linear{near_copies(last, hidden, 1), at::zeros({last}, at::kFloat)});
    network.add("act2", activation);
  }
  at::Tensor out = near_copies(2, last, 1 / scale);
  if (uniform() < 0.5) out[1] = out[0] + static_cast<float>(nearness) * near_copies(1, last, 1 / scale)[0];  // logits that cancel
  network.add("out", op::Linear{out, at::zeros({2}, at::kFloat)});
  return make_model(std::move(network));
}

// Points of the ball: its centre, those just below its surface, since float32 moves them, and both sides of each unit's boundary
// that it reaches, float32.
at::Tensor telling_points(const Network& network, const at::Tensor& sample, double radius, RandomStream& stream) {
  std::vector<at::Tensor> points{sample};
  const auto& first = std::get<op::Linear>(network.nodes()[1].operation);
  const at::Tensor weight = first.weight.to(at::kDouble), z = at::mv(weight, sample.to(at::kDouble)) + first.bias.to(at::kDouble);
  const at::Tensor center = sample.to(at::kDouble);
  for (std::int64_t h = 0; h < weight.size(0); ++h) {
    const double length = weight[h].norm().item<double>(), way = -z[h].item<double>() / length;
    for (const double beyond : {-1e-6, 0.0, 1e-6}) {
      const double distance = way + beyond * radius;
      if (std::abs(distance) < 0.99 * radius) points.push_back((center + distance / length * weight[h]).to(at::kFloat));
    }
  }
  for (int i = 0; i < 60; ++i) {
    at::Tensor direction = at::empty_like(center);
    for (std::int64_t j = 0; j < kFeatures; ++j) direction[j] = stream.normal();
    points.push_back((center + 0.99 * radius * direction / direction.norm()).to(at::kFloat));
  }
  return at::stack(points);
}

// G_0 = 1e4 + 3e-4 - 1e4 and G_1 = 2e-4 differ by 1e-4, which double tells and float32, in which the first sum is 0 or 3e-4, does
// not.
TEST(FloatCertificate, ANearTieThatFloat32CannotTellIsNoCertificate) {
  const auto case_of = [](at::ScalarType type) {
    Network network;
    network.add("input", op::Input{});
    network.add("hidden", op::Linear{at::tensor({1e4, 0.0, 3e-4, 2e-4, -1e4, 0.0}, at::kDouble).view({3, 2}).to(type),
                                     at::tensor({100.0, 100.0, 100.0}, at::kDouble).to(type)});
    network.add("act", op::Activation{});
    network.add("out",
                op::Linear{at::tensor({0.0, 0.0, 0.0, 1.0, 1.0, 1.0}, at::kDouble).view({2, 3}).to(type), at::zeros({2}, type)});
    return MeasureCase{.model = make_model(std::move(network)), .inputs = at::zeros({1, 2}, type)};
  };
  EXPECT_EQ(case_of(at::kDouble).run("certified_overlap(k=1,radius=0.001)").values[0], 1);
  EXPECT_EQ(case_of(at::kFloat).run("certified_overlap(k=1,radius=0.001)").values[0], 0);
}

TEST(FloatCertificate, NoAttackAndNoPointFallsBelowIt) {
  std::int64_t certified_some = 0, certified_less = 0;
  for (std::int64_t i = 0; i < networks(); ++i) {
    RandomStream stream(1234, "adversarial networks", static_cast<std::uint64_t>(i));
    at::Tensor inputs = at::empty({kSamples, kFeatures}, at::kFloat);
    for (std::int64_t j = 0; j < inputs.numel(); ++j) inputs.data_ptr<float>()[j] = static_cast<float>(stream.normal());
    MeasureCase test{.model = adversarial_network(stream), .inputs = inputs};
    if (stream.below(3) == 0) test.schema.groups = {{.name = "colour", .columns = {2, 3, 4}, .levels = {"red", "green", "blue"}}};
    const double radius = std::pow(10, -4 * stream.uniform());
    const std::vector<double> proven = test.run(fmt::format("certified_overlap(k={},radius={})", kTop, radius)).values;
    const MeasureTask task = test.task();
    const at::Tensor clean = task.explainer.attribute(task.explain_task()).maps;
    const auto top = [](const at::Tensor& maps) { return at::zeros_like(maps).scatter(1, std::get<1>(maps.topk(kTop, 1)), 1.0); };
    for (std::int64_t b = 0; b < kSamples; ++b) {
      const double certified = proven[static_cast<std::size_t>(b)];
      certified_some += certified > 0;
      certified_less += certified < 1;
      ExplainTask around = task.explain_task();
      around.samples.inputs = telling_points(*test.model->network(), inputs[b], radius, stream);
      const std::int64_t count = around.samples.inputs.size(0);
      around.samples.targets = task.samples.targets[b].expand({count}).contiguous();
      around.samples.ids = at::arange(count, at::kLong);
      const double kept =
          (top(task.explainer.attribute(around).maps) * top(clean.slice(0, b, b + 1))).sum(1).min().item<double>() / kTop;
      ASSERT_LE(certified, kept + 1e-6) << "network " << i << ", sample " << b << ", radius " << radius;
    }
    if (i % 25 != 0) continue;  // an attack costs as much as hundreds of points
    const auto metric = metrics().make(fmt::format("top_k(k={})", kTop));
    const ThreatModel threat = ThreatModel::make({.epsilons = {radius}}, test.schema);
    const AttackResult attacked = attacks()
                                      .make("gauntlet(effort=light)")
                                      ->run({.model = *test.model,
                                             .explainer = task.explainer,
                                             .metric = *metric,
                                             .threat = threat,
                                             .samples = task.samples});
    for (std::size_t b = 0; b < kSamples; ++b)
      ASSERT_LE(proven[b], attacked.samples[b].value) << "network " << i << ", sample " << b;
  }
  const auto all = static_cast<double>(networks() * kSamples);
  EXPECT_GT(static_cast<double>(certified_some), 0.2 * all) << "certificates that say nothing are easily kept";
  EXPECT_GT(static_cast<double>(certified_less), 0.2 * all);
}

// With switches: no attack that may make them, and no row that they make, is below the certificate.
TEST(SwitchCertificate, NoAttackThatSwitchesFallsBelowIt) {
  std::int64_t some = 0, less = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    at::Tensor inputs = testing_support::normal_tensor({6, 8}, 60 + seed).mul_(0.4);
    inputs.slice(1, 0, 5).zero_();
    for (std::int64_t b = 0; b < 6; ++b) {
      inputs[b][b % 3] = 1;
      inputs[b][3 + b % 2] = 1;
    }
    MeasureCase test{.model = testing_support::mlp_model({.features = 8, .hidden = 6, .seed = seed}), .inputs = inputs};
    test.schema.groups = {{.name = "x", .columns = {0, 1, 2}, .levels = {}}, {.name = "y", .columns = {3, 4}, .levels = {}}};
    std::vector<double> before(6, 1.0);
    for (const std::int64_t switches : {0, 1}) {
      const std::vector<double> proven = test.run(fmt::format("certified_overlap(k=3,radius=0.05,switches={})", switches)).values;
      const MeasureTask task = test.task();
      const auto metric = metrics().make("top_k(k=3)");
      const ThreatModel threat = ThreatModel::make({.epsilons = {0.05}, .switches = switches}, test.schema);
      const AttackResult attacked = attacks()
                                        .make("gauntlet(effort=light)")
                                        ->run({.model = *test.model,
                                               .explainer = task.explainer,
                                               .metric = *metric,
                                               .threat = threat,
                                               .samples = task.samples});
      for (std::size_t b = 0; b < 6; ++b) {
        EXPECT_LE(proven[b], attacked.samples[b].value + 1e-9)
            << "seed " << seed << ", sample " << b << ", switches " << switches;
        EXPECT_LE(proven[b], before[b]);
        some += switches > 0 && proven[b] > 0;
        less += proven[b] < 1;
      }
      before = proven;
    }
  }
  EXPECT_GT(some, 1) << "certificates that say nothing are easily kept";
  EXPECT_GT(less, 3);
  MeasureCase test{.model = testing_support::mlp_model({.features = 8}), .inputs = at::zeros({1, 8})};
  EXPECT_ERROR(test.check("certified_overlap(k=2,switches=1)"), kUsage, "the schema has 0 one-hot groups; choose switches <= 0");
}

}  // namespace
}  // namespace holdfast::measure

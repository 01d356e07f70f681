// pgd, ig_norm, ig_sum_norm and steady_map against plain loops, finite differences and closed forms.
#include <cmath>

#include "../../src/train/objectives/inner_maximum.h"
#include "../../src/train/objectives/path_penalty.h"
#include "holdfast/core/tiles.h"
#include "holdfast/model/model.h"
#include "holdfast/train/objective.h"
#include "support/errors.h"
#include "support/small_models.h"
#include "support/temp_folder.h"
#include "train/toy.h"

namespace holdfast::train {
namespace {

using testing_support::normal_tensor;

// Images in [0, 1] in double precision, and a small network with everything that cnn_chen has.
struct Subject {
  explicit Subject(std::int64_t samples, const std::string& activation = "softplus,beta=3")
      : network(architectures()
                    .make("cnn_chen(inputs=2x8x8,width=3x4x6,classes=3,activation=" + activation + ")")
                    ->build(3)
                    .to(at::kDouble)),
        schema(Schema::of(Layout::grid(2, 8, 8))),
        inputs(normal_tensor({samples, 2, 8, 8}, 5, at::kDouble).mul_(0.3).add_(0.5).clamp_(0, 1)),
        labels(at::arange(samples, at::kLong).remainder(3)) {
    network.require_grad(true);
    schema.range = {0.0, 1.0};
    for (const Parameter& parameter : network.parameters()) {
      const at::NoGradGuard no_graph;
      parameter.tensor.mul_(1.5);  // fresh weights are small: their second derivatives would drown in rounding
    }
  }

  TrainBatch batch(double progress = 0.9) const {
    return {.inputs = inputs,
            .labels = labels,
            .sample_ids = at::arange(inputs.size(0)) * 7,
            .schema = schema,
            .seed = 11,
            .progress = progress};
  }
  at::Tensor moved() const { return (inputs + normal_tensor(inputs.sizes(), 6, at::kDouble).mul_(0.1)).clamp(0, 1); }

  const TileThread one_thread = {};  // so small a network is slower on several
  Network network;
  Schema schema;
  at::Tensor inputs, labels;
};

at::Tensor plain_ce(const Network& network, const at::Tensor& image, std::int64_t label) {
  const at::Tensor logits = network.logits(image.unsqueeze(0))[0];
  return logits.exp().sum().log() - logits[label];
}

at::Tensor plain_gradient(const Network& network, const at::Tensor& image, std::int64_t label) {
  const at::Tensor point = image.detach().requires_grad_();
  return torch::autograd::grad({plain_ce(network, point, label)}, {point})[0];
}

// The definition, one sample and one point after the other.
double plain_penalty(const Network& network, const at::Tensor& from, const at::Tensor& to, std::int64_t label,
                     std::int64_t steps) {
  at::Tensor sum = at::zeros_like(from);
  for (std::int64_t k = 1; k <= steps; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(steps);
    sum += plain_gradient(network, from + share * (to - from), label);
  }
  return ((to - from) / static_cast<double>(steps) * sum).abs().sum().item<double>();
}

TEST(PathPenalty, IsThatOfAPlainLoop) {
  for (const char* activation : {"softplus,beta=3", "relu"}) {
    Subject subject(5, activation);
    const TrainBatch batch = subject.batch();
    const at::Tensor moved = subject.moved();
    for (const bool with_start : {false, true}) {
      const PathValues values = Path(*make_trainee(subject.network), batch, {.steps = 7, .with_start = with_start}).to(moved);
      for (std::int64_t i = 0; i < 5; ++i) {
        EXPECT_NEAR(values.penalty[i].item<double>(), plain_penalty(subject.network, subject.inputs[i], moved[i], i % 3, 7),
                    1e-10);
      }
      EXPECT_TRUE(at::allclose(values.end_logits, subject.network.logits(moved), 0, 1e-12));
      EXPECT_EQ(values.start_logits.defined(), with_start);
      if (with_start) {
        EXPECT_TRUE(at::allclose(values.start_logits, subject.network.logits(subject.inputs), 0, 1e-12));
      }
    }
  }
}

// Integrated gradients of the loss add up to its difference, so R is at least that, and no less for more points.
TEST(PathPenalty, IsAtLeastTheLosssDifference) {
  Subject subject(6);
  const at::Tensor moved = subject.moved();
  const PathValues values = Path(*make_trainee(subject.network), subject.batch(), {.steps = 200}).to(moved);
  for (std::int64_t i = 0; i < 6; ++i) {
    const double difference =
        (plain_ce(subject.network, moved[i], i % 3) - plain_ce(subject.network, subject.inputs[i], i % 3)).item<double>();
    EXPECT_GE(values.penalty[i].item<double>(), std::abs(difference) - 1e-3);
  }
}

TEST(PathPenalty, IsTheSameInPartsThatAreMadeTwice) {
  Subject subject(8);
  const TrainBatch batch = subject.batch();
  std::vector<at::Tensor> weights;
  for (const Parameter& parameter : subject.network.parameters()) weights.push_back(parameter.tensor);
  for (const bool with_start : {false, true}) {
    const auto differentiated = [&](std::int64_t memory) {
      const at::Tensor moved = subject.moved().requires_grad_();
      const PathValues values =
          Path(*make_trainee(subject.network), batch, {.steps = 40, .memory = memory, .with_start = with_start}).to(moved);
      at::Tensor loss = (values.penalty * at::arange(1, 9, at::kDouble)).sum() + values.end_logits.square().sum();
      if (with_start) loss = loss + values.start_logits.square().sum();
      std::vector<at::Tensor> sources = weights;
      sources.push_back(moved);
      std::vector<at::Tensor> result = torch::autograd::grad({loss}, sources);
      result.push_back(values.penalty);
      return result;
    };
    const auto whole = differentiated(std::int64_t{1} << 32), parts = differentiated(100'000);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_GT(whole[i].abs().max().item<double>(), 0) << i;
      EXPECT_TRUE(at::allclose(whole[i], parts[i], 1e-9, 1e-12)) << i << " " << (whole[i] - parts[i]).abs().max();
    }
  }
}

// The inner maximisation written for one image, in single steps.
at::Tensor plain_maximum(const Network& network, const at::Tensor& image, std::int64_t label, const at::Tensor& start,
                         const InnerMaximum& settings) {
  at::Tensor point = start.clone();
  for (std::int64_t step = 0; step < settings.steps; ++step) {
    const at::Tensor gradient = plain_gradient(network, point, label);
    for (std::int64_t i = 0; i < point.numel(); ++i) {
      const double clean = image.view(-1)[i].item<double>(), slope = gradient.view(-1)[i].item<double>();
      double value = point.view(-1)[i].item<double>() + settings.step_size * (slope > 0 ? 1 : slope < 0 ? -1 : 0);
      value = std::min(std::max(value, clean - settings.epsilon), clean + settings.epsilon);
      point.view(-1)[i] = std::min(std::max(value, 0.0), 1.0);
    }
  }
  return point;
}

TEST(InnerMaximum, TakesTheStepsOfOneImageAtATime) {
  const Subject subject(4);
  const TrainBatch batch = subject.batch();
  const auto value = [&](const at::Tensor& point) {
    return at::cross_entropy_loss(subject.network.logits(point), batch.labels, {}, at::Reduction::None);
  };
  const InnerMaximum none{.epsilon = 0.2, .step_size = 0.07, .steps = 0}, some{.epsilon = 0.2, .step_size = 0.07, .steps = 5};
  const at::Tensor start = none.find(batch, value), found = some.find(batch, value);
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_TRUE(at::allclose(found[i], plain_maximum(subject.network, subject.inputs[i], i % 3, start[i], some), 0, 1e-12));
  EXPECT_TRUE((value(found) > value(subject.inputs)).all().item<bool>());
  EXPECT_TRUE((value(found) > value(start)).all().item<bool>());
}

TEST(InnerMaximum, StaysInBallAndBoxAndLeavesFrozenFeaturesAlone) {
  Subject subject(6);
  const auto value = [&](const at::Tensor& point) { return point.flatten(1).pow(2).sum(1); };
  const InnerMaximum settings{.epsilon = 0.25, .step_size = 0.2, .steps = 4};
  at::Tensor found = settings.find(subject.batch(), value);
  EXPECT_LE((found - subject.inputs).abs().max().item<double>(), 0.25 + 1e-12);
  EXPECT_GE(found.min().item<double>(), 0);
  EXPECT_LE(found.max().item<double>(), 1);
  EXPECT_TRUE((found == 1).any().item<bool>());  // the box was felt

  subject.schema.range.reset();
  found = settings.find(subject.batch(), value);
  EXPECT_GT(found.max().item<double>(), 1);

  subject.schema.features.assign(128, Feature{.name = "f", .low = 0, .high = 0.9});
  subject.schema.features[3].frozen = true;
  found = settings.find(subject.batch(), value);
  EXPECT_TRUE(at::equal(found.flatten(1).select(1, 3), subject.inputs.flatten(1).select(1, 3)));
  EXPECT_LE((found - at::maximum(subject.inputs, at::full_like(found, 0.9))).max().item<double>(), 0);
  EXPECT_GE(found.min().item<double>(), 0);
}

TEST(InnerMaximum, GrowsWithTheTrainingWhereItIsAskedTo) {
  const Subject subject(4);
  const auto value = [&](const at::Tensor& point) { return point.flatten(1).sum(1); };
  const InnerMaximum settings{.epsilon = 0.2, .step_size = 0.1, .steps = 10, .warmup = 0.4};
  const auto reach = [&](double progress) {
    return (settings.find(subject.batch(progress), value) - subject.inputs).abs().max().item<double>();
  };
  EXPECT_EQ(reach(0), 0);
  EXPECT_NEAR(reach(0.1), 0.05, 1e-12);
  EXPECT_NEAR(reach(0.4), 0.2, 1e-12);
  EXPECT_NEAR(reach(0.9), 0.2, 1e-12);
}

TEST(InnerMaximum, StartsByTheSamplesIdAlone) {
  const Subject subject(4);
  const InnerMaximum settings{.epsilon = 0.1, .step_size = 0.1, .steps = 0};
  TrainBatch batch = subject.batch();
  const at::Tensor all = settings.find(batch, {});
  const at::Tensor order = at::tensor({2, 0}, at::kLong);
  const TrainBatch part{.inputs = batch.inputs.index_select(0, order),
                        .labels = batch.labels.index_select(0, order),
                        .sample_ids = batch.sample_ids.index_select(0, order),
                        .schema = subject.schema,
                        .seed = 11};
  EXPECT_TRUE(at::equal(settings.find(part, {}), all.index_select(0, order)));
  batch.seed = 12;
  EXPECT_FALSE(at::equal(settings.find(batch, {}), all));
}

TEST(Pgd, IsTheCrossEntropyOfTheWorstPoint) {
  Subject subject(6);
  const TrainBatch batch = subject.batch();
  const Loss loss = loss_of(*objectives().make("pgd(epsilon=0.2,step_size=0.05,steps=6)"), subject.network, batch);
  const at::Tensor moved = InnerMaximum{.epsilon = 0.2, .step_size = 0.05, .steps = 6}.find(batch, [&](const at::Tensor& point) {
    return at::cross_entropy_loss(subject.network.logits(point), batch.labels, {}, at::Reduction::None);
  });
  const at::Tensor logits = subject.network.logits(moved);
  EXPECT_NEAR(loss.total.item<double>(), at::cross_entropy_loss(logits, batch.labels).item<double>(), 1e-12);
  EXPECT_EQ(loss.parts[1].first, "robust_accuracy");
  EXPECT_EQ(loss.parts[1].second.item<double>(), (logits.argmax(1) == batch.labels).to(at::kDouble).mean().item<double>());
}

TEST(IgSumNorm, AddsThePenaltyToTheCrossEntropyOfItsWorstPoint) {
  Subject subject(4);
  const TrainBatch batch = subject.batch();
  // With a ball of radius 0 nothing moves; with no steps the point is the random start.
  EXPECT_EQ(loss_of(*objectives().make("ig_sum_norm(epsilon=0,steps=2,path_steps=3)"), subject.network, batch)
                .parts[1]
                .second.item<double>(),
            0);
  const Loss loss =
      loss_of(*objectives().make("ig_sum_norm(epsilon=0.2,steps=0,path_steps=5,weight=0.7)"), subject.network, batch);
  const at::Tensor moved = InnerMaximum{.epsilon = 0.2, .steps = 0}.find(batch, {});
  double ce = 0, penalty = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    ce += plain_ce(subject.network, moved[i], i % 3).item<double>() / 4;
    penalty += plain_penalty(subject.network, subject.inputs[i], moved[i], i % 3, 5) / 4;
  }
  EXPECT_NEAR(loss.parts[0].second.item<double>(), ce, 1e-10);
  EXPECT_NEAR(loss.parts[1].second.item<double>(), penalty, 1e-10);
  EXPECT_NEAR(loss.total.item<double>(), ce + 0.7 * penalty, 1e-10);
  // More steps of the maximisation make what it maximises larger.
  const Loss found =
      loss_of(*objectives().make("ig_sum_norm(epsilon=0.2,step_size=0.05,steps=6,path_steps=5,inner_path_steps=5,weight=0.7)"),
              subject.network, batch);
  EXPECT_GT(found.total.item<double>(), loss.total.item<double>());
}

TEST(IgNorm, KeepsTheCrossEntropyOfTheSampleItself) {
  Subject subject(4);
  const TrainBatch batch = subject.batch();
  const Loss loss =
      loss_of(*objectives().make("ig_norm(epsilon=0.2,step_size=0.05,steps=3,path_steps=5,weight=0.7)"), subject.network, batch);
  const double ce = at::cross_entropy_loss(subject.network.logits(subject.inputs), batch.labels).item<double>();
  EXPECT_NEAR(loss.parts[0].second.item<double>(), ce, 1e-10);
  EXPECT_NEAR(loss.total.item<double>(), ce + 0.7 * loss.parts[1].second.item<double>(), 1e-10);
  EXPECT_EQ(objectives().make("ig_norm(weight=0.7)")->kind(), "ig_norm");  // its weight changes no value ...
  EXPECT_NE(objectives().make("ig_sum_norm(weight=0.7)")->kind(),
            objectives().make("ig_sum_norm")->kind());  // ... and here it does
}

void expect_gradients_of_differences(const std::string& call) {
  SCOPED_TRACE(call);
  Subject subject(3);
  const TrainBatch batch = subject.batch();
  const auto objective = objectives().make(call);
  const auto value = [&] { return loss_of(*objective, subject.network, batch).total.item<double>(); };
  for (const Parameter& parameter : subject.network.parameters()) {
    const at::Tensor gradient =
        torch::autograd::grad({loss_of(*objective, subject.network, batch).total}, {parameter.tensor})[0].reshape(-1);
    const at::Tensor flat = parameter.tensor.detach().view(-1);
    for (std::int64_t i = 0; i < flat.numel(); i += std::max<std::int64_t>(1, flat.numel() / 3)) {
      const double before = flat[i].item<double>();
      flat[i] = before + 1e-6;
      const double above = value();
      flat[i] = before - 1e-6;
      const double below = value();
      flat[i] = before;
      EXPECT_NEAR(gradient[i].item<double>(), (above - below) / 2e-6, 1e-6 + 1e-4 * std::abs(gradient[i].item<double>()))
          << parameter.name << " " << i;
    }
  }
}

// The worst point is held: it is piecewise constant in the weights.
TEST(LensObjectives, ParameterGradientsAreThoseOfFiniteDifferences) {
  expect_gradients_of_differences("pgd(epsilon=0.2,step_size=0.05,steps=2)");
  expect_gradients_of_differences("ig_norm(epsilon=0.2,step_size=0.05,steps=2,path_steps=4,inner_path_steps=2)");
  expect_gradients_of_differences("ig_sum_norm(epsilon=0.2,step_size=0.05,steps=2,path_steps=4,inner_path_steps=2,weight=1)");
  expect_gradients_of_differences("steady_map(epsilon=0.2,step_size=0.05,steps=2,explanation=both,path_steps=2,apart=0,power=1)");
  expect_gradients_of_differences("steady_map(epsilon=0.2,step_size=0.05,steps=2,window=1)");
  expect_gradients_of_differences("steady_map(epsilon=0.2,step_size=0.05,steps=2,explanation=both,path_steps=2,apart=0.7)");
}

// Logits W x: saliency is W_y everywhere and cannot change, integrated gradients are W_y x.
struct LinearCase {
  Dataset dataset = two_clouds();
  Network network = architectures().make("linear(inputs=6,classes=2)")->build(1).to(at::kDouble);
  TrainBatch batch{.inputs = dataset.inputs.slice(0, 0, 10).to(at::kDouble),
                   .labels = dataset.labels.slice(0, 0, 10),
                   .sample_ids = at::arange(10),
                   .schema = dataset.schema,
                   .seed = 3,
                   .progress = 0.5};
  at::Tensor rows = network.parameters()[0].tensor.clone().index_select(0, batch.labels);

  LinearCase() { network.require_grad(true); }
  // 1: change, 2: between.
  double part(std::size_t which, const std::string& options) {
    const auto objective = objectives().make("steady_map(epsilon=0.5,steps=0," + options + ")");
    return loss_of(*objective, network, batch).parts[which].second.item<double>();
  }
};

TEST(SteadyMap, HasItsClosedFormOnALinearNetwork) {
  LinearCase linear;
  EXPECT_NEAR(linear.part(1, "power=1"), 0, 1e-12);
  const at::Tensor moved = InnerMaximum{.epsilon = 0.5, .steps = 0}.find(linear.batch, {});
  const at::Tensor clean_map = (linear.batch.inputs * linear.rows).abs(), map = (moved * linear.rows).abs();
  const at::Tensor expected = 1 - at::cosine_similarity(clean_map, map);
  EXPECT_NEAR(linear.part(1, "explanation=integrated_gradients,path_steps=3,power=1"), expected.mean().item<double>(), 1e-10);
  EXPECT_NEAR(linear.part(1, "explanation=both,path_steps=3,power=1"), expected.mean().item<double>() / 2, 1e-10);

  // Half the squared Hellinger distance, but for the thousandth of the mean.
  const auto roots = [](const at::Tensor& magnitudes) { return (magnitudes / magnitudes.sum(1, true)).sqrt(); };
  const at::Tensor hellinger = (roots(clean_map) - roots(map)).square().sum(1) / 2;
  EXPECT_NEAR(linear.part(1, "explanation=integrated_gradients,path_steps=3"), hellinger.mean().item<double>(), 5e-3);
}

TEST(SteadyMap, ComparesEverySampleWithTheNextOfItsNetwork) {
  LinearCase linear;
  double expected = 0;
  for (std::int64_t i = 0; i < 10; ++i)
    expected += at::cosine_similarity(linear.rows[i].abs(), linear.rows[(i + 1) % 10].abs(), 0).item<double>() / 10;
  EXPECT_LT(expected, 0.99);  // the classes' rows differ
  EXPECT_NEAR(linear.part(2, "power=1"), expected, 1e-12);
  const auto objective = objectives().make("steady_map(weight=0,apart=2,ramp=0.4,epsilon=0,power=1)");
  const Loss loss = loss_of(*objective, linear.network, linear.batch);
  EXPECT_NEAR(loss.total.item<double>(), loss.parts[0].second.item<double>() + 2 * expected, 1e-12);
}

TEST(SteadyMap, FindsPointsAtWhichTheMapMoves) {
  for (const char* activation : {"softplus,beta=3", "relu"}) {  // on relu only its smooth stand-in shows the way
    Subject subject(8, activation);
    const auto change = [&](const std::string& options) {
      return loss_of(*objectives().make("steady_map(epsilon=0.2,step_size=0.05,weight=100,power=1," + options + ")"),
                     subject.network, subject.batch())
          .parts[1]
          .second.item<double>();
    };
    EXPECT_GT(change("steps=8"), 1.3 * change("steps=0")) << activation;
  }
}

TEST(SteadyMap, RisesWithTheTraining) {
  const auto objective = objectives().make("steady_map(weight=2,ramp=0.4)");
  EXPECT_EQ(objective->terms(0)[1].weight, 0);
  EXPECT_EQ(objective->terms(0.1)[1].weight, 0.5);
  EXPECT_EQ(objective->terms(0.4)[1].weight, 2);
  EXPECT_EQ(objective->terms(0.9)[1].weight, 2);
  EXPECT_EQ(objectives().make("steady_map(apart=2,ramp=0.4)")->terms(0.1)[2].weight, 0.5);
  EXPECT_EQ(objectives().make("steady_map(weight=1,ramp=0)")->terms(0)[1].weight, 1);
  const Dataset dataset = two_clouds();
  EXPECT_ERROR(objectives().make("steady_map(window=1)")->check(architectures().make("mlp")->build(0), dataset.schema), kUsage,
               "window=1 needs images");
}

TEST(LensObjectives, PredictInTrainingModeWhereItDiffers) {
  const Dataset dataset = two_clouds();
  for (const char* call : {"pgd(epsilon=0.1,steps=2)", "ig_norm(epsilon=0.1,steps=2,path_steps=3)",
                           "ig_sum_norm(epsilon=0.1,steps=2,path_steps=3)", "steady_map(epsilon=0.1,steps=2)"}) {
    Network network;
    network.add("input", op::Input{});
    network.add("norm", op::BatchNorm{at::ones({6}), at::zeros({6}), at::zeros({6}), at::ones({6})});
    network.add("output", op::Linear{at::arange(12).reshape({2, 6}).to(at::kFloat) / 12, at::zeros({2})});
    network.require_grad(true);
    const TrainBatch batch{.inputs = dataset.inputs.slice(0, 0, 40),
                           .labels = dataset.labels.slice(0, 0, 40),
                           .sample_ids = at::arange(40),
                           .schema = dataset.schema,
                           .progress = 0.5};
    (void)loss_of(*objectives().make(call), network, batch);
    // The running mean was updated once, momentum 0.1 from zero, by samples moved by no more than 0.1.
    const at::Tensor mean = std::get<op::BatchNorm>(network.nodes()[1].operation).mean;
    EXPECT_LE((mean - 0.1 * batch.inputs.mean(0)).abs().max().item<double>(), 0.0101) << call;
    EXPECT_GT(mean.abs().max().item<double>(), 0) << call;
  }
}

TEST(LensRecipes, AreTheirObjectivesWithThePapersSettings) {
  EXPECT_EQ(recipes().make("pgd(preset=fashion_mnist)")->objective, "pgd(epsilon=0.1,steps=20)");
  EXPECT_EQ(recipes().make("ig_sum_norm")->objective, "ig_sum_norm");
  const Options gtsrb = objectives().options("ig_sum_norm(preset=gtsrb)"),
                flower = objectives().options("ig_norm(preset=flower)");
  EXPECT_EQ(gtsrb.real("weight"), 1);
  EXPECT_EQ(gtsrb.integer("inner_path_steps"), 5);
  EXPECT_NEAR(gtsrb.real("epsilon") * 255, 8, 1e-12);
  EXPECT_EQ(flower.real("weight"), 0.1);
  EXPECT_EQ(flower.integer("path_steps"), 50);
}

TEST(LensObjectives, TrainAndResumeToTheSameBytes) {
  const Dataset dataset = two_clouds(40, {1, 8, 8});
  for (const char* recipe : {"pgd(epsilon=0.1,steps=2)", "ig_norm(epsilon=0.1,steps=2,path_steps=3,inner_path_steps=2)",
                             "ig_sum_norm(epsilon=0.1,steps=2,path_steps=3,inner_path_steps=2)",
                             "steady_map(epsilon=0.1,steps=2,explanation=both,path_steps=2,ramp=0)"}) {
    TrainOptions options = quick(3);
    options.architecture = "cnn_chen(width=2x3x8)";
    options.recipe = recipe;
    const TrainResult whole = train_network(dataset, options);
    EXPECT_EQ(whole.history[0].parts.back().first, "robust_accuracy");
    EXPECT_LT(whole.history.back().loss, whole.history.front().loss) << recipe;  // its weights must not rise meanwhile
    const TempFolder folder;
    options.folder = folder.path();
    int epochs = 0;
    EXPECT_ERROR(train_network(dataset, options,
                               [&](const EpochRecord&) {
                                 if (++epochs == 1) throw Error(ErrorKind::kInterrupted, "stopped");
                               }),
                 kInterrupted, "stopped");
    EXPECT_TRUE(same_weights(whole.network, train_network(dataset, options).network)) << recipe;
  }
}

}  // namespace
}  // namespace holdfast::train

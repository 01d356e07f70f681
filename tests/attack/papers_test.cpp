// The papers' attacks against plain one-sample references: the same iterates.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "../../src/attack/draw.h"
#include "attack_case.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "plain_walk.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::for_images;
using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::PlainWalk;
using testing_support::softplus;

constexpr std::int64_t kHeight = 4, kWidth = 5, kPixels = kHeight * kWidth;

// Two-channel images in double precision; a ReLU net and, with the same weights, softplus in its place.
struct Images {
  std::unique_ptr<Model> relu = net({}), smooth = net(softplus(1));
  AttackCase test;

  static std::unique_ptr<Model> net(op::Activation activation) {
    return make_model(
        for_images(mlp_network({.features = 2 * kPixels, .classes = 3, .activation = activation, .type = at::kDouble})));
  }

  explicit Images(Norm norm) {
    test.model = net({});
    test.schema = Schema::of(Layout::grid(2, kHeight, kWidth));
    test.inputs = normal_tensor({6, 2, kHeight, kWidth}, 80, at::kDouble);
    test.ids = at::arange(6, at::kLong);
    test.metric = "top_k(k=5)";
    test.select = Select::kLast;
    test.threat = ThreatModel::make({.norm = norm, .epsilons = {norm == Norm::kL2 ? 0.6 : 0.1}}, test.schema);
  }

  PlainWalk walk(bool surrogate) const {
    return {.model = *relu,
            .direction = surrogate ? *smooth : *relu,
            .norm = test.threat.norm,
            .epsilon = test.threat.epsilon,
            .step = test.threat.norm == Norm::kL2 ? 0.1 : 0.03,
            .steps = 12};
  }
  std::string options() const { return test.threat.norm == Norm::kL2 ? "steps=12,step_size=0.1" : "steps=12,step_size=0.03"; }

  at::Tensor near_start() const {
    ThreatModel near = test.threat;
    near.epsilon *= 0.01;
    return draw_points(near, test.inputs, test.ids, derived_seed(test.seed, "attack.start"), true);
  }
};

// A pixel's importance, channels summed.
at::Tensor folded(const at::Tensor& map) {
  return map.abs().view({2, kPixels}).sum(0);
}

// The share of a map inside a set of pixels.
at::Tensor share(const at::Tensor& map, const at::Tensor& inside) {
  const at::Tensor importance = folded(map);
  return importance.index({inside}).sum() / importance.sum();
}

using MakeObjective = std::function<PlainWalk::Objective(const at::Tensor& clean_map)>;

// The last preserved iterate is the reference's, and the reference was left by some label flip or walked to the end.
void expect_reference(Images& images, const std::string& call, bool surrogate, const at::Tensor& starts,
                      const MakeObjective& make) {
  const AttackResult result = images.test.run(call);
  const PlainWalk walk = images.walk(surrogate);
  double way = 0;
  for (std::int64_t b = 0; b < images.test.inputs.size(0); ++b) {
    const at::Tensor clean = images.test.inputs[b];
    const auto iterates = walk.iterates(clean, starts[b], make(walk.clean_map(clean)));
    std::size_t last = 0;
    while (last + 1 < iterates.size() && walk.label(iterates[last + 1]) == walk.label(clean)) ++last;
    EXPECT_EQ(result.samples[static_cast<std::size_t>(b)].iteration, static_cast<std::int64_t>(last)) << call << " sample " << b;
    const at::Tensor expected = last == 0 ? clean : iterates[last];
    EXPECT_LE((result.perturbed[b] - expected).abs().max().item<double>(), 1e-7) << call << " sample " << b;
    way += (expected - clean).norm().item<double>();
  }
  EXPECT_GT(way, 0.1) << "the case should move";
}

class Papers : public testing::TestWithParam<Norm> {};
INSTANTIATE_TEST_SUITE_P(Norms, Papers, testing::Values(Norm::kL2, Norm::kLinf),
                         [](const auto& row) { return to_string(row.param); });

TEST_P(Papers, TopTLowersTheShareOfTheCleanTop) {
  for (const bool surrogate : {true, false}) {
    Images images(GetParam());
    expect_reference(images, "top_t(t=7," + images.options() + (surrogate ? ")" : ",surrogate=none)"), surrogate,
                     images.test.inputs, [](const at::Tensor& clean) -> PlainWalk::Objective {
                       const at::Tensor top = std::get<1>(folded(clean).topk(7));
                       return [top](const at::Tensor& map) { return share(map, top); };
                     });
  }
}

TEST_P(Papers, LensLowersTheShareOfTheNeighbourhoodOfTheCleanTop) {
  Images images(GetParam());
  expect_reference(
      images, "lens(t=2,w=1," + images.options() + ")", true, images.test.inputs,
      [](const at::Tensor& clean) -> PlainWalk::Objective {
        at::Tensor inside = at::zeros({kHeight, kWidth}, at::kBool);
        const at::Tensor top = std::get<1>(folded(clean).topk(2));
        for (std::int64_t i = 0; i < 2; ++i) {
          const std::int64_t y = top[i].item<std::int64_t>() / kWidth, x = top[i].item<std::int64_t>() % kWidth;
          inside.slice(0, std::max<std::int64_t>(0, y - 1), y + 2).slice(1, std::max<std::int64_t>(0, x - 1), x + 2).fill_(true);
        }
        return [inside](const at::Tensor& map) { return share(map, inside.flatten()); };
      });
}

TEST_P(Papers, TargetRaisesTheShareInsideARegion) {
  Images images(GetParam());
  expect_reference(images, "target(region=bottom-left," + images.options() + ")", true, images.test.inputs,
                   [](const at::Tensor&) -> PlainWalk::Objective {
                     at::Tensor inside = at::zeros({kHeight, kWidth}, at::kBool);
                     inside.slice(0, 2, 4).slice(1, 0, 3).fill_(true);
                     return [inside](const at::Tensor& map) { return -share(map, inside.flatten()); };
                   });
}

TEST_P(Papers, MassCenterPushesTheCentreAway) {
  Images images(GetParam());
  const auto center = [](const at::Tensor& map) {
    const at::Tensor importance = folded(map).view({kHeight, kWidth});
    const at::Tensor y = at::arange(kHeight, at::kDouble), x = at::arange(kWidth, at::kDouble);
    return at::stack({(importance.sum(1) * y).sum(), (importance.sum(0) * x).sum()}) / importance.sum();
  };
  expect_reference(images, "mass_center(" + images.options() + ")", true, images.near_start(),
                   [&](const at::Tensor& clean) -> PlainWalk::Objective {
                     return [origin = center(clean), center](const at::Tensor& map) {
                       return -(center(map) - origin).square().sum();
                     };
                   });
}

TEST_P(Papers, MseMovesTheSignedMap) {
  Images images(GetParam());
  expect_reference(images, "mse(" + images.options() + ")", false, images.near_start(),
                   [](const at::Tensor& clean) -> PlainWalk::Objective {
                     return [clean](const at::Tensor& map) { return -(map - clean).norm(); };
                   });
}

// A sum of two goals and the nearer of the two: with one goal left, the other's gradient alone.
TEST_P(Papers, MultiFollowsTheShortestCombinationOfTheGapsThatAreLeft) {
  Images images(GetParam());
  const AttackResult result = images.test.run("multi(pairs=2," + images.options() + ")");
  const PlainWalk walk = images.walk(false);
  std::int64_t both = 0, one = 0;
  for (std::int64_t b = 0; b < images.test.inputs.size(0); ++b) {
    const at::Tensor clean = images.test.inputs[b], map = walk.clean_map(clean);
    const at::Tensor order = folded(map).argsort(true, 0, true), signs = map.sign();
    const std::int64_t c = walk.label(clean);
    const auto gap = [&](std::int64_t q) -> PlainWalk::Objective {
      return [&, q](const at::Tensor& now) {
        const at::Tensor signed_sum = (now * signs).view({2, kPixels}).sum(0);
        return signed_sum[order[4 - q].item<std::int64_t>()] - signed_sum[order[5 + q].item<std::int64_t>()];
      };
    };
    at::Tensor x = clean;
    std::int64_t last = 0;
    for (std::int64_t t = 1; t <= walk.steps; ++t) {
      const at::Tensor here = x.unsqueeze(0).clone().requires_grad_();
      const at::Tensor now = PlainWalk::map_at(*images.relu, here, c, false);
      const at::Tensor g0 = walk.gradient(x, c, gap(0)), g1 = walk.gradient(x, c, gap(1));
      const double left0 = gap(0)(now).item<double>(), left1 = gap(1)(now).item<double>();
      double a = ((g1 * g1).sum() - (g0 * g1).sum()).item<double>() / (g0 - g1).square().sum().item<double>();
      a = std::clamp(a, 0.0, 1.0);
      if (left0 < 0 && left1 >= 0) a = 0;
      if (left1 < 0 && left0 >= 0) a = 1;
      (left0 >= 0) == (left1 >= 0) ? ++both : ++one;
      x = walk.project(walk.step_along(x, a * g0 + (1 - a) * g1), clean);
      if (walk.label(x) != c) break;
      last = t;
      if (t == result.samples[static_cast<std::size_t>(b)].iteration) {
        EXPECT_LE((result.perturbed[b] - x).abs().max().item<double>(), 1e-7) << "sample " << b;
      }
    }
    EXPECT_EQ(result.samples[static_cast<std::size_t>(b)].iteration, last);
  }
  EXPECT_GT(both, 0);
  EXPECT_GT(one, 0) << "some goal should be reached before the other";
}

// The directions of a network without kinks are its own: the surrogate is the model.
TEST(Papers, ASmoothNetworkNeedsNoSurrogate) {
  Images images(Norm::kL2);
  images.test.model = Images::net(softplus(3));
  const AttackResult with = images.test.run("top_t(steps=10,beta=1)"),
                     without = images.test.run("top_t(steps=10,surrogate=none)");
  EXPECT_TRUE(at::equal(with.perturbed, without.perturbed));
  EXPECT_EQ(with.samples[0].evaluations, without.samples[0].evaluations);
  EXPECT_ERROR(images.test.check("top_t(surrogate=none,beta=3)"), kUsage, "beta is the surrogate's; write surrogate=softplus");
}

TEST(Papers, ASurrogateCostsOneMoreExplanationAnIteration) {
  Images images(Norm::kL2);
  images.test.metric = "l2";  // it has no end: nothing is done early
  images.test.select = Select::kWorst;
  EXPECT_EQ(images.test.run("top_t(t=5,steps=10,surrogate=none)").samples[0].evaluations, 1 + 3 * 10);
  EXPECT_EQ(images.test.run("top_t(t=5,steps=10)").samples[0].evaluations, 1 + 4 * 10);
  EXPECT_EQ(images.test.run("multi(k=5,pairs=3,steps=10)").samples[0].evaluations, 1 + (1 + 2 * 3) * 10);
  EXPECT_EQ(images.test.run("random_sign(steps=10)").samples[0].evaluations, 1 + 10);
}

TEST(Papers, SettingsOfThePapersArePresets) {
  const auto settings = [](const std::string& call) {
    const Options options = attacks().options(call);
    return std::tuple(options.integer("steps"), options.real("step_size"));
  };
  for (const std::string attack : {"top_t", "lens", "mass_center", "target", "random_sign"}) {
    EXPECT_EQ(settings(attack + "(preset=mnist)"), std::tuple(100, 0.01));
    EXPECT_EQ(settings(attack + "(preset=fashion_mnist)"), std::tuple(100, 0.01));
    EXPECT_EQ(settings(attack + "(preset=gtsrb)"), std::tuple(50, 1.0 / 255));
    EXPECT_EQ(settings(attack + "(preset=flower)"), std::tuple(100, 1.0 / 255));
    EXPECT_EQ(settings(attack + "(preset=imagenet)"), std::tuple(300, 0.5 / 255));
  }
  EXPECT_EQ(attacks().options("top_t(preset=mnist)").integer("t"), 200);
  EXPECT_EQ(attacks().options("lens(preset=flower)").integer("t"), 1000);
  EXPECT_EQ(attacks().options("top_t(preset=imagenet)").word("surrogate"), "softplus");
  EXPECT_EQ(attacks().options("random_sign(preset=mnist)").word("mode"), "walk");
  EXPECT_EQ(settings("mse(preset=tabular)"), std::tuple(1000, 1e-3));
}

TEST(Papers, TargetTakesAnyMask) {
  const TempFolder folder;
  Images images(Norm::kLinf);
  at::Tensor mask = at::zeros({kHeight, kWidth});
  mask.slice(0, 2, 4).slice(1, 0, 3).fill_(7);
  write_tensor(folder.path() + "/mask.npy", mask);
  const at::Tensor by_file = images.test.run("target(steps=5,mask=" + folder.path() + "/mask.npy)").perturbed;
  EXPECT_TRUE(at::equal(by_file, images.test.run("target(steps=5,region=bottom-left)").perturbed));

  write_tensor(folder.path() + "/small.npy", at::ones({3}));
  EXPECT_ERROR(images.test.check("target(mask=" + folder.path() + "/small.npy)"), kInput,
               "has 3 numbers; a map of this data has 20");
  write_tensor(folder.path() + "/all.npy", at::ones({kHeight, kWidth}));
  EXPECT_ERROR(images.test.check("target(mask=" + folder.path() + "/all.npy)"), kInput, "20 of 20 features are inside");
  EXPECT_ERROR(images.test.check("target(mask=" + folder.path() + "/all.npy,region=top)"), kUsage, "both given");
  EXPECT_ERROR(images.test.check("target(mask=nowhere.npy)"), kInput, "nowhere.npy");
}

TEST(Papers, EveryRegionIsItsPartOfTheImage) {
  Images images(Norm::kLinf);
  const auto moved_share = [&](const std::string& region, std::int64_t y, std::int64_t x, std::int64_t rows,
                               std::int64_t columns) {
    const AttackResult result = images.test.run("target(steps=6,surrogate=none,region=" + region + ")");
    at::Tensor inside = at::zeros({kHeight, kWidth}, at::kBool);
    inside.narrow(0, y, rows).narrow(1, x, columns).fill_(true);
    double gain = 0;
    for (std::int64_t b = 0; b < 6; ++b) {
      gain += (share(result.moved.maps[b], inside.flatten()) - share(result.original.maps[b], inside.flatten())).item<double>();
    }
    return gain;
  };
  images.test.model = Images::net(softplus(2));
  EXPECT_GT(moved_share("top-left", 0, 0, 2, 3), 0);
  EXPECT_GT(moved_share("top-right", 0, 2, 2, 3), 0);
  EXPECT_GT(moved_share("bottom-right", 2, 2, 2, 3), 0);
  EXPECT_GT(moved_share("center", 1, 1, 2, 3), 0);
  EXPECT_GT(moved_share("top", 0, 0, 2, 5), 0);
  EXPECT_GT(moved_share("bottom", 2, 0, 2, 5), 0);
  EXPECT_GT(moved_share("left", 0, 0, 4, 3), 0);
  EXPECT_GT(moved_share("right", 0, 2, 4, 3), 0);
}

TEST(Papers, RefuseBeforeAnyWork) {
  AttackCase test;
  EXPECT_ERROR(test.check("mass_center"), kUsage, "has no centre of mass; images have");
  EXPECT_ERROR(test.check("target"), kUsage, "has no regions; write target(mask=FILE.npy)");
  EXPECT_ERROR(test.check("top_t(t=13)"), kUsage, "the map has 12 features; choose t <= 12");
  EXPECT_ERROR(test.check("multi(k=13)"), kUsage, "choose k <= 12");
  test.metric = "spearman";
  EXPECT_ERROR(test.check("top_t"), kUsage, "spearman has no k to take; write top_t(t=8)");
  EXPECT_NO_THROW(test.check("mse"));
  const Network network = test.model->network()->clone();
  test.model = make_model([&](const at::Tensor& x) { return network.logits(x); }, Capabilities{}, at::kCPU);
  EXPECT_ERROR(test.check("top_t(t=4)"), kUsage,
               "a softplus surrogate needs a model whose layers are known; write surrogate=none");
  EXPECT_NO_THROW(test.check("top_t(t=4,surrogate=none)"));
}

// Both sides of a pair have a centre of their own.
TEST(Papers, MassCenterOfPairsMovesEachSide) {
  AttackCase test;
  test.model = make_model(for_images(mlp_network({.features = 24, .activation = softplus(2)})));
  test.schema = Schema::of(Layout::grid(1, 3, 4, 2));
  test.inputs = normal_tensor({5, 2, 1, 3, 4}, 61);
  test.ids = at::arange(5, at::kLong);
  test.threat = ThreatModel::make({.epsilons = {2}}, test.schema);
  test.select = Select::kLast;
  const AttackResult result = test.run("mass_center(steps=20)");
  const auto centers = [](const at::Tensor& maps) {
    const at::Tensor mass = maps.abs().view({5, 2, 3, 4});
    const at::Tensor total = mass.sum(at::IntArrayRef{2, 3});
    return at::stack({(mass.sum(3) * at::arange(3)).sum(2) / total, (mass.sum(2) * at::arange(4)).sum(2) / total}, 2);
  };
  const at::Tensor way = (centers(result.moved.maps) - centers(result.original.maps)).norm(2, 2);  // [5, 2]
  EXPECT_GT(way.min().item<double>(), 0.01);
  EXPECT_GT(way.mean().item<double>(), 0.1);
}

}  // namespace
}  // namespace holdfast::attack

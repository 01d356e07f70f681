// The objectives of R2ET's tables, each term against plain loops.
#include "objective_case.h"
#include "support/errors.h"

namespace holdfast::train {
namespace {

double plain_gap(const Vector& g, std::size_t k, std::size_t count) {
  double sum = 0;
  const auto pairs = pairs_of(g, k, count);
  for (const auto& [i, j] : pairs) sum += std::abs(g[i]) - std::abs(g[j]);
  return sum / static_cast<double>(pairs.size());
}

Vector sign_direction(const Vector& g) {
  Vector v;
  for (const double value : g) v.push_back(value > 0 ? 1 : -1);
  for (double& value : v) value /= std::sqrt(static_cast<double>(g.size()));
  return v;
}

Vector plus(Vector a, double factor, const Vector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
  return a;
}

const std::vector<ObjectiveCase::Shape> kShapes = {{},
                                                   {.activation = "softplus"},
                                                   {.classes = 4},
                                                   {.activation = "softplus", .classes = 3},
                                                   {.activation = "softplus", .groups = true}};

TEST(R2et, TermsAreThoseOfPlainLoops) {
  for (const auto& shape : kShapes) {
    ObjectiveCase subject(shape);
    const PlainMlp plain(subject.network);
    const auto raw = [&](std::int64_t b) { return plain.gradient(subject.x(b), plain.predicted(subject.x(b))); };
    const auto ranked = [&](std::int64_t b) { return plainly_projected(raw(b), subject.schema); };
    expect_term(subject, "r2et(top_k=3)", "ce", [&](auto b) { return plain.ce(subject.x(b), subject.label(b)); });
    expect_term(subject, "r2et(top_k=3)", "gap", [&](auto b) { return plain_gap(ranked(b), 3, 0); });
    expect_term(subject, "r2et(top_k=5,pairs=next)", "gap", [&](auto b) { return plain_gap(ranked(b), 5, 5); });
    expect_term(subject, "r2et(top_k=5,pairs=next,count=2)", "gap", [&](auto b) { return plain_gap(ranked(b), 5, 2); });
    expect_term(subject, "r2et(top_k=3)", "norm", [&](auto b) { return length(ranked(b)); });
    expect_term(subject, "r2et(top_k=3,project=none)", "norm", [&](auto b) { return length(raw(b)); });
    expect_term(subject, "r2et(top_k=3,form=hvp)", "curvature", [&](auto b) {
      return length(times(plain.hessian(subject.x(b), plain.predicted(subject.x(b))), sign_direction(raw(b))));
    });
    for (const char* call : {"r2et(top_k=3,kappa=0.05)", "est_h(kappa=0.05)"}) {
      expect_term(subject, call, "curvature", [&](auto b) {
        const Vector there = plus(subject.x(b), 0.05, sign_direction(raw(b)));
        return length(plus(plain.gradient(there, plain.predicted(subject.x(b))), -1, raw(b))) / 0.05;
      });
    }
  }
}

// The pass of the cross-entropy moves the running statistics. A difference of gradients from before and after it would say how
// far.
TEST(R2et, CurvatureIsOfOneFunctionAlsoWithBatchNormalisation) {
  const auto curvature = [](const std::string& call) {
    ObjectiveCase subject({.activation = "softplus"});
    Network network;
    network.add("input", op::Input{});
    const at::Tensor ones = at::ones({ObjectiveCase::kFeatures}, at::kDouble);
    network.add("norm", op::BatchNorm{.weight = ones, .bias = 0 * ones, .mean = 0.5 * ones, .variance = 3 * ones});
    for (std::size_t i = 1; i < subject.network.nodes().size(); ++i) {
      const Node& node = subject.network.nodes()[i];
      network.add(node.name, node.operation);
    }
    subject.network = network;
    return subject.term(call, "curvature");
  };
  const at::Tensor exact = curvature("r2et(top_k=3,form=hvp)");
  for (const char* call : {"r2et(top_k=3,kappa=1e-5)", "est_h(kappa=1e-5)"})
    EXPECT_TRUE(at::allclose(curvature(call), exact, 1e-3)) << call << "\n" << curvature(call) << "\n" << exact;
}

// target=ce: the gradient of -log p_y is -(grad p_y) / p_y.
TEST(R2et, ExplainsTheLabelsCrossEntropyWhenAsked) {
  ObjectiveCase subject({.activation = "softplus", .classes = 3});
  const PlainMlp plain(subject.network);
  expect_term(subject, "r2et(top_k=3,target=ce)", "gap", [&](auto b) {
    Vector g = plain.gradient(subject.x(b), subject.label(b));
    for (double& value : g) value /= plain.probabilities(subject.x(b))[subject.label(b)];
    return plain_gap(g, 3, 0);
  });
}

// The sums that the mean gaps stand for, without going through the pairs.
TEST(R2et, GapsTelescope) {
  ObjectiveCase subject({.activation = "softplus"});
  const PlainMlp plain(subject.network);
  const std::size_t n = 12, k = 4;
  const auto sorted = [&](std::int64_t b) {
    Vector g = plain.gradient(subject.x(b), plain.predicted(subject.x(b)));
    for (double& value : g) value = std::abs(value);
    std::sort(g.rbegin(), g.rend());
    return g;
  };
  const auto sum = [](const Vector& v, std::size_t from, std::size_t to) {
    return std::accumulate(v.begin() + static_cast<std::ptrdiff_t>(from), v.begin() + static_cast<std::ptrdiff_t>(to), 0.0);
  };
  expect_term(subject, "r2et(top_k=4,pairs=next)", "gap",
              [&](auto b) { return (sum(sorted(b), 0, k) - sum(sorted(b), k, 2 * k)) / k; });
  expect_term(subject, "r2et(top_k=4)", "gap", [&](auto b) {
    return (static_cast<double>(n - k) * sum(sorted(b), 0, k) - static_cast<double>(k) * sum(sorted(b), k, n)) /
           static_cast<double>(k * (n - k));
  });
}

// Channels of a pixel are one feature: with a pixel's channels summed first, plain loops over pixels give the gap.
TEST(R2et, SumsChannelsAndKeepsSidesApart) {
  Network network = testing_support::conv_network(testing_support::softplus(2), at::kDouble);
  network.require_grad(true);
  const Schema schema = Schema::of(Layout::grid(2, 5, 4));
  const at::Tensor inputs = testing_support::normal_tensor({3, 2, 5, 4}, 9, at::kDouble);
  const TrainBatch batch{.inputs = inputs, .labels = at::arange(3), .sample_ids = at::arange(3), .schema = schema};
  const at::Tensor gap = objectives().make("r2et(top_k=6)")->values(*make_trainee(network), batch)[1];
  for (std::int64_t b = 0; b < 3; ++b) {
    const at::Tensor x = inputs[b].unsqueeze(0).requires_grad_();
    const at::Tensor p = at::softmax(network.logits(x), 1);
    const Vector g = to_vector(torch::autograd::grad({p.max()}, {x})[0].abs().sum(1));
    EXPECT_NEAR(gap[b].item<double>(), plain_gap(g, 6, 0), 1e-10);
  }
}

TEST(R2et, LeavesTheCurvatureOutAtWeightZero) {
  const auto with = objectives().make("r2et"), without = objectives().make("r2et(curvature=0)");
  EXPECT_EQ(with->terms(0).size(), 4u);
  EXPECT_EQ(without->terms(0).size(), 3u);
  EXPECT_NE(with->kind(), without->kind());
  EXPECT_EQ(with->kind(), objectives().make("r2et(gap=7,curvature=2)")->kind());
  EXPECT_EQ(objectives().make("r2et(gap=7)")->terms(0)[1].weight, -7);
}

TEST(R2et, RefusesWhatDoesNotFit) {
  ObjectiveCase subject({});
  EXPECT_ERROR(subject.term("r2et(top_k=12)", "gap"), kUsage, "its pairs reach rank 13, but a sample has 12 features");
  EXPECT_ERROR(subject.term("r2et(top_k=8,pairs=next)", "gap"), kUsage, "reach rank 16");
  EXPECT_ERROR(subject.term("r2et(top_k=3,project=groups)", "gap"), kUsage, "no one-hot groups");
  EXPECT_ERROR(objectives().make("r2et(top_k=3,count=4)"), kUsage, "count=4 pairs around rank top_k=3");
}

TEST(ExactH, IsTheFrobeniusNormOfThePlainHessian) {
  for (const auto& shape : kShapes) {
    ObjectiveCase subject(shape);
    const PlainMlp plain(subject.network);
    expect_term(subject, "exact_h", "curvature", [&](auto b) {
      double squares = 0;
      for (const Vector& row : plain.hessian(subject.x(b), plain.predicted(subject.x(b)))) squares += dot(row, row);
      return std::sqrt(squares);
    });
  }
}

TEST(ExactH, RefusesImagesOfSmoothNetworks) {
  Network network = testing_support::mlp_network({.features = 784, .activation = testing_support::softplus(1)});
  const Schema schema = Schema::of(Layout::vector(784));
  EXPECT_ERROR(objectives().make("exact_h")->check(network, schema), kUsage, "784");
  Network relu = testing_support::mlp_network({.features = 784});
  EXPECT_NO_THROW(objectives().make("exact_h")->check(relu, schema));
}

TEST(Ssr, IsTheLargestEigenvalueOfThePlainHessian) {
  for (const auto& shape : kShapes) {
    ObjectiveCase subject(shape);
    const PlainMlp plain(subject.network);
    expect_term(
        subject, "ssr(products=12)", "curvature",
        [&](auto b) {
          const Matrix h = plain.ce_hessian(subject.x(b), subject.label(b));
          at::Tensor matrix = at::empty({12, 12}, at::kDouble);
          for (std::int64_t i = 0; i < 12; ++i)
            for (std::int64_t j = 0; j < 12; ++j) matrix[i][j] = h[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
          return at::linalg_eigvalsh(matrix).max().item<double>();
        },
        1e-7);
  }
}

TEST(Ssr, FewProductsComeFromBelow) {
  ObjectiveCase subject({.activation = "softplus", .classes = 3});
  const at::Tensor all = subject.term("ssr(products=12)", "curvature"), few = subject.term("ssr(products=3)", "curvature");
  EXPECT_TRUE((few <= all + 1e-9).all().item<bool>());
  EXPECT_TRUE(at::allclose(few, all, 0.3, 1e-3));
}

TEST(At, IsTheCrossEntropyAfterOneStepDownTheGap) {
  for (const auto& shape : kShapes) {
    ObjectiveCase subject(shape);
    const PlainMlp plain(subject.network);
    for (const std::size_t count : {std::size_t{0}, std::size_t{4}}) {
      const std::string call = count == 0 ? "at(top_k=4,step=0.3)" : "at(top_k=4,step=0.3,pairs=next)";
      expect_term(subject, call, "ce", [&](auto b) {
        const Vector x = subject.x(b);
        const std::size_t c = plain.predicted(x);
        const Vector g = plainly_projected(plain.gradient(x, c), subject.schema);
        Vector weights(g.size(), 0);
        for (const auto& [i, j] : pairs_of(g, 4, count)) {
          weights[i] += g[i] > 0 ? 1 : -1;
          weights[j] -= g[j] > 0 ? 1 : -1;
        }
        const Vector uphill = times(plain.hessian(x, c), plainly_projected(weights, subject.schema));
        return plain.ce(plus(x, -0.3 / length(uphill), uphill), subject.label(b));
      });
      expect_term(subject, call, "clean", [&](auto b) { return plain.ce(subject.x(b), subject.label(b)); });
    }
  }
}

TEST(Cl, IsTheMeanOfGapsOverTheirSlopes) {
  for (const auto& shape : kShapes) {
    ObjectiveCase subject(shape);
    const PlainMlp plain(subject.network);
    expect_term(subject, "cl(top_k=4,count=3,floor=1e-4)", "ratio", [&](auto b) {
      const Vector x = subject.x(b);
      const std::size_t c = plain.predicted(x);
      const Vector g = plainly_projected(plain.gradient(x, c), subject.schema);
      const Matrix h = plain.hessian(x, c);
      double sum = 0;
      for (const auto& [i, j] : pairs_of(g, 4, 3)) {
        Vector pair(g.size(), 0);
        pair[i] = g[i] > 0 ? 1 : -1;
        pair[j] = g[j] > 0 ? -1 : 1;
        sum += (std::abs(g[i]) - std::abs(g[j])) / std::max(1e-4, length(times(h, plainly_projected(pair, subject.schema))));
      }
      return sum / 3;
    });
  }
}

// What the header of cl.cpp says of ReLU networks of two classes: the ratio does not see the ranking.
TEST(Cl, DoesNotSeeTheRankingOfAReluNetwork) {
  ObjectiveCase subject({});
  const PlainMlp plain(subject.network);
  expect_term(
      subject, "cl(top_k=2,count=1,floor=1e-9)", "ratio",
      [&](auto b) {
        const Vector p = plain.probabilities(subject.x(b)), g = plain.gradient(subject.x(b), 1);
        return 1 / (std::abs(1 - 2 * p[0]) * length(g) / (p[0] * p[1]));
      },
      1e-8);
}

}  // namespace
}  // namespace holdfast::train

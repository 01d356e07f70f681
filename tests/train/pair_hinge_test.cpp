// The pair hinge: its terms in plain loops, and that what it proves holds at every point that is tried.
#include "holdfast/core/rng.h"
#include "holdfast/explain/explainer.h"
#include "objective_case.h"
#include "support/errors.h"

namespace holdfast::train {
namespace {

using testing_support::normal_tensor;

// Of one sample and one hidden layer, as the objective's header has it.
struct PlainRanking {
  Vector gradient, middle_gradient, half;
  Matrix c;  // C_hi = v_h W_hi, projected
  std::vector<std::size_t> order;
  double tau = 0;
};

// a_h over the ball lies between act'(z_h -+ r ||W_h||).
PlainRanking plain_ranking(const PlainMlp& net, const Vector& x, const Schema& schema, std::size_t k, double radius) {
  const std::size_t n = x.size(), units = net.first().size();
  const Vector z = net.hidden(x);
  PlainRanking result{.gradient = Vector(n, 0), .middle_gradient = Vector(n, 0), .half = Vector(units)};
  double possible = 0;
  for (std::size_t h = 0; h < units; ++h) {
    Vector row = plainly_projected(net.first()[h], schema);
    for (double& value : row) value *= net.second()[1][h] - net.second()[0][h];
    const double reach = radius * length(net.first()[h]), low = net.act(z[h] - reach, 1), high = net.act(z[h] + reach, 1);
    result.half[h] = (high - low) / 2;
    for (std::size_t i = 0; i < n; ++i) {
      result.gradient[i] += net.act(z[h], 1) * row[i];
      result.middle_gradient[i] += (low + high) / 2 * row[i];
    }
    possible += length(row) / std::sqrt(static_cast<double>(n));
    result.c.push_back(row);
  }
  for (const auto place : ranking(result.gradient)) result.order.push_back(static_cast<std::size_t>(place));
  const auto magnitude = [&](std::size_t rank) { return std::abs(result.gradient[result.order[rank]]); };
  result.tau = std::max((magnitude(k - 1) + magnitude(k)) / 2, 0.01 * possible);
  return result;
}

double plain_hinge(const PlainRanking& of, std::size_t k) {
  const std::size_t n = of.gradient.size();
  Vector least(n, INFINITY);
  for (const auto& [i, j] : pairs_of(of.gradient, k, 0)) {
    const double s_i = of.gradient[i] > 0 ? 1 : -1;
    double bound = INFINITY;
    for (const double t : {-1.0, 1.0}) {
      double value = s_i * (of.middle_gradient[i] - t * of.middle_gradient[j]);
      for (std::size_t h = 0; h < of.half.size(); ++h) value -= of.half[h] * std::abs(of.c[h][i] - t * of.c[h][j]);
      bound = std::min(bound, value);
    }
    least[i] = std::min(least[i], bound / of.tau);
    least[j] = std::min(least[j], bound / of.tau);
  }
  double top = 0, others = 0;
  for (std::size_t rank = 0; rank < n; ++rank) {
    const double cost = std::min(20.0, std::max(0.0, 0.1 - least[of.order[rank]]));
    (rank < k ? top : others) += cost;
  }
  return (top / static_cast<double>(k) + others / static_cast<double>(n - k)) / 2;
}

TEST(PairHinge, IsThatOfPlainLoops) {
  for (const char* activation : {"relu", "softplus"}) {
    for (const bool groups : {false, true}) {
      ObjectiveCase subject({.activation = activation, .groups = groups});
      const PlainMlp plain(subject.network);
      for (const double radius : {0.0, 0.05, 0.5}) {
        expect_term(subject, fmt::format("pair_hinge(top_k=4,radius={},most=20)", radius), "hinge",
                    [&](auto b) { return plain_hinge(plain_ranking(plain, subject.x(b), subject.schema, 4, radius), 4); });
      }
    }
  }
}

TEST(PairHinge, BetweenIsABarrierOfTheMeanCosineOfMemberships) {
  for (const char* activation : {"relu", "softplus"}) {
    ObjectiveCase subject({.activation = activation, .groups = true});
    const PlainMlp plain(subject.network);
    Matrix members;
    for (std::int64_t b = 0; b < 6; ++b) {
      const PlainRanking of = plain_ranking(plain, subject.x(b), subject.schema, 4, 0.1);
      Vector row;
      for (const double g : of.gradient) row.push_back(1 / (1 + std::exp(-(std::abs(g) / of.tau - 1) / 0.05)));
      members.push_back(row);
    }
    double sum = 0;
    for (std::size_t a = 0; a < 6; ++a) {
      for (std::size_t b = 0; b < 6; ++b) {
        double dot = 0;
        for (std::size_t i = 0; i < members[a].size(); ++i) dot += members[a][i] * members[b][i];
        if (a != b) sum += dot / (length(members[a]) * length(members[b]));
      }
    }
    expect_term(subject, "pair_hinge(top_k=4,radius=0.1)", "between", [&](auto) { return -std::log(1 - sum / 30); });
  }
}

// Where all samples are the same there is one ranking: the barrier is at its end, and finite.
TEST(PairHinge, OneRankingForAllSamplesMeetsTheBarrier) {
  ObjectiveCase subject({.activation = "softplus"});
  subject.inputs = subject.inputs.slice(0, 0, 1).repeat({6, 1});
  EXPECT_NEAR(subject.term("pair_hinge(top_k=4,radius=0.1)", "between").max().item<double>(), -std::log(1e-3), 1e-9);
}

TEST(PairHinge, GateAndBalanceAreThoseOfPlainLoops) {
  const double radius = 0.3;
  ObjectiveCase subject({});
  {
    const at::NoGradGuard no_graph;
    std::get<op::Linear>(subject.network.nodes()[1].operation).bias[0].fill_(50);  // always on
  }
  const PlainMlp plain(subject.network);
  const std::size_t units = plain.first().size();
  const auto steadiness = [&](std::int64_t b, std::size_t h) {
    return plain.hidden(subject.x(b))[h] / (radius * length(plain.first()[h]));
  };
  double balance = 0;
  for (std::size_t h = 0; h < units; ++h) {
    double on = 0;
    for (std::int64_t b = 0; b < 6; ++b) on += 1 / (1 + std::exp(-4 * steadiness(b, h))) / 6;
    balance += 10 * std::max(0.0, 0.1 - on * (1 - on)) / static_cast<double>(units);
  }
  EXPECT_GT(balance, 0);
  expect_term(subject, "pair_hinge(top_k=4,radius=0.3)", "balance", [&](auto) { return balance; });
  expect_term(subject, "pair_hinge(top_k=4,radius=0.3)", "gate", [&](auto b) {
    double sum = 0;
    for (std::size_t h = 0; h < units; ++h) sum += std::max(0.0, 1.2 - std::abs(steadiness(b, h)));
    return sum / static_cast<double>(units);
  });
}

// Where the gate is 0 no unit switches in the ball: a ReLU network is linear there.
TEST(PairHinge, NoGateMeansOneLinearPiece) {
  ObjectiveCase subject({.samples = 60});
  const double radius = 0.03;
  const at::Tensor gate = subject.term("pair_hinge(top_k=4,radius=0.03)", "gate");
  const auto pattern = [&](const at::Tensor& x) {
    const auto& hidden = std::get<op::Linear>(subject.network.nodes()[1].operation);
    return at::addmm(hidden.bias, x, hidden.weight.t()) > 0;
  };
  std::int64_t steady = 0;
  for (std::int64_t b = 0; b < 60; ++b) {
    if (gate[b].item<double>() > 0) continue;
    ++steady;
    at::Tensor moves = normal_tensor({300, ObjectiveCase::kFeatures}, 78, at::kDouble);
    moves = moves / moves.norm(2, 1, true) * radius;
    EXPECT_TRUE(at::equal(pattern(subject.inputs[b] + moves), pattern(subject.inputs[b].unsqueeze(0)).expand({300, 7})));
  }
  EXPECT_GT(steady, 5);
  EXPECT_LT(steady, 60);
}

// A flat network has no ranking to hold and nothing to gain from becoming flatter.
TEST(PairHinge, AFlatSampleHasNoPull) {
  ObjectiveCase subject({});
  const auto& hidden = std::get<op::Linear>(subject.network.nodes()[1].operation);
  {
    const at::NoGradGuard no_graph;
    hidden.bias.fill_(-100);  // all units off, far from switching
  }
  const auto objective = objectives().make("pair_hinge(top_k=4,radius=0.1)");
  const at::Tensor hinge = objective->values(*make_trainee(subject.network), subject.batch())[1];
  EXPECT_NEAR(hinge.max().item<double>(), 0.1, 1e-12);  // the margin
  EXPECT_EQ(torch::autograd::grad({hinge.sum()}, {hidden.weight})[0].abs().max().item<double>(), 0);
}

TEST(PairHinge, BoundsTheFirstRowsOnlyAndKeepsTheirMean) {
  ObjectiveCase subject({});
  const at::Tensor all = subject.term("pair_hinge(top_k=4,radius=0.1)", "hinge"),
                   some = subject.term("pair_hinge(top_k=4,radius=0.1,rows=2)", "hinge");
  EXPECT_NEAR(some.mean().item<double>(), all.slice(0, 0, 2).mean().item<double>(), 1e-12);
  EXPECT_EQ(some.slice(0, 2).abs().max().item<double>(), 0);
}

TEST(PairHinge, BeginsLateAndRises) {
  const auto objective = objectives().make("pair_hinge(hinge=2,delay=0.3,rise=0.2)");
  const auto weight = [&](double progress) { return objective->terms(progress)[1].weight; };
  EXPECT_EQ(weight(0.29), 0);
  EXPECT_NEAR(weight(0.4), 1, 1e-12);
  EXPECT_EQ(weight(0.51), 2);
  EXPECT_EQ(objective->terms(0.1)[2].weight, 0) << "the barrier waits too";
  EXPECT_GT(objective->terms(0.1)[3].weight, 0) << "the gate does not";
  ObjectiveCase subject({});
  EXPECT_EQ(subject.term("pair_hinge(top_k=4,delay=0.3)", "hinge", 0.1).abs().max().item<double>(), 0);
  EXPECT_GT(subject.term("pair_hinge(top_k=4,delay=0.3)", "hinge", 0.4).abs().max().item<double>(), 0);
}

at::Tensor margin_gradient(const Network& network, const at::Tensor& inputs) {
  const at::Tensor x = inputs.detach().requires_grad_();
  const at::Tensor logits = network.logits(x);
  return torch::autograd::grad({(logits.select(1, 1) - logits.select(1, 0)).sum()}, {x})[0];
}

// Points all over the ball, many of them on its surface, where bounds are met first.
at::Tensor points_in_ball(const at::Tensor& x, double radius, std::int64_t count) {
  at::Tensor moves = normal_tensor({count, x.size(0)}, 77, at::kDouble);
  moves = moves / moves.norm(2, 1, true) * radius;
  moves.slice(0, 0, count / 2).mul_(at::linspace(0, 1, count / 2, at::kDouble).unsqueeze(1));
  return x + moves;
}

// No point of the ball swaps a pair whose hinge is zero at margin zero.
TEST(PairHinge, ZeroProvesThatTheTopStays) {
  ObjectiveCase subject({.activation = "softplus", .samples = 40});
  const at::Tensor hinge = subject.term("pair_hinge(top_k=4,radius=0.05,margin=0)", "hinge");
  std::int64_t proven = 0;
  for (std::int64_t b = 0; b < 40; ++b) {
    if (hinge[b].item<double>() > 0) continue;
    ++proven;
    const auto top = [](const at::Tensor& maps) { return std::get<0>(std::get<1>(maps.abs().topk(4, 1)).sort(1)); };
    const at::Tensor clean = top(margin_gradient(subject.network, subject.inputs[b].unsqueeze(0)));
    EXPECT_TRUE(
        at::equal(top(margin_gradient(subject.network, points_in_ball(subject.inputs[b], 0.05, 300))), clean.expand({300, 4})));
  }
  EXPECT_GT(proven, 5);
  EXPECT_LT(proven, 40);
}

TEST(PairHinge, RefusesWhatItCannotBound) {
  const Schema schema = Schema::of(Layout::vector(12));
  const auto check = [&](const testing_support::MlpShape& shape, const Schema& own, const char* call = "pair_hinge") {
    objectives().make(call)->check(testing_support::mlp_network(shape), own);
  };
  EXPECT_NO_THROW(check({}, schema));
  EXPECT_ERROR(check({.classes = 3}, schema), kUsage, "3 classes in place of two");
  EXPECT_ERROR(check({.activation = {op::Activation::Kind::kTanh, 0}}, schema), kUsage, "no bounds for tanh at node 'act'");
  EXPECT_ERROR(check({}, schema, "pair_hinge(top_k=12)"), kUsage, "choose top_k below that");
  EXPECT_ERROR(check({.features = 300}, Schema::of(Layout::vector(300))), kUsage, "at most 256");
  EXPECT_ERROR(
      objectives().make("pair_hinge")->check(testing_support::conv_network({}, at::kFloat, 2), Schema::of(Layout::grid(2, 5, 4))),
      kUsage, "no bounds for conv2d at node 'conv'");
}

}  // namespace
}  // namespace holdfast::train

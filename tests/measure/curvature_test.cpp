#include <cmath>

#include <gtest/gtest.h>

#include "holdfast/measure/lanczos.h"
#include "measure_case.h"
#include "support/errors.h"

namespace holdfast::measure {
namespace {

using testing_support::MeasureCase;
using testing_support::mlp_model;
using testing_support::MlpShape;
using testing_support::normal_tensor;
using testing_support::part;
using testing_support::softplus;

MeasureCase net(const MlpShape& shape) {
  return {.model = mlp_model(shape), .inputs = normal_tensor({5, shape.features}, 20, shape.type)};
}

// The Hessian by central differences of the gradient: autograd's second derivatives are not asked.
at::Tensor numeric_hessian(MeasureCase& test, const std::string& of) {
  const MeasureTask task = test.task();
  const auto gradient = [&](const at::Tensor& at_point) {
    const at::Tensor x = at_point.detach().requires_grad_();
    const at::Tensor log_p = at::log_softmax(test.model->logits(x), 1).gather(1, task.samples.targets.unsqueeze(1));
    const at::Tensor value = of == "ce" ? -log_p : log_p.exp();
    return torch::autograd::grad({value.sum()}, {x})[0];
  };
  constexpr double kStep = 1e-5;
  std::vector<at::Tensor> rows;
  for (std::int64_t i = 0; i < test.inputs.size(1); ++i) {
    at::Tensor step = at::zeros_like(test.inputs);
    step.select(1, i).fill_(kStep);
    rows.push_back((gradient(test.inputs + step) - gradient(test.inputs - step)) / (2 * kStep));
  }
  const at::Tensor matrix = at::stack(rows, 1);
  return (matrix + matrix.transpose(1, 2)) / 2;
}

void expect_near(const std::vector<double>& values, const at::Tensor& expected, double share) {
  ASSERT_EQ(static_cast<std::int64_t>(values.size()), expected.numel());
  for (std::size_t b = 0; b < values.size(); ++b) {
    const double right = expected[static_cast<std::int64_t>(b)].item<double>();
    EXPECT_NEAR(values[b], right, share * (1e-3 + std::abs(right))) << "sample " << b;
  }
}

TEST(Curvature, ProductsEqualFiniteDifferencesOnSmoothNets) {
  MeasureCase test = net({.features = 8, .classes = 3, .activation = softplus(2), .type = at::kDouble});
  for (const std::string of : {"probability", "ce"}) {
    const at::Tensor hessian = numeric_hessian(test, of), eigenvalues = at::linalg_eigvalsh(hessian);
    expect_near(test.run("curvature(of=" + of + ")").values, hessian.flatten(1).norm(2, 1), 1e-5);
    expect_near(test.run("curvature(norm=spectral,of=" + of + ")").values, eigenvalues.abs().amax(1), 1e-5);
    expect_near(test.run("curvature(norm=largest,of=" + of + ")").values, eigenvalues.amax(1), 1e-5);
  }
}

// Inside a linear region of a binary net H = p (1-p) (1-2p) w w^T: one eigenvalue, so both norms are its size.
TEST(Curvature, BinaryReluNetsHaveRankOne) {
  MeasureCase test = net({.features = 10, .type = at::kDouble});
  const MeasureTask task = test.task();
  const at::Tensor x = test.inputs.detach().requires_grad_();
  const at::Tensor logits = test.model->logits(x);
  const at::Tensor margin =
      (logits.gather(1, task.samples.targets.unsqueeze(1)) - logits.gather(1, 1 - task.samples.targets.unsqueeze(1))).squeeze(1);
  const at::Tensor w = torch::autograd::grad({margin.sum()}, {x})[0], p = at::sigmoid(margin.detach());
  const at::Tensor expected = p * (1 - p) * (1 - 2 * p).abs() * w.square().sum(1);
  for (const std::string by : {"closed", "products"}) {
    for (const std::string norm : {"frobenius", "spectral"}) {
      expect_near(test.run("curvature(norm=" + norm + ",by=" + by + ")").values, expected, 1e-9);
    }
  }
}

TEST(Curvature, ClosedFormsEqualProductsOnReluNets) {
  for (const std::int64_t classes : {2, 5}) {
    MeasureCase test = net({.features = 9, .classes = classes, .type = at::kDouble});
    for (const std::string norm : {"frobenius", "spectral", "largest"}) {
      for (const std::string of : {"probability", "ce", "logit"}) {
        const std::string call = "curvature(norm=" + norm + ",of=" + of + ",by=";
        const std::vector<double> closed = test.run(call + "closed)").values, products = test.run(call + "products)").values;
        for (std::size_t b = 0; b < closed.size(); ++b) EXPECT_NEAR(closed[b], products[b], 1e-9 * (1 + closed[b])) << call;
        EXPECT_EQ(test.run(call + "auto)").values, closed);
      }
    }
  }
}

// SSR: the largest eigenvalue of W (diag p - p p^T) W^T, here with the matrix written out.
TEST(Curvature, LargestEigenvalueOfTheCrossEntropyIsSsrs) {
  MeasureCase test = net({.features = 6, .classes = 4, .type = at::kDouble});
  at::Tensor expected = at::empty({5}, at::kDouble);
  for (std::int64_t b = 0; b < 5; ++b) {
    const at::Tensor x = test.inputs[b].detach().requires_grad_();
    const at::Tensor logits = test.model->logits(x.unsqueeze(0))[0];
    std::vector<at::Tensor> columns;
    for (std::int64_t c = 0; c < 4; ++c) columns.push_back(torch::autograd::grad({logits[c]}, {x}, {}, true)[0]);
    const at::Tensor w = at::stack(columns, 1), p = at::softmax(logits.detach(), 0);
    const at::Tensor hessian = w.matmul(at::diag(p) - at::outer(p, p)).matmul(w.t());
    expected[b] = at::linalg_eigvalsh(hessian).max();
  }
  expect_near(test.run("curvature(norm=largest,of=ce)").values, expected, 1e-9);
}

TEST(Curvature, TheEstimateTendsToTheProductWithItsDirection) {
  MeasureCase test = net({.features = 8, .activation = softplus(2), .type = at::kDouble});
  const at::Tensor hessian = numeric_hessian(test, "probability");
  const Explanation gradient = explainers().make("saliency(signed=true)")->attribute(test.task().explain_task());
  const at::Tensor sign = gradient.maps.sign(), v = sign / sign.norm(2, 1, true);
  const at::Tensor expected = at::matmul(hessian, v.unsqueeze(2)).squeeze(2).norm(2, 1);
  expect_near(test.run("curvature(norm=estimate,kappa=0.0001)").values, expected, 1e-3);
  expect_near(test.run("curvature(norm=estimate)").values, expected, 0.1);
  const std::vector<double> spectral = test.run("curvature(norm=spectral)").values,
                            estimate = test.run("curvature(norm=estimate)").values;
  for (std::size_t b = 0; b < spectral.size(); ++b) EXPECT_LE(estimate[b], spectral[b] * 1.1);
}

// A probability so near 1 that its gradient underflows in float: the scale is kept apart.
TEST(Curvature, SaturatedFloatNetsKeepTheirDigits) {
  MeasureCase single = net({.features = 8, .gain = 60}), exact = net({.features = 8, .gain = 60, .type = at::kDouble});
  exact.inputs = single.inputs.to(at::kDouble);
  const std::vector<double> values = single.run("curvature(by=products)").values,
                            right = exact.run("curvature(by=closed)").values;
  double smallest = 1;
  for (std::size_t b = 0; b < values.size(); ++b) {
    EXPECT_NEAR(values[b] / right[b], 1, 0.01) << right[b];
    smallest = std::min(smallest, right[b]);
  }
  EXPECT_LT(smallest, 1e-9) << "a case that is not saturated shows nothing";
}

TEST(Curvature, RefusesWhatTheModelCannotDo) {
  MeasureCase test = net({.features = 8, .activation = softplus(2)});
  EXPECT_ERROR(test.check("curvature(by=closed)"), kUsage, "softplus(beta=2) at node 'act'");
  test.model = make_model([](const at::Tensor& x) { return x; }, Capabilities{.double_backward = false}, at::kCPU);
  EXPECT_ERROR(test.check("curvature"), kUsage, "differentiated twice");
  EXPECT_NO_THROW(test.check("curvature(norm=estimate)"));
  test.model = make_model([](const at::Tensor& x) { return x; }, Capabilities{.gradients = false}, at::kCPU);
  EXPECT_ERROR(test.check("curvature(norm=estimate)"), kUsage, "no gradients");
}

// Symmetric matrices with given eigenvalues.
at::Tensor with_eigenvalues(const at::Tensor& values) {
  const at::Tensor vectors =
      std::get<0>(at::linalg_qr(normal_tensor({values.size(0), values.size(1), values.size(1)}, 21, at::kDouble)));
  return at::matmul(vectors * values.unsqueeze(1), vectors.transpose(1, 2));
}

Extremes extremes_of(const at::Tensor& matrix, const LanczosOptions& options) {
  return lanczos([&](const at::Tensor& v) { return at::matmul(matrix, v.unsqueeze(2)).squeeze(2); },
                 normal_tensor({matrix.size(0), matrix.size(1)}, 22, at::kDouble), options);
}

TEST(Lanczos, FindsExtremesOfEveryKindOfSpectrum) {
  constexpr std::int64_t n = 40;
  const at::Tensor ramp = at::linspace(0, 1, n, at::kDouble);
  at::Tensor rank_one = at::zeros({n}, at::kDouble), twice = ramp.clone(), zero = at::zeros({n}, at::kDouble);
  rank_one[3] = -2.5;
  twice[0] = 1;  // the largest eigenvalue, two times
  const at::Tensor values = at::stack({ramp, -ramp, ramp - 0.7, rank_one, twice, zero, ramp * 1e-9 - 3});
  const Extremes found = extremes_of(with_eigenvalues(values), {.steps = n, .tolerance = 1e-9});
  EXPECT_TRUE(at::allclose(found.magnitude, values.abs().amax(1), 1e-8, 1e-10)) << found.magnitude;
  EXPECT_TRUE(at::allclose(found.largest, values.amax(1), 1e-8, 1e-10)) << found.largest;
}

TEST(Lanczos, DirectionHasTheLargestEigenvalueAsItsQuotient) {
  const at::Tensor values = normal_tensor({5, 30}, 24, at::kDouble), matrix = with_eigenvalues(values);
  const Extremes found = extremes_of(matrix, {.steps = 30, .tolerance = 0});
  const at::Tensor u = found.direction;
  EXPECT_TRUE(at::allclose(u.norm(2, 1), at::ones({5}, at::kDouble), 1e-9, 1e-9));
  EXPECT_TRUE(at::allclose(at::matmul(matrix, u.unsqueeze(2)).squeeze(2), values.amax(1).unsqueeze(1) * u, 1e-6, 1e-6));
}

TEST(Lanczos, ResidualBoundsTheErrorWhenItStopsEarly) {
  const at::Tensor values = normal_tensor({6, 60}, 23, at::kDouble);
  const at::Tensor matrix = with_eigenvalues(values);
  double largest = 0;
  for (const std::int64_t steps : {3, 5, 9}) {
    const Extremes found = extremes_of(matrix, {.steps = steps, .tolerance = 1e-12});
    const at::Tensor nearest = (values - found.largest.unsqueeze(1)).abs().amin(1);
    EXPECT_TRUE((nearest <= found.residual + 1e-12).all().item<bool>());
    EXPECT_TRUE((found.largest <= values.amax(1) + 1e-12).all().item<bool>()) << "never above the largest";
    largest = std::max(largest, found.residual.max().item<double>());
  }
  EXPECT_GT(largest, 0.01);
}

}  // namespace
}  // namespace holdfast::measure

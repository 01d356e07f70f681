// The short way through a chain of layers, against the recorded gradient and its double backward.
#include "objective_case.h"

namespace holdfast::train {
namespace {

// A trainee whose inside is not seen: objectives take the general way.
class Hidden final : public Trainee {
 public:
  explicit Hidden(Network& network) : own_(make_trainee(network)) {}
  at::Tensor training_logits(const at::Tensor& inputs, std::uint64_t seed) override {
    return own_->training_logits(inputs, seed);
  }
  at::Tensor logits(const at::Tensor& inputs) override { return own_->logits(inputs); }
  bool modes_differ() const override { return false; }

 private:
  std::unique_ptr<Trainee> own_;
};

// Every term and its gradient by every parameter, both ways.
void expect_same(const std::string& call, Network& network, const TrainBatch& batch, double tolerance) {
  const auto objective = objectives().make(call);
  const auto seen = make_trainee(network);
  Hidden hidden(network);
  const auto values = objective->values(*seen, batch), reference = objective->values(hidden, batch);
  const auto terms = objective->terms(0);
  const at::Tensor weights = at::linspace(0.5, 2, batch.inputs.size(0), values[0].options().requires_grad(false));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(at::allclose(values[i], reference[i], tolerance, tolerance)) << call << " " << terms[i].name;
    ASSERT_EQ(values[i].requires_grad(), reference[i].requires_grad()) << call << " " << terms[i].name;
    if (!values[i].requires_grad()) continue;
    for (const Parameter& parameter : network.parameters()) {
      const auto gradient = [&](const at::Tensor& value) {
        const at::Tensor result =
            torch::autograd::grad({(value * weights).sum()}, {parameter.tensor}, {}, true, false, /*allow_unused=*/true)[0];
        return result.defined() ? result : at::zeros_like(parameter.tensor);
      };
      const at::Tensor own = gradient(values[i]), other = gradient(reference[i]);
      EXPECT_TRUE(at::allclose(own, other, tolerance, tolerance * (1 + other.abs().max().item<double>())))
          << call << " " << terms[i].name << " " << parameter.name;
    }
  }
  // It was the short way: the terms are one step of the graph.
  EXPECT_EQ(values[0].grad_fn(), values[1].grad_fn()) << call;
  EXPECT_NE(reference[0].grad_fn(), reference[1].grad_fn()) << call;
}

const std::vector<std::string> kCalls = {"r2et(top_k=3,curvature=0)", "r2et(top_k=3,curvature=0,pairs=next)",
                                         "r2et(top_k=3,curvature=0,target=ce)"};

TEST(ChainGap, IsTheRecordedWay) {
  for (const char* activation : {"relu", "softplus"}) {
    for (const std::int64_t classes : {2, 4}) {
      for (const bool groups : {false, true}) {
        ObjectiveCase subject({.activation = activation, .classes = classes, .groups = groups});
        for (const std::string& call : kCalls) expect_same(call, subject.network, subject.batch(), 1e-10);
      }
    }
  }
}

TEST(ChainGap, IsTheRecordedWayForAnyDepthAndForStacks) {
  for (const char* architecture :
       {"linear(inputs=12)", "mlp(inputs=12,hidden=9x6x5,activation=softplus,beta=2)", "mlp(inputs=12,hidden=9x6,classes=3)"}) {
    ObjectiveCase subject({.groups = true});
    std::vector<Network> networks;
    for (const std::uint64_t seed : {1, 2}) networks.push_back(architectures().make(architecture)->build(seed).to(at::kDouble));
    networks[0].require_grad(true);
    Network together = stack(networks);
    together.require_grad(true);
    for (const std::string& call : kCalls) {
      expect_same(call, networks[0], subject.batch(), 1e-10);
      expect_same(call, together, subject.batch(), 1e-10);
    }
  }
}

// Probabilities within 1e-30 of 0 and 1: the gradient is small, but not rounding.
TEST(ChainGap, IsTheRecordedWayWhereTheSoftmaxIsSaturated) {
  ObjectiveCase subject({.classes = 3});
  subject.network = testing_support::mlp_network({.features = 12, .hidden = 7, .classes = 3, .gain = 20});
  subject.network.require_grad(true);
  subject.inputs = subject.inputs.to(at::kFloat);
  const at::Tensor highest = std::get<0>(at::softmax(subject.network.logits(subject.inputs.to(at::kFloat)), 1).max(1));
  ASSERT_GT(highest.max().item<double>(), 1 - 1e-6);
  const auto chain = objectives().make("r2et(top_k=3,curvature=0)");
  Hidden hidden(subject.network);
  const at::Tensor own = chain->values(*make_trainee(subject.network), subject.batch())[1];
  const at::Tensor other = chain->values(hidden, subject.batch())[1];
  ASSERT_GT(own.abs().min().item<double>(), 0);
  EXPECT_TRUE(at::allclose(own, other, 1e-4, 0));  // relative alone
}

}  // namespace
}  // namespace holdfast::train

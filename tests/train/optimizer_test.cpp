#include "holdfast/train/optimizer.h"

#include <torch/torch.h>

#include "support/errors.h"
#include "train/toy.h"

namespace holdfast::train {
namespace {

// A badly conditioned bowl with a bend, in two tensors: its gradient is written out.
std::vector<at::Tensor> gradients_at(const std::vector<at::Tensor>& p) {
  const at::NoGradGuard no_grad;
  return {p[0] * torch::tensor({1.f, 30.f, 0.1f}) + p[0].pow(3), 2 * (p[1] - 1) + 0.3 * p[0].sum()};
}

std::vector<at::Tensor> start_values() {
  return {torch::tensor({1.f, -0.5f, 3.f}), torch::tensor({{0.25f, 2.f}, {-1.f, 4.f}})};
}

std::vector<Parameter> named(const std::vector<at::Tensor>& tensors) {
  return {{"a", tensors[0]}, {"b", tensors[1]}, {"fixed", at::ones({2}), false}};
}

// Steps of ours, with a rate that changes on the way.
std::vector<at::Tensor> ours(const std::string& call, double weight_decay, int steps) {
  const std::vector<at::Tensor> p = start_values();
  const auto optimizer = optimizers().make(call);
  optimizer->start(named(p), weight_decay);
  EXPECT_EQ(optimizer->parameters().size(), 2u);
  for (int i = 0; i < steps; ++i) optimizer->step(gradients_at(p), i < 10 ? 0.01 : 0.003);
  return p;
}

template <class Theirs, class TheirOptions>
std::vector<at::Tensor> torchs(TheirOptions options, int steps) {
  std::vector<at::Tensor> p = start_values();
  for (at::Tensor& tensor : p) tensor.set_requires_grad(true);
  Theirs optimizer(p, options);
  for (int i = 0; i < steps; ++i) {
    const auto gradients = gradients_at(p);
    for (std::size_t j = 0; j < p.size(); ++j) p[j].mutable_grad() = gradients[j];
    optimizer.param_groups()[0].options().set_lr(i < 10 ? 0.01 : 0.003);
    optimizer.step();
  }
  return p;
}

void expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << a[i] << "\n" << b[i];
}

TEST(Optimizer, AdamTakesTorchsSteps) {
  expect_same(ours("adam", 0, 25), torchs<torch::optim::Adam>(torch::optim::AdamOptions(0.01), 25));
  expect_same(ours("adam(beta1=0.8,beta2=0.95,epsilon=1e-3)", 0.1, 25),
              torchs<torch::optim::Adam>(torch::optim::AdamOptions(0.01).betas({0.8, 0.95}).eps(1e-3).weight_decay(0.1), 25));
}

TEST(Optimizer, SgdTakesTorchsSteps) {
  expect_same(ours("sgd(momentum=0)", 0, 25), torchs<torch::optim::SGD>(torch::optim::SGDOptions(0.01), 25));
  expect_same(ours("sgd", 0.1, 25),
              torchs<torch::optim::SGD>(torch::optim::SGDOptions(0.01).momentum(0.9).weight_decay(0.1), 25));
  expect_same(ours("sgd(nesterov=true)", 0, 25),
              torchs<torch::optim::SGD>(torch::optim::SGDOptions(0.01).momentum(0.9).nesterov(true), 25));
}

// What a GPU does, compared with what the processor does.
TEST(Optimizer, MovingAllParametersTogetherIsTheSame) {
  for (const char* call : {"adam", "sgd", "sgd(momentum=0)", "sgd(nesterov=true)"}) {
    const std::vector<at::Tensor> expected = ours(call, 0.1, 25), p = start_values();
    const auto optimizer = optimizers().make(call);
    optimizer->start(named(p), 0.1);
    optimizer->move_together(true);
    for (int i = 0; i < 25; ++i) optimizer->step(gradients_at(p), i < 10 ? 0.01 : 0.003);
    expect_same(expected, p);
  }
}

TEST(Optimizer, GoesOnFromItsStateAsIfItHadNotStopped) {
  for (const char* call : {"adam", "sgd"}) {
    const std::vector<at::Tensor> whole = ours(call, 0.01, 9), part = ours(call, 0.01, 0);
    const auto first = optimizers().make(call), second = optimizers().make(call);
    first->start(named(part), 0.01);
    for (int i = 0; i < 5; ++i) first->step(gradients_at(part), 0.01);
    second->start(named(part), 0.01);
    second->restore(first->state(), first->steps(), "test");
    for (int i = 0; i < 4; ++i) second->step(gradients_at(part), 0.01);
    EXPECT_EQ(second->steps(), 9);
    expect_same(whole, part);
  }
}

TEST(Optimizer, RefusesTheStateOfOtherParameters) {
  const auto optimizer = optimizers().make("adam");
  optimizer->start(named(start_values()), 0);
  std::vector<Parameter> state = optimizer->state();
  state[0].tensor = at::zeros({7});
  EXPECT_ERROR(optimizer->restore(state, 1, "x.safetensors"), kInput,
               "x.safetensors: the optimiser's 'mean.a' has another shape");
  state.clear();
  EXPECT_ERROR(optimizer->restore(state, 1, "x.safetensors"), kInput, "'mean.a' is missing");
}

}  // namespace
}  // namespace holdfast::train

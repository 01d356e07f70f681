// What every objective and recipe keeps to. Objectives are found through the registry; there is no list to edit.
#include <torch/csrc/autograd/custom_function.h>

#include "holdfast/train/trainer.h"
#include "objective_case.h"
#include "support/errors.h"
#include "support/method_calls.h"

namespace holdfast::train {
namespace {

struct Row {
  std::string call;
  std::string activation = "softplus";
  // Forward passes and input gradients (double backwards among them) of a step of a model with two classes whose training and
  // evaluation are the same; -1: not counted here.
  int forwards = 1, gradients = 0;
  // Whether the value's derivative by the parameters is the one that is trained with: not where a point that depends on
  // the parameters is held constant, or a kink's derivative is estimated.
  bool exact = true;
};

// Variants whose passes are counted, or whose derivative is not exact.
const std::vector<Row>& variants() {
  static const std::vector<Row> rows = {
      {"ce"},
      {"est_h", "softplus", 2, 2},
      {"est_h(form=hvp)", "softplus", 1, 2},
      {"exact_h", "relu", 1, 1},
      {"exact_h", "softplus", 2, 2},
      {"ssr", "relu", 1, 1},
      {"ssr(products=4)", "softplus", 1, 6, false},  // not converged: the direction is not the eigenvector's
      {"ssr(products=12)", "softplus", -1, -1},
      {"at(top_k=4)", "softplus", 2, 2, false},
      {"cl(top_k=4,count=3)", "softplus", 2, 3},
      {"r2et(top_k=4)", "softplus", 2, 2},
      {"r2et(top_k=4)", "relu", 2, 2},
      {"r2et(top_k=4,form=hvp)", "softplus", 1, 2},
      {"r2et(top_k=4,curvature=0)", "softplus", 1, 1},
      {"r2et(top_k=4,curvature=0,pairs=next)", "relu", 1, 1},
      {"pair_hinge(top_k=4,radius=0.2)", "softplus", 1, 0},
      {"pair_hinge(top_k=4,radius=0.2)", "relu", 1, 0, false},
      {"convex", "relu"},
      {"own_top(gates=1)", "relu"},
      {"pgd", "softplus", -1, -1, false},  // the worst point is held constant, here and below
      {"ig_norm", "softplus", -1, -1, false},
      {"ig_sum_norm", "softplus", -1, -1, false},
      {"steady_map", "softplus", -1, -1, false},
      {"steady_map(explanation=both,apart=0,power=1)", "softplus", -1, -1, false},
  };
  return rows;
}

// The variants, and every objective that has none with its default options, but for top_k: the samples have 12 features.
std::vector<Row> rows() {
  std::vector<Row> all = variants();
  std::vector<std::string> calls;
  for (const Row& row : variants()) calls.push_back(row.call);
  for (const std::string& call : testing_support::calls_beside(calls, objectives(), {{"top_k", "4"}})) {
    all.push_back({call, "softplus", -1, -1});
  }
  return all;
}

ObjectiveCase subject_of(const Row& row, std::uint64_t seed = 1) {
  ObjectiveCase subject({.activation = row.activation, .groups = true, .seed = seed});
  subject.schema.range = {-5.0, 5.0};
  for (int i = 0; i < ObjectiveCase::kFeatures; ++i)
    subject.schema.features.push_back({.name = fmt::format("feature {}", i), .low = -5, .high = 5, .deviation = 1.0});
  return subject;
}

class ObjectiveRow : public testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(, ObjectiveRow, testing::ValuesIn(rows()), [](const auto& row) {
  std::string name = row.param.call + "_" + row.param.activation;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

TEST_P(ObjectiveRow, GivesOneFiniteValueASampleForEachTerm) {
  EXPECT_FALSE(objectives().info(parse_method_call(GetParam().call).name).summary.empty());
  ObjectiveCase subject = subject_of(GetParam());
  const auto objective = objectives().make(GetParam().call);
  EXPECT_NO_THROW(objective->check(subject.network, subject.schema));
  const std::vector<Term> terms = objective->terms(0.9), early = objective->terms(0);
  const auto values = objective->values(*make_trainee(subject.network), subject.batch());
  ASSERT_EQ(terms.size(), values.size());
  EXPECT_EQ(terms[0].name, "ce");
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(terms[i].name, early.at(i).name);
    ASSERT_EQ(values[i].sizes(), at::IntArrayRef({subject.inputs.size(0)})) << terms[i].name;
    EXPECT_TRUE(values[i].isfinite().all().item<bool>()) << terms[i].name;
  }
  // The same again.
  const auto again = objective->values(*make_trainee(subject.network), subject.batch());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(at::equal(values[i], again[i])) << terms[i].name;
}

TEST_P(ObjectiveRow, SamplesDoNotMix) {
  ObjectiveCase subject = subject_of(GetParam());
  const auto objective = objectives().make(GetParam().call);
  const auto all = objective->values(*make_trainee(subject.network), subject.batch());
  const std::vector<Term> terms = objective->terms(0.9);
  for (std::int64_t b = 0; b < subject.inputs.size(0); ++b) {
    TrainBatch one = subject.batch();
    for (at::Tensor* tensor : {&one.inputs, &one.labels, &one.sample_ids}) *tensor = tensor->slice(0, b, b + 1);
    const auto alone = objective->values(*make_trainee(subject.network), one);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (terms[i].name == "between" || terms[i].name == "balance") continue;  // of several samples by their definition
      EXPECT_TRUE(at::allclose(all[i].slice(0, b, b + 1), alone[i], 1e-8, 1e-10)) << terms[i].name;
    }
  }
}

TEST_P(ObjectiveRow, AStackGivesTheValuesAndGradientsOfItsNetworks) {
  const auto objective = objectives().make(GetParam().call);
  std::vector<ObjectiveCase> subjects;
  std::vector<Network> networks;
  for (const std::uint64_t seed : {1, 2, 3}) networks.push_back(subjects.emplace_back(subject_of(GetParam(), seed)).network);
  subjects[1].inputs = subjects[1].inputs.flip(0);  // their samples need not be the same
  Network together = stack(networks);
  together.require_grad(true);
  TrainBatch batch = subjects[0].batch();
  std::vector<at::Tensor> inputs, labels, ids;
  for (const ObjectiveCase& subject : subjects) {
    inputs.push_back(subject.inputs), labels.push_back(subject.labels), ids.push_back(subject.batch().sample_ids);
  }
  batch.inputs = at::cat(inputs), batch.labels = at::cat(labels), batch.sample_ids = at::cat(ids);
  const auto values = objective->values(*make_trainee(together), batch);
  const auto terms = objective->terms(0.9);
  const auto weight_of = [](const Network& network) { return std::get<op::Linear>(network.nodes()[1].operation).weight; };
  for (std::size_t i = 0; i < terms.size(); ++i) {
    for (std::size_t m = 0; m < 3; ++m) {
      const auto alone = objective->values(*make_trainee(subjects[m].network), subjects[m].batch());
      const auto from = static_cast<std::int64_t>(m) * 6;
      EXPECT_TRUE(at::allclose(values[i].slice(0, from, from + 6), alone[i], 1e-8, 1e-10)) << terms[i].name << " " << m;
      if (!alone[i].requires_grad()) continue;
      const at::Tensor own = torch::autograd::grad({alone[i].sum()}, {weight_of(subjects[m].network)})[0];
      const at::Tensor in_stack =
          torch::autograd::grad({values[i].slice(0, from, from + 6).sum()}, {weight_of(together)}, {}, true)[0];
      EXPECT_TRUE(at::allclose(in_stack[static_cast<std::int64_t>(m)], own, 1e-7, 1e-9)) << terms[i].name << " " << m;
      EXPECT_NEAR(in_stack.abs().sum().item<double>(), own.abs().sum().item<double>(),
                  1e-6 * (1 + own.abs().sum().item<double>()));
    }
  }
}

TEST_P(ObjectiveRow, ParameterGradientsAreThoseOfFiniteDifferences) {
  if (!GetParam().exact) GTEST_SKIP() << "it holds constant what depends on the parameters";
  ObjectiveCase subject = subject_of(GetParam());
  const auto objective = objectives().make(GetParam().call);
  const auto loss = [&] { return loss_of(*objective, subject.network, subject.batch()).total; };
  for (const Parameter& parameter : subject.network.parameters()) {
    const at::Tensor gradient = torch::autograd::grad({loss()}, {parameter.tensor})[0].contiguous().view(-1);
    const at::Tensor flat = parameter.tensor.detach().view(-1);
    for (std::int64_t i = 0; i < flat.numel(); i += 3) {
      const double before = flat[i].item<double>();
      flat[i] = before + 1e-6;
      const double above = loss().item<double>();
      flat[i] = before - 1e-6;
      const double below = loss().item<double>();
      flat[i] = before;
      EXPECT_NEAR(gradient[i].item<double>(), (above - below) / 2e-6, 2e-6 * (1 + std::abs(gradient[i].item<double>())))
          << parameter.name << " " << i;
    }
  }
}

// Counts the passes that go through the model: forwards, and gradients that come back to the inputs.
class CountingTrainee final : public Trainee {
 public:
  CountingTrainee(Network& network, bool modes_differ, bool hidden)
      : own_(make_trainee(network)), modes_differ_(modes_differ), hidden_(hidden) {}
  at::Tensor training_logits(const at::Tensor& inputs, std::uint64_t seed) override {
    ++forwards;
    return own_->training_logits(Gate::apply(inputs, this), seed);
  }
  at::Tensor logits(const at::Tensor& inputs) override {
    ++forwards;
    return own_->logits(Gate::apply(inputs, this));
  }
  bool modes_differ() const override { return modes_differ_; }
  const Network* network() const override { return hidden_ ? nullptr : own_->network(); }

  int forwards = 0, gradients = 0;

 private:
  struct Gate : torch::autograd::Function<Gate> {
    static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, CountingTrainee* counter) {
      context->saved_data["counter"] = reinterpret_cast<std::int64_t>(counter);
      return x.view_as(x);
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   torch::autograd::variable_list gradient) {
      ++reinterpret_cast<CountingTrainee*>(context->saved_data["counter"].toInt())->gradients;
      return {gradient[0], {}};
    }
  };

  std::unique_ptr<Trainee> own_;
  bool modes_differ_, hidden_;
};

TEST_P(ObjectiveRow, AStepMakesNoMorePassesThanItNeeds) {
  if (GetParam().forwards < 0) GTEST_SKIP() << "its own test counts";
  ObjectiveCase subject = subject_of(GetParam());
  const auto objective = objectives().make(GetParam().call);
  // What R2ET computes from the weights themselves (chain_gap.h) passes nothing that could be counted.
  const std::string name = parse_method_call(GetParam().call).name;
  const bool hidden = name == "r2et";
  CountingTrainee trainee(subject.network, false, hidden);
  const Loss loss = loss_of(*objective, trainee, subject.batch());
  EXPECT_EQ(trainee.forwards, GetParam().forwards);
  EXPECT_EQ(trainee.gradients, GetParam().gradients);
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : subject.network.parameters()) parameters.push_back(parameter.tensor);
  (void)torch::autograd::grad({loss.total}, parameters);
  EXPECT_EQ(trainee.gradients, GetParam().gradients) << "the parameters' gradients need none of the inputs'";

  // Where training and evaluation differ, the term that predicts has a pass of its own.
  CountingTrainee differing(subject.network, true, hidden);
  (void)loss_of(*objective, differing, subject.batch());
  const bool predicts_elsewhere = name == "ce" || name == "at" || name == "pair_hinge" || name == "convex" || name == "own_top";
  EXPECT_EQ(differing.forwards, GetParam().forwards + (predicts_elsewhere ? 0 : 1));
}

// Recipes with what they are made of. That every recipe can be made is in ce_test.cpp.
TEST(Recipes, AreMadeOfTheirObjectives) {
  const std::vector<std::array<std::string, 3>> rows = {
      {"vanilla", "ce", ""},
      {"wd(decay=0.01)", "ce", ""},
      {"sp(beta=5)", "ce", "softplus(beta=5)"},
      {"est_h(curvature=2)", "est_h(curvature=2)", ""},
      {"exact_h(activation=softplus)", "exact_h", "softplus(beta=0.5)"},
      {"ssr(curvature=3,activation=relu)", "ssr(curvature=3)", "relu"},
      {"at(step=0.5,top_k=3)", "at(top_k=3,step=0.5)", ""},
      {"cl(ratio=2)", "cl(ratio=2)", ""},
      {"r2et(gap=7,activation=softplus,beta=2)", "r2et(gap=7)", "softplus(beta=2)"},
      {"r2et_mm(count=3)", "r2et(pairs=next,count=3)", ""},
      {"r2et_no_h(gap=3,project=none)", "r2et(gap=3,curvature=0,project=none)", ""},
      {"r2et_mm_no_h(top_k=5)", "r2et(top_k=5,pairs=next,curvature=0)", ""},
      {"pair_hinge(radius=0.1)", "pair_hinge(radius=0.1)", ""},
  };
  for (const auto& [call, objective, activation] : rows) {
    const auto recipe = recipes().make(call);
    EXPECT_EQ(objectives().options(recipe->objective).canonical(), objective) << call;
    EXPECT_EQ(recipe->activation, activation) << call;
    EXPECT_EQ(recipes().options(recipe->name).canonical(), recipe->name) << call;
  }
  EXPECT_EQ(recipes().make("wd(decay=0.01)")->weight_decay, 0.01);
  EXPECT_ERROR(recipes().make("r2et_no_h(curvature=1)"), kUsage, "curvature");
}

}  // namespace
}  // namespace holdfast::train

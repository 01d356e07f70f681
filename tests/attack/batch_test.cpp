// What is done in batches on a device, against the plain loops over rows.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "../../src/attack/batch_step.h"
#include "../../src/attack/descend.h"
#include "../../src/attack/draw.h"
#include "../../src/attack/replay_queue.h"
#include "attack_case.h"
#include "holdfast/core/row_kernels.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::for_images;
using testing_support::mean_value;
using testing_support::mlp_model;
using testing_support::normal_tensor;

std::vector<ThreatModel> threats() {
  Schema schema = Schema::of(Layout::vector(12));
  std::vector<ThreatModel> result;
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    for (const double epsilon : {0.0, 0.3, 3.0}) {
      ThreatModel threat = ThreatModel::make({.norm = norm, .epsilons = {epsilon}}, schema);
      result.push_back(threat);
      threat.box = {-1.5, 1.5};
      threat.frozen.assign(12, false);
      threat.frozen[2] = threat.frozen[7] = true;
      result.push_back(threat);
      threat.non_negative = true;
      threat.blocks = 3;
      result.push_back(threat);
    }
  }
  return result;
}

// Of epsilon: what the loop over rows pulls a point in more when rounding left it outside.
constexpr double kPulledInMore = 1e-6;

at::Tensor clean_rows(at::ScalarType type) {
  at::Tensor clean = normal_tensor({40, 12}, 3).clamp(-1.5, 1.5).to(type);
  clean.slice(0, 0, 10).abs_();
  return clean;
}

TEST(BatchStep, ProjectsAsTheLoopOverRowsDoesAndNeverOutside) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor clean = clean_rows(type);
    for (const double scale : {0.01, 0.5, 20.0}) {
      const at::Tensor candidate = clean + scale * normal_tensor({40, 12}, 4).to(type);
      for (const ThreatModel& threat : threats()) {
        const at::Tensor rows = threat.project(candidate, clean), batch = project_batch(threat, candidate, clean);
        EXPECT_LE((rows - batch).abs().max().item<double>(), type == at::kFloat ? 5e-6 : kPulledInMore * threat.epsilon);
        EXPECT_LE(threat.distance(batch, clean).max().item<double>(), threat.epsilon);
      }
    }
  }
}

// Numbers of this size are so coarse in float32 that rounding alone leaves the ball.
TEST(BatchStep, LargeNumbersStayInsideASmallBall) {
  const at::Tensor clean = 1000 + 100 * normal_tensor({50, 12}, 5), candidate = clean + normal_tensor({50, 12}, 6);
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    const ThreatModel threat = ThreatModel::make({.norm = norm, .epsilons = {0.01}}, Schema::of(Layout::vector(12)));
    EXPECT_LE(threat.distance(project_batch(threat, candidate, clean), clean).max().item<double>(), 0.01);
  }
}

TEST(BatchStep, StepsAndNotesAreThoseOfTheLoopOverRows) {
  const at::Tensor clean = clean_rows(at::kDouble), points = clean + 0.1 * normal_tensor({40, 12}, 8).to(at::kDouble);
  at::Tensor gradient = normal_tensor({40, 12}, 9).to(at::kDouble);
  gradient[3].zero_();
  gradient[4][5] = std::numeric_limits<double>::quiet_NaN();
  gradient[6].fill_(std::numeric_limits<double>::infinity());
  for (const ThreatModel& threat : threats()) {
    const at::Tensor from = threat.project(points, clean);
    StepNotes notes;
    const at::Tensor rows = descend(threat, from, gradient, clean, 0.2, notes);
    const BatchStep batch = descend_batch(threat, from, gradient, clean, 0.2);
    EXPECT_LE((rows - batch.next).abs().max().item<double>(), kPulledInMore * threat.epsilon + 1e-15);
    const at::Tensor flags = batch.flags.contiguous();
    for (std::size_t row = 0; row < notes.projected.size(); ++row) {
      const int sum = (notes.projected[row] ? kProjected : 0) + (notes.broken[row] ? kBroken : 0) +
                      (notes.without_gradient[row] ? kWithoutGradient : 0);
      EXPECT_EQ(flags.data_ptr<double>()[row], sum) << "row " << row << " of " << to_json(threat).dump();
    }
  }
}

// What a GPU runs as one kernel: the same steps, points inside and flags.
TEST(BatchStep, AKernelStepsAsTensorOperationsDo) {
  Schema schema = Schema::of(Layout::vector(12));
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor clean = clean_rows(type);
    at::Tensor gradient = normal_tensor({40, 12}, 9).to(type);
    gradient[3].zero_();
    gradient[4][5] = std::numeric_limits<double>::quiet_NaN();
    gradient[6].fill_(std::numeric_limits<double>::infinity());
    for (const Norm norm : {Norm::kL2, Norm::kLinf}) {
      for (const double epsilon : {0.0, 0.3, 3.0}) {
        for (const bool boxed : {false, true}) {
          ThreatModel threat = ThreatModel::make({.norm = norm, .epsilons = {epsilon}}, schema);
          if (boxed) threat.box = {-1.4, 1.4};
          threat.non_negative = boxed;
          const at::Tensor from = threat.project(clean + 0.1 * normal_tensor({40, 12}, 8).to(type), clean);
          const BatchStep expected = descend_batch(threat, from, gradient, clean, 0.2);
          const RowKernelsOnCpu kernels;
          const BatchStep found = descend_batch(threat, from, gradient, clean, 0.2);
          const at::Tensor far = clean + 2 * normal_tensor({40, 12}, 5).to(type);
          EXPECT_LE((project_batch(threat, far, clean) - threat.project(far, clean)).abs().max().item<double>(),
                    type == at::kFloat ? 5e-6 : kPulledInMore * epsilon + 1e-15);
          EXPECT_LE((found.next - expected.next).abs().max().item<double>(), type == at::kFloat ? 1e-6 : 1e-14);
          EXPECT_LE(threat.distance(found.next, clean).max().item<double>(), epsilon);
          EXPECT_TRUE(at::equal(found.flags, expected.flags)) << to_json(threat).dump();
        }
      }
    }
  }
}

TEST(Cuda, KernelsStepAndDrawAsTheProcessorDoes) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  const at::Tensor clean = clean_rows(at::kFloat), ids = at::arange(100, 140, at::kLong);
  at::Tensor gradient = normal_tensor({40, 12}, 9);
  gradient[3].zero_();
  gradient[4][5] = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor there = clean.cuda();
  for (const Norm norm : {Norm::kL2, Norm::kLinf}) {
    const ThreatModel threat = ThreatModel::make({.norm = norm, .epsilons = {0.3}}, Schema::of(Layout::vector(12)));
    const BatchStep expected = descend_batch(threat, clean, gradient, clean, 0.4);
    const BatchStep found = descend_batch(threat, there, gradient.cuda(), there, 0.4);
    EXPECT_LE((found.next.cpu() - expected.next).abs().max().item<double>(), 1e-6);
    EXPECT_TRUE(at::equal(found.flags.cpu(), expected.flags));
    const at::Tensor moves = draw_moves_in_batches(threat, there, ids, 7, /*on_sphere=*/true).cpu();
    EXPECT_LE((moves - draw_moves(threat, clean, ids, 7, true)).abs().max().item<double>(), 1e-6);
  }
}

// Rows that are wider than the threads of a block.
TEST(BatchStep, AKernelStepsThroughWideRows) {
  const at::Tensor clean = normal_tensor({3, 1000}, 3).to(at::kDouble), gradient = normal_tensor({3, 1000}, 4).to(at::kDouble);
  for (const Norm norm : {Norm::kL2, Norm::kLinf}) {
    const ThreatModel threat = ThreatModel::make({.norm = norm, .epsilons = {0.1}}, Schema::of(Layout::vector(1000)));
    const BatchStep expected = descend_batch(threat, clean, gradient, clean, 0.3);
    const RowKernelsOnCpu kernels;
    const BatchStep found = descend_batch(threat, clean, gradient, clean, 0.3);
    EXPECT_LE((found.next - expected.next).abs().max().item<double>(), 1e-14);
    EXPECT_TRUE(at::equal(found.flags, expected.flags));
  }
}

TEST(DrawMoves, InBatchesAreThoseOfTheLoopOverRows) {
  const at::Tensor clean = clean_rows(at::kDouble), ids = at::arange(100, 140, at::kLong);
  for (ThreatModel threat : threats()) {
    threat.blocks = 1;
    for (const bool on_sphere : {false, true}) {
      const at::Tensor rows = draw_moves(threat, clean, ids, 7, on_sphere),
                       batch = draw_moves_in_batches(threat, clean, ids, 7, on_sphere);
      EXPECT_LE((rows - batch).abs().max().item<double>(), 1e-14 + 1e-13 * threat.epsilon) << to_json(threat).dump();
      EXPECT_GE(batch.abs().max().item<double>(), 0.1 * threat.epsilon);
      const RowKernelsOnCpu kernels;
      const at::Tensor kernel = draw_moves_in_batches(threat, clean, ids, 7, on_sphere);
      EXPECT_LE((rows - kernel).abs().max().item<double>(), 1e-14 + 1e-13 * threat.epsilon) << to_json(threat).dump();
    }
  }
}

TEST(ReplayQueue, WorksInOrderAndKnowsWhenItIsFull) {
  ReplayQueue queue;
  std::vector<double> seen;
  queue.add(at::full({2}, 1.5, at::kDouble), [&](auto numbers) { seen.insert(seen.end(), numbers.begin(), numbers.end()); });
  queue.add({}, [&](auto numbers) { seen.push_back(static_cast<double>(numbers.size())); });
  queue.add(at::full({1, 1}, 7.0, at::kDouble), [&](auto numbers) { seen.push_back(numbers[0]); });
  EXPECT_TRUE(seen.empty());
  EXPECT_FALSE(queue.is_full());
  queue.run();
  EXPECT_EQ(seen, (std::vector<double>{1.5, 1.5, 0, 7}));
  EXPECT_TRUE(queue.is_empty());
  queue.add(
      {}, [](auto) {}, std::int64_t{1} << 40);
  EXPECT_TRUE(queue.is_full());
}

// Requests that a GPU would get: operations on tensors but those that only look at them or make room, and kernels.
std::int64_t count_requests(const AttackTask& task, const std::string& attack) {
  static thread_local std::int64_t count;
  count = 0;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& call) {
        const std::string name = call.name();
        for (const char* free : {"empty",   "view",      "slice",     "narrow",     "select",        "expand",    "detach",
                                 "reshape", "unsqueeze", "squeeze",   "as_strided", "alias",         "flatten",   "resize",
                                 "t",       "transpose", "unflatten", "empty_like", "empty_strided", "contiguous"}) {
          if (name == std::string("aten::") + free) return std::unique_ptr<at::ObserverContext>();
        }
        ++count;
        return std::unique_ptr<at::ObserverContext>();
      }).scopes({at::RecordScope::FUNCTION}));
  (void)attacks().make(attack)->run(task);
  at::removeCallback(handle);
  return count;
}

// An iteration is a handful of requests to a GPU with kernels, and more than ten times as many without.
TEST(RowKernels, AnIterationOfErIsFewRequests) {
  AttackCase test;
  test.model = mlp_model({.type = at::kDouble});  // in single precision the CPU has passes of its own
  test.inputs = normal_tensor({40, 12}, 60).to(at::kDouble);
  test.ids = at::arange(40, at::kLong);
  AttackTask task = test.task();
  task.backend = Backend::kBatch;
  const auto an_iteration = [&] { return (count_requests(task, "er(steps=90)") - count_requests(task, "er(steps=50)")) / 40; };
  const std::int64_t without = an_iteration();
  const RowKernelsOnCpu kernels;
  const std::int64_t with = an_iteration();
  RecordProperty("without", std::to_string(without));
  RecordProperty("with", std::to_string(with));
  EXPECT_LT(with, 20);
  EXPECT_GT(without, 10 * with);
}

// On the CPU bf16 is there too, for tests: other directions, and values that are those of float32.
TEST(Precision, ChangesDirectionsAndNotWhatIsJudged) {
  AttackCase test;
  test.inputs = normal_tensor({40, 12}, 60);
  test.ids = at::arange(40, at::kLong);
  Network network = *mlp_model()->network();
  network.add("same", op::Multiply{});  // so that autograd runs it, which knows of precisions
  test.model = make_model(network);
  for (const char* call : {"er(steps=30)", "er(steps=30,surrogate=softplus)", "gauntlet(effort=light)"}) {
    SCOPED_TRACE(call);
    const auto attack = attacks().make(call);
    AttackTask task = test.task();
    const AttackResult full = attack->run(task);
    task.precision = Precision::kBf16;
    const AttackResult lower = attack->run(task);
    EXPECT_FALSE(at::equal(full.perturbed, lower.perturbed));
    EXPECT_NEAR(mean_value(full), mean_value(lower), 0.03);
    const at::Tensor again =
        task.explainer.attribute({.model = task.model, .samples = task.samples.moved_to(lower.perturbed)}).maps;
    EXPECT_TRUE(at::equal(again, lower.moved.maps));
    EXPECT_EQ(again.scalar_type(), at::kFloat);
  }
}

struct Case {
  std::string attack, metric, explainer = "saliency";
  Norm norm = Norm::kL2;
  Select select = Select::kWorst;
  bool image = false;
};

class Backends : public testing::TestWithParam<Case> {};

void compare(const AttackResult& rows, const AttackResult& batch);

// In double both round so little that they walk along the same points.
TEST_P(Backends, FindTheSamePointsAndCountTheSame) {
  const Case& given = GetParam();
  AttackCase test;
  test.model = mlp_model({.type = at::kDouble});
  test.inputs = normal_tensor({40, 12}, 60).to(at::kDouble);
  test.ids = at::arange(40, at::kLong);
  if (given.image) {
    test.schema = Schema::of(Layout::grid(1, 3, 4));
    test.model = make_model(for_images(*test.model->network()));
    test.inputs = test.inputs.view({40, 1, 3, 4});
  }
  test.threat = ThreatModel::make({.norm = given.norm, .epsilons = {given.norm == Norm::kL2 ? 0.8 : 0.3}}, test.schema);
  test.explainer = given.explainer;
  test.metric = given.metric;
  test.select = given.select;
  test.trace = true;
  AttackTask task = test.task();
  const auto attack = attacks().make(given.attack);
  task.backend = Backend::kRows;
  const AttackResult rows = attack->run(task);
  task.backend = Backend::kBatch;
  const AttackResult batch = attack->run(task);
  compare(rows, batch);
  SCOPED_TRACE("with the kernels of a GPU");
  const RowKernelsOnCpu kernels;
  compare(rows, attack->run(task));
}

void compare(const AttackResult& rows, const AttackResult& batch) {
  ASSERT_EQ(rows.samples.size(), batch.samples.size());
  std::int64_t moved = 0;
  for (std::size_t i = 0; i < rows.samples.size(); ++i) {
    SCOPED_TRACE(i);
    const SampleOutcome &a = rows.samples[i], &b = batch.samples[i];
    EXPECT_DOUBLE_EQ(a.value, b.value);
    EXPECT_EQ(a.iteration, b.iteration);
    EXPECT_EQ(a.first_swap, b.first_swap);
    EXPECT_EQ(a.label_flips, b.label_flips);
    EXPECT_EQ(a.projections, b.projections);
    EXPECT_EQ(a.followed, b.followed);
    EXPECT_EQ(a.no_gradient, b.no_gradient);
    EXPECT_EQ(a.evaluations, b.evaluations);
    EXPECT_EQ(a.component, b.component);
    EXPECT_EQ(a.trace, b.trace);
    EXPECT_EQ(a.trace_evaluations, b.trace_evaluations);
    if (a.value < 1) ++moved;
  }
  EXPECT_GT(moved, 0) << "an attack that moves nothing compares nothing";
  EXPECT_LE((rows.perturbed - batch.perturbed).abs().max().item<double>(), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(
    Attacks, Backends,
    testing::Values(Case{"er(steps=50)", "top_k(k=4)"}, Case{"er(steps=50)", "top_k(k=4)", "saliency", Norm::kL2, Select::kLast},
                    Case{"er(steps=40)", "top_k(k=4)", "input_x_gradient", Norm::kLinf},
                    Case{"er(steps=40,schedule=cosine,momentum=0.5)", "lens_precision(k=3,w=1)", "saliency", Norm::kL1},
                    Case{"er(steps=40,surrogate=softplus)", "lens_recall(k=3,w=1)"},
                    Case{"er(steps=40)", "lens_precision(k=3,w=1)", "saliency", Norm::kL2, Select::kWorst, true},
                    Case{"er(steps=40)", "lens_recall(k=3,w=1)", "integrated_gradients(steps=5)", Norm::kLinf, Select::kWorst,
                         true},
                    Case{"top_t(steps=40)", "top_k(k=4)"}, Case{"mse(steps=40)", "top_k(k=4)"},
                    Case{"er(steps=20,k=4)", "spearman"}, Case{"random(samples=100)", "top_k(k=4)"},
                    Case{"random(samples=100,from=sphere)", "lens_precision(k=3,w=1)", "saliency", Norm::kL1},
                    Case{"gauntlet(effort=light)", "top_k(k=4)"},
                    Case{"gauntlet(effort=light)", "lens_precision(k=3,w=1)", "saliency", Norm::kLinf, Select::kWorst, true}));

}  // namespace
}  // namespace holdfast::attack

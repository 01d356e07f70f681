#include "../../src/attack/ledger.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "attack_case.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;

// Explanations made by hand: the ledger reads maps and logits and asks the model only at the end.
struct Book {
  AttackCase test;
  std::optional<AttackTask> task;
  std::unique_ptr<Ledger> ledger;

  explicit Book(std::int64_t samples = 3, Select select = Select::kWorst, std::optional<double> tolerance = {}) {
    test.inputs = at::zeros({samples, 12});
    test.ids = at::arange(samples, at::kLong);
    test.metric = "top_k(k=2)";
    test.trace = true;
    test.threat.tolerance = tolerance;
    task.emplace(test.task());
    ledger = std::make_unique<Ledger>(*task, explanation(std::vector<double>(static_cast<std::size_t>(samples), 1.0)), select);
  }

  // Maps whose top 2 share this much with the clean ones, {0, 1}; logits (5, 0), or flipped where asked.
  static Explanation explanation(const std::vector<double>& shares, const std::vector<int>& flipped = {}) {
    const auto rows = static_cast<std::int64_t>(shares.size());
    at::Tensor maps = at::zeros({rows, 12}), logits = torch::tensor({5.0f, 0.0f}).repeat({rows, 1});
    for (std::int64_t b = 0; b < rows; ++b) {
      const auto kept = static_cast<std::int64_t>(2 * shares[static_cast<std::size_t>(b)]);
      for (std::int64_t i = 0; i < 2; ++i) maps[b][i < kept ? i : 5 + i] = 1.0f;
    }
    for (const int row : flipped) logits[row] = torch::tensor({0.0f, 5.0f});
    return {.maps = maps, .log_scale = at::zeros({rows}), .logits = logits};
  }
  static at::Tensor points(const std::vector<float>& values) {
    return torch::tensor(at::ArrayRef<float>(values)).unsqueeze(1).expand({static_cast<std::int64_t>(values.size()), 12}).clone();
  }
};

TEST(Ledger, KeepsTheWorstOfSeveralRowsOfOneSample) {
  Book book;
  book.ledger->begin_component("first");
  book.ledger->charge(3, {0, 0, 2});
  book.ledger->record(Book::points({1, 2, 3}), Book::explanation({0.5, 0.5, 1}), {0, 0, 2});
  EXPECT_EQ(book.ledger->best_value(0), 0.5);
  EXPECT_EQ(book.ledger->best_points()[0][0].item<float>(), 1) << "the first of equals";
  EXPECT_EQ(book.ledger->best_points()[2][0].item<float>(), 0) << "no better than clean";

  book.ledger->begin_component("second");
  book.ledger->charge(2, {0, 1, 0, 1});
  book.ledger->record(Book::points({4, 5, 6, 7}), Book::explanation({0.5, 0.5, 0, 0}, {3}), {0, 1, 0, 1});
  EXPECT_EQ(book.ledger->best_value(0), 0);
  EXPECT_EQ(book.ledger->best_points()[0][0].item<float>(), 6) << "the worse of two in one record";
  EXPECT_EQ(book.ledger->best_points()[1][0].item<float>(), 5) << "the other row had flipped";
  EXPECT_TRUE(book.ledger->done(0)) << "nothing is left to break";
  EXPECT_EQ(book.ledger->running(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_FALSE(book.ledger->finished({0, 1}));
  EXPECT_TRUE(book.ledger->finished({0, 0}));

  const AttackResult result = book.ledger->finish();
  EXPECT_EQ(result.samples[0].evaluations, 2 * 3 + 2 * 2);
  EXPECT_EQ(result.samples[1].evaluations, 2 * 2);
  EXPECT_EQ(result.samples[2].evaluations, 3);
  EXPECT_EQ(result.samples[1].label_flips, 1);
  EXPECT_EQ(result.samples[0].component, "second");
  EXPECT_EQ(result.samples[1].component, "second");
  EXPECT_EQ(result.samples[2].component, "");
  ASSERT_EQ(result.components.size(), 2U);
  EXPECT_EQ(result.components[0].name, "first");
  EXPECT_EQ(result.components[0].evaluations, 9);
  EXPECT_EQ(result.components[1].evaluations, 8);
  EXPECT_GE(result.components[0].seconds, 0);
}

// What `converged` rests on: a restart sees nothing of the one before it, and the gap is that of the worse one to the best value.
TEST(Ledger, RestartsAreIndependentAndTheGapIsTheWorseOnes) {
  Book book(4);
  EXPECT_TRUE(std::isnan(book.ledger->restart_gap(0))) << "there was none";
  book.ledger->begin_restart();
  book.ledger->record(Book::points({1, 1, 1, 1}), Book::explanation({0.5, 1, 0, 0.5}));
  EXPECT_EQ(book.ledger->best_value(0), 0.5);
  book.ledger->begin_restart();
  EXPECT_EQ(book.ledger->best_value(0), 1) << "the second one starts from nothing";
  EXPECT_EQ(book.ledger->best_points()[0][0].item<float>(), 0);
  book.ledger->record(Book::points({2, 2, 2, 2}), Book::explanation({1, 0.5, 0, 0.5}));
  EXPECT_EQ(book.ledger->best_value(1), 0.5);
  book.ledger->join_restarts();
  EXPECT_EQ(book.ledger->best_value(0), 0.5) << "of both";
  EXPECT_EQ(book.ledger->best_points()[0][0].item<float>(), 1);
  EXPECT_EQ(book.ledger->restart_gap(0), 0.5) << "the second one found nothing";
  EXPECT_EQ(book.ledger->restart_gap(1), 0.5) << "the first one found nothing";
  EXPECT_EQ(book.ledger->restart_gap(2), 0) << "broken completely";
  EXPECT_EQ(book.ledger->restart_gap(3), 0) << "they agree";
  book.ledger->leave_settled();
  EXPECT_TRUE(book.ledger->finished()) << "nothing more was found since";
  EXPECT_EQ(book.ledger->restart_gap(0), 0.5) << "leaving does not make them agree";
}

TEST(Ledger, TwoSearchesProveWhatTheBetterOneProves) {
  Book book(2);
  book.ledger->record(Book::points({1, 1}), Book::explanation({0.5, 0.5}));
  book.ledger->note_proof(0, 0.25, 10);
  book.ledger->note_proof(0, 0.1, 5);
  book.ledger->note_proof(1, 0.25, 10);
  book.ledger->note_proof(1, 0.5, 7);
  EXPECT_TRUE(book.ledger->done(1) && !book.ledger->done(0)) << "proven where it is as bad as what was found";
  const AttackResult result = book.ledger->finish();
  EXPECT_EQ(result.samples[0].proven, 0.25);
  EXPECT_EQ(result.samples[0].nodes, 15);
  EXPECT_EQ(result.samples[1].proven, 0.5);
}

TEST(Ledger, ValuesAreOfTheRowsRecordedLast) {
  Book book;
  book.ledger->record(Book::points({1, 2, 3, 4}), Book::explanation({0.5, 1, 0.5, 0}, {2}), {0, 0, 1, 1});
  EXPECT_EQ(book.ledger->values()[0], 0.5);
  EXPECT_EQ(book.ledger->values()[1], 1);
  EXPECT_TRUE(std::isnan(book.ledger->values()[2])) << "flipped";
  EXPECT_EQ(book.ledger->values()[3], 0);
}

TEST(Ledger, DropsRowsOfSamplesThatAreDone) {
  Book book;
  Ledger::Owners owners{0, 1, 2, 0, 1, 2};
  EXPECT_FALSE(book.ledger->shrink(owners));
  book.ledger->record(at::zeros({6, 12}), Book::explanation({1, 0, 1, 1, 1, 1}), owners);
  const auto kept = book.ledger->shrink(owners);
  ASSERT_TRUE(kept);
  EXPECT_TRUE(at::equal(*kept, torch::tensor({0L, 2L, 3L, 5L}, at::kLong)));
  EXPECT_EQ(owners, (Ledger::Owners{0, 2, 0, 2}));
}

TEST(Ledger, TracesHaveThePointsOfAllSamplesAndTheirEvaluations) {
  Book book;
  book.ledger->charge(1);
  book.ledger->record(Book::points({1, 1}), Book::explanation({0.5, 1}), {0, 1});
  book.ledger->charge(4, {0});
  book.ledger->record(Book::points({2}), Book::explanation({0}), {0});
  book.ledger->charge(4);
  book.ledger->record(Book::points({2}), Book::explanation({0.5}), {2});
  const AttackResult result = book.ledger->finish();
  EXPECT_EQ(result.samples[0].trace, (std::vector<double>{0.5, 0, 0}));
  EXPECT_EQ(result.samples[0].trace_evaluations, (std::vector<std::int64_t>{1, 5, 5})) << "a sample that is done pays no more";
  EXPECT_EQ(result.samples[1].trace, (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(result.samples[2].trace, (std::vector<double>{1, 1, 0.5}));
  EXPECT_EQ(result.samples[2].trace_evaluations, (std::vector<std::int64_t>{1, 1, 5}));
}

TEST(Ledger, CountsMapsAndGradientsThatAreNotFinite) {
  Book book(2);
  Explanation broken = Book::explanation({0, 0});
  broken.maps[0][3] = std::numeric_limits<float>::quiet_NaN();
  book.ledger->record(Book::points({1, 1}), broken);
  EXPECT_EQ(book.ledger->best_value(0), 1) << "never taken";
  EXPECT_EQ(book.ledger->best_value(1), 0);
  const std::vector<char> rows{1, 1};
  book.ledger->count_non_finite(rows, {0, 0});
  book.ledger->count_projections(rows, {0, 1});
  const AttackResult result = book.ledger->finish();
  EXPECT_EQ(result.samples[0].non_finite, 3);
  EXPECT_EQ(result.samples[0].projections, 1);
  EXPECT_EQ(result.samples[1].projections, 0) << "it was done";
}

TEST(Ledger, AMendedIterateIsOneIterate) {
  Book book(2);
  book.ledger->record(Book::points({1, 1}), Book::explanation({0.5, 0.5}, {0, 1}), {0, 1});
  book.ledger->record_again(Book::points({2, 2}), Book::explanation({0.5, 0.5}, {1}), {0, 1});
  const AttackResult result = book.ledger->finish();
  EXPECT_EQ(result.samples[0].label_flips, 1);
  EXPECT_EQ(result.samples[1].label_flips, 1) << "it flipped before and after it was mended";
  EXPECT_EQ(result.samples[0].iteration, 1);
  EXPECT_EQ(result.samples[0].trace.size(), 1U);
}

TEST(Ledger, AStartIsNoIteration) {
  Book book(2);
  book.ledger->begin_component("start");
  book.ledger->record_start(Book::points({1, 1}), Book::explanation({0.5, 1}));
  book.ledger->begin_component("walk");
  book.ledger->record(Book::points({2, 2}), Book::explanation({0.5, 0.5}));
  EXPECT_EQ(book.ledger->best_points()[0][0].item<float>(), 1) << "the walk found no worse";
  const AttackResult result = book.ledger->finish();
  EXPECT_EQ(result.samples[0].iteration, 0);
  EXPECT_EQ(result.samples[0].component, "start");
  EXPECT_EQ(result.samples[0].first_swap, 1) << "of the walk";
  EXPECT_EQ(result.samples[1].component, "walk");
  EXPECT_EQ(result.samples[0].trace.size(), 1U);
}

TEST(Ledger, CountsStepsThatFoundNoGradient) {
  Book book(3);
  book.ledger->count_steps(std::vector<char>{1, 0, 1}, {0, 0, 1});
  const AttackResult result = book.ledger->finish();
  EXPECT_EQ(result.samples[0].no_gradient, 1);
  EXPECT_EQ(result.samples[0].followed, 1);
  EXPECT_EQ(result.samples[1].no_gradient, 1);
  EXPECT_EQ(result.samples[2].no_gradient + result.samples[2].followed, 0);
}

// Ten records of a sample's ten evaluations: what fell in the last two is late. Others' work does not count for it.
TEST(Ledger, LateIsTheLastFifthOfASamplesOwnWork) {
  for (const int falls : {8, 9}) {
    Book book(2);
    book.ledger->keep_history();
    for (int i = 1; i <= 10; ++i) {
      book.ledger->charge(1, {0});
      book.ledger->record(Book::points({1}), Book::explanation({i >= falls ? 0.5 : 1}), {0});
    }
    book.ledger->charge(1000, {1});
    book.ledger->record(Book::points({1}), Book::explanation({0}), {1});
    const double at_the_end = book.ledger->best_value(0);
    EXPECT_EQ(at_the_end, 0.5);
    EXPECT_EQ(book.ledger->late_gain(0), falls == 9 ? 0.5 : 0) << falls;
    EXPECT_EQ(book.ledger->late_gain(1), 0) << "at the floor nothing more is to be found";
  }
}

// Far more records than milestones are kept.
TEST(Ledger, TheWayIsThinnedOut) {
  for (const int falls : {780, 820}) {
    Book book(1);
    book.ledger->keep_history();
    for (int i = 1; i <= 1000; ++i) {
      book.ledger->charge(1, {0});
      book.ledger->record(Book::points({1}), Book::explanation({i >= falls ? 0.5 : 1}), {0});
    }
    EXPECT_EQ(book.ledger->late_gain(0), falls == 820 ? 0.5 : 0);
  }
}

TEST(Ledger, WithoutAWayThereIsNoLateGain) {
  Book book(1);
  book.ledger->record(Book::points({1}), Book::explanation({0.5}), {0});
  EXPECT_TRUE(std::isnan(book.ledger->late_gain(0)));
}

TEST(Ledger, AToleranceHoldsTheProbabilityToo) {
  Book book(1, Select::kWorst, 0.1);
  const auto with_logit = [](float logit) {
    Explanation explanation = Book::explanation({0.5});
    explanation.logits[0][0] = logit;
    return explanation;
  };
  book.ledger->record(Book::points({1}), with_logit(1));  // p = .73, clean .993
  EXPECT_EQ(book.ledger->best_value(0), 1);
  EXPECT_TRUE(std::isnan(book.ledger->values()[0]));
  book.ledger->record(Book::points({1}), with_logit(2.1f));  // p = .891
  EXPECT_EQ(book.ledger->best_value(0), 1);
  book.ledger->record(Book::points({1}), with_logit(2.3f));  // p = .909
  EXPECT_EQ(book.ledger->best_value(0), 0.5);
}

TEST(Ledger, ReportsTheMarginsUsedUp) {
  AttackCase test;
  test.threat.epsilon = 2;
  const AttackResult result = test.run("er(steps=20)");
  const auto margin = [&](const at::Tensor& inputs, std::int64_t b) {
    const at::Tensor top = std::get<0>(test.model->logits(inputs)[b].topk(2));
    return (top[0] - top[1]).item<double>();
  };
  for (std::int64_t b = 0; b < test.inputs.size(0); ++b) {
    const SampleOutcome& outcome = result.samples[static_cast<std::size_t>(b)];
    EXPECT_NEAR(outcome.clean_margin, margin(test.inputs, b), 1e-5);
    EXPECT_NEAR(outcome.margin, margin(result.perturbed, b), 1e-5);
    EXPECT_EQ(outcome.component, "");
  }
  EXPECT_TRUE(result.components.empty());
}

}  // namespace
}  // namespace holdfast::attack

// Cells: tiles side by side, stored and continued, on any device.
#include "holdfast/experiment/cell.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "holdfast/core/files.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/cell_facts.h"
#include "holdfast/experiment/grid.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast::experiment {
namespace {

constexpr std::int64_t kSamples = 23;

struct Setting {
  explicit Setting(at::Device device = at::kCPU)
      : model(make_model(architectures().make("mlp(inputs=12,hidden=16,classes=3)")->build(1).to(device))),
        explainer(explainers().make("saliency")),
        attack(attacks().make("er(steps=15)")),
        metric(metrics().make("top_k(k=3)")),
        schema(Schema::of(Layout::vector(12))),
        threat(ThreatModel::make({.epsilons = {0.4}, .box = std::pair(0.0, 1.0)}, schema)),
        ids(at::arange(kSamples, at::kLong)),
        inputs(random_uniform({12}, ids, 5, "cell test")) {}

  Samples samples() const { return {.inputs = inputs, .ids = ids, .schema = share_schema(schema)}; }
  AttackTask task() const {
    return {.model = *model, .explainer = *explainer, .metric = *metric, .threat = threat, .samples = samples(), .seed = 3};
  }
  CellResult run(const TileOptions& tiles, const TileStore* store = nullptr) const {
    check_cell(*attack, task());
    return run_cell(*attack, task(), tiles, /*progress=*/nullptr, store);
  }

  std::unique_ptr<Model> model;
  std::unique_ptr<Explainer> explainer;
  std::unique_ptr<Attack> attack;
  std::unique_ptr<Metric> metric;
  Schema schema;
  ThreatModel threat;
  at::Tensor ids, inputs;
};

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

TEST(Cell, IsTheSameBytesForAnyNumberOfThreads) {
  const Setting setting;
  const CellResult one = setting.run({.size = 4, .threads = 1});
  const CellResult two = setting.run({.size = 4, .threads = 2});
  EXPECT_TRUE(same_bytes(one.perturbed, two.perturbed));
  EXPECT_TRUE(same_bytes(one.perturbed_maps, two.perturbed_maps));
  EXPECT_GT((one.perturbed - setting.inputs).abs().max().item<double>(), 0.01) << "the attack did nothing";
}

TEST(Cell, AgreesBetweenTileSizesUpToRounding) {
  const Setting setting;
  const CellResult whole = setting.run({.size = kSamples, .threads = 1});
  for (const std::int64_t size : {1, 7}) {
    const CellResult tiled = setting.run({.size = size, .threads = 1});
    EXPECT_TRUE(at::allclose(tiled.original_maps, whole.original_maps, 1e-5, 1e-5));
    EXPECT_EQ(tiled.samples.size(), whole.samples.size());
  }
}

// An attack that notes how many samples it gets at once.
class Noting final : public Attack {
 public:
  explicit Noting(std::unique_ptr<Attack> attack) : Attack(attack->name()), attack_(std::move(attack)) {}
  AttackResult run(const AttackTask& task) const override {
    sizes_.push_back(task.samples.count());
    return attack_->run(task);
  }
  void check(const AttackTask& task) const override { attack_->check(task); }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }

 private:
  std::unique_ptr<Attack> attack_;
  mutable std::vector<std::int64_t> sizes_;
};

// A row's activations are 12 + 2 x 4096 + 3 floats, and a pullback holds 2.5 times those: 3270 rows in 256 MiB, so the paths of
// two samples. Each by itself must give the same.
TEST(Cell, AttacksAsManySamplesAtOnceAsHoldTheirGraphs) {
  Setting setting;
  setting.model = make_model(architectures().make("mlp(inputs=12,hidden=4096,classes=3)")->build(1));
  setting.explainer = explainers().make("integrated_gradients(steps=1600)");
  setting.attack = std::make_unique<Noting>(attacks().make("er(steps=1,step_size=0.2)"));
  setting.ids = setting.ids.slice(0, 0, 3);
  setting.inputs = setting.inputs.slice(0, 0, 3);
  const CellResult tile = setting.run({.size = 3, .threads = 1});
  EXPECT_EQ(dynamic_cast<const Noting&>(*setting.attack).sizes(), (std::vector<std::int64_t>{2, 1}));
  const CellResult alone = setting.run({.size = 1, .threads = 1});
  EXPECT_TRUE(at::allclose(tile.perturbed, alone.perturbed, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(tile.perturbed_maps, alone.perturbed_maps, 1e-3, 1e-6));
  EXPECT_GT((tile.perturbed - setting.inputs).abs().max().item<double>(), 0.01) << "the attack did nothing";
  EXPECT_EQ(tile.samples.size(), 3U);
}

TEST(Cell, StoredTilesAreUsedAgainAndRoundTrip) {
  const Setting setting;
  const TempFolder folder;
  const TileStore store(folder.path() + "/tiles");
  const CellResult first = setting.run({.size = 8, .threads = 1}, &store);
  EXPECT_TRUE(store.has(0) && store.has(2));
  // Marks a stored tile: if the cell were computed again, the mark would be gone.
  CellResult marked = store.load(1);
  marked.samples[0].evaluations = 123456;
  store.save(1, marked);
  const CellResult second = setting.run({.size = 8, .threads = 2}, &store);
  EXPECT_EQ(second.samples[8].evaluations, 123456);
  EXPECT_TRUE(same_bytes(first.perturbed, second.perturbed));
  for (std::size_t i = 0; i < first.samples.size(); ++i) EXPECT_EQ(first.samples[i].value, second.samples[i].value);
}

// Values, margins and late gains may be undefined; JSON has no word for that.
TEST(Cell, UndefinedNumbersRoundTrip) {
  const Setting setting;
  const TempFolder folder;
  const TileStore store(folder.path());
  CellResult result = setting.run({.size = kSamples, .threads = 1});
  result.samples[0].value = result.samples[0].late_gain = std::nan("");
  result.samples[1].late_gain = 0.25;
  result.samples[1].no_gradient = 3;
  result.samples[1].followed = 4;
  store.save(0, result);
  const CellResult loaded = store.load(0);
  EXPECT_TRUE(std::isnan(loaded.samples[0].value) && std::isnan(loaded.samples[0].late_gain));
  EXPECT_EQ(loaded.samples[1].late_gain, 0.25);
  EXPECT_TRUE(std::isnan(loaded.samples[1].restart_gap));
  EXPECT_EQ(loaded.samples[1].no_gradient, 3);
  EXPECT_EQ(loaded.samples[1].followed, 4);
}

TEST(Cell, SaysWhatTheVerifierFound) {
  const Setting setting;
  const CellResult result = setting.run({.size = 4, .threads = 1});
  const at::Tensor sizes = (result.perturbed - setting.inputs).to(at::kDouble).norm(2, 1);
  EXPECT_NEAR(result.verified.largest_distance, sizes.max().item<double>(), 1e-6);
  EXPECT_EQ(result.verified.moved, (sizes > 0).sum().item<std::int64_t>());
  EXPECT_GE(result.verified.smallest_margin, kVerifiedMargin);
  EXPECT_TRUE(result.verified.in_double);
}

CellResult with_restart_gaps(const std::vector<double>& gaps) {
  CellResult result;
  for (const double gap : gaps) result.samples.push_back({.value = 10, .late_gain = 2 * gap, .restart_gap = gap});
  result.components = {{.name = "one"}};
  return result;
}

TEST(CellFacts, AnEnsembleHasConvergedWhereItsRestartsAgree) {
  const double none = std::nan("");
  const auto top_k = metrics().make("top_k(k=3)"), kendall = metrics().make("kendall"), l2 = metrics().make("l2");
  EXPECT_DOUBLE_EQ(mean_restart_gap(with_restart_gaps({0.02, none, 0})), 0.01) << "of the samples that have one";
  EXPECT_DOUBLE_EQ(mean_late_gain(with_restart_gaps({0.02, none, 0})), 0.02);
  EXPECT_TRUE(has_converged(with_restart_gaps({0.01, none, 0}), *top_k)) << ".005 of the range";
  EXPECT_FALSE(has_converged(with_restart_gaps({0.011, none, 0}), *top_k));
  EXPECT_TRUE(has_converged(with_restart_gaps({0.02, none, 0}), *kendall)) << "from -1 to 1";
  EXPECT_TRUE(has_converged(with_restart_gaps({0.1, 0}), *l2)) << "no end: of the mean value";
  EXPECT_FALSE(has_converged(with_restart_gaps({0.11, 0}), *l2));
  const Json undefined = ensemble_json(with_restart_gaps({none}), *top_k);
  EXPECT_TRUE(undefined.at("late_gain").is_null() && undefined.at("restart_gap").is_null() &&
              undefined.at("converged").is_null());
}

TEST(CellFacts, SamplesWithoutAGradientAreThoseThatNeverHadOne) {
  CellResult result;
  result.samples = {{.followed = 3, .no_gradient = 2}, {.no_gradient = 5}, {.non_finite = 2, .no_gradient = 5}, {}};
  EXPECT_EQ(no_gradient_json(result), (Json{{"samples", 2}, {"not_finite", 1}}));
}

Cell cell_of(Setting& setting) {
  return {.subject = {"data", "net", std::move(setting.model), setting.samples()},
          .explainer = std::move(setting.explainer),
          .attack = std::move(setting.attack),
          .metric = std::move(setting.metric),
          .threat = setting.threat,
          .seed = 3};
}

TEST(RandomPoints, AreTheRandomAttackOfTheirCall) {
  Setting setting;
  Cell cell = cell_of(setting);
  const std::optional<RandomPoints> random = Grid({.tiles = {.size = 8, .threads = 1}}).run(cell).random;
  ASSERT_TRUE(random);
  EXPECT_EQ(random->attack, attacks().options("random(samples=300,from=sphere)").canonical());
  cell.attack = attacks().make(random->attack);
  const Row expected = Grid({.tiles = {.size = 8, .threads = 1}}).run(cell);
  const double mean = expected.assessment.value.mean;
  EXPECT_NEAR(random->value.mean, mean, 1e-12);
  EXPECT_EQ(random->samples, 300);
  EXPECT_TRUE(random->beat(mean + 0.01, Direction::kHigherIsMoreAlike));
  EXPECT_FALSE(random->beat(mean - 0.01, Direction::kHigherIsMoreAlike));
  EXPECT_TRUE(random->beat(mean - 0.01, Direction::kLowerIsMoreAlike));
  EXPECT_FALSE(random->beat(std::nan(""), Direction::kHigherIsMoreAlike));
  EXPECT_FALSE(expected.random) << "beside random points nothing runs";
}

TEST(RandomPoints, CostATenthWhereAnExplanationIsCostly) {
  Setting setting;
  setting.explainer = explainers().make("integrated_gradients(steps=20)");
  const Cell cell = cell_of(setting);
  CellResult found;
  for (const auto& [spent, points] : {std::pair(100, 10), std::pair(20 * 10 * 40, 40), std::pair(100'000'000, 300)}) {
    found.samples = {{.evaluations = spent}, {.evaluations = 1}};
    EXPECT_EQ(random_points_call(cell, found), fmt::format("random(samples={},from=sphere)", points));
  }
}

TEST(Grid, MakesOneCellOfAMethodThatIsNamedTwiceAndOneForEachEpsilon) {
  Setting setting;
  const Subject subject{"data", "net", std::move(setting.model), setting.samples()};
  const std::vector<Cell> cells = make_cells(
      subject, {.attacks = {"er(steps=3)"}, .metrics = {"top_k(k=8)", "top_k"}, .threat = {.epsilons = {0.1, 0.3}}}, 0);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_FALSE(cells[0].starts_from_previous);
  EXPECT_TRUE(cells[1].starts_from_previous);
  EXPECT_EQ(cells[1].threat.epsilon, 0.3);
}

// What was found at the smaller epsilon is where the larger one starts: it is never less.
TEST(Grid, FindsNoLessAtALargerEpsilon) {
  Setting setting;
  const Subject subject{"data", "net", std::move(setting.model), setting.samples()};
  Grid grid({.tiles = {.threads = 1}, .random_points = false});
  std::vector<Row> rows;
  for (const Cell& cell :
       make_cells(subject, {.attacks = {"er(steps=3)"}, .metrics = {"top_k(k=3)"}, .threat = {.epsilons = {0.4, 0.41}}}, 0))
    rows.push_back(grid.run(cell));
  for (std::size_t i = 0; i < kSamples; ++i) EXPECT_LE(rows[1].assessment.values[i], rows[0].assessment.values[i]);
}

TEST(Grid, ARowsOutcomesSayWhatItsTensorsSay) {
  Setting setting;
  const Row row = Grid({.tiles = {.size = 8, .threads = 1}, .random_points = false}).run(cell_of(setting));
  for (std::size_t i = 0; i < kSamples; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const SampleOutcome& sample = row.result.samples[i];
    EXPECT_EQ(sample.prediction, row.result.logits[at].argmax().item<std::int64_t>());
    EXPECT_EQ(sample.prediction_after, sample.prediction);
    EXPECT_NEAR(sample.norm, (row.result.perturbed[at] - setting.inputs[at]).norm().item<double>(), 1e-6);
    EXPECT_NEAR(sample.confidence, row.result.logits[at].softmax(0)[sample.target].item<double>(), 1e-6);
    EXPECT_EQ(sample.value, row.assessment.values[i]);
  }
}

TEST(Cell, ADamagedTileIsOneSentence) {
  const Setting setting;
  const TempFolder folder;
  const TileStore store(folder.path());
  setting.run({.size = 8, .threads = 1}, &store);
  write_atomic(folder.path() + "/000001.safetensors", std::string_view("not a tile"));
  EXPECT_ERROR(setting.run({.size = 8, .threads = 1}, &store), kInput, "000001.safetensors");
  // A number in it that was changed: still a file of its kind.
  Bytes changed = read_bytes(folder.path() + "/000000.safetensors");
  changed[changed.size() - 3] ^= std::byte{4};
  write_atomic(folder.path() + "/000000.safetensors", changed);
  EXPECT_ERROR(store.load(0), kInput, "000000.safetensors is not as the run wrote it; delete the file and run again");
}

TEST(Cell, StopsWhenInterrupted) {
  const Setting setting;
  request_interrupt();
  EXPECT_ERROR(setting.run({.size = 8, .threads = 2}), kInterrupted, "interrupted");
  clear_interrupt();
}

TEST(Cell, MisfitsAreFoundBeforeAnyWork) {
  Setting setting;
  setting.metric = metrics().make("top_k(k=13)");
  EXPECT_ERROR(check_cell(*setting.attack, setting.task()), kUsage, "12 features");
}

TEST(FoldMaps, SumsTheMagnitudesOfChannels) {
  const Schema schema = Schema::of(Layout::grid(2, 1, 2));
  const MapBatch batch = fold_maps(at::tensor({1.0, -2.0, -3.0, 4.0}).view({1, 2, 1, 2}), schema);
  EXPECT_EQ(std::vector<double>(batch[0].values.begin(), batch[0].values.end()), (std::vector<double>{4, 6}));
}

TEST(Cuda, ExplainsAndAttacksAsTheProcessorDoes) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  const Setting cpu, cuda(at::Device(at::kCUDA, 0));
  const ExplainedBatch expected = explain_all(*cpu.explainer, {.model = *cpu.model, .samples = cpu.samples()}, {.size = 8});
  const ExplainedBatch found = explain_all(*cuda.explainer, {.model = *cuda.model, .samples = cuda.samples()}, {.size = 8});
  EXPECT_TRUE(at::allclose(found.maps, expected.maps, 1e-4, 1e-6));
  // run_cell verifies ball, box and class itself.
  const CellResult attacked = cuda.run({.size = 8});
  const CellResult reference = cpu.run({.size = 8});
  EXPECT_TRUE(attacked.perturbed.is_cpu());
  double cuda_mean = 0, cpu_mean = 0;
  for (std::size_t i = 0; i < attacked.samples.size(); ++i) {
    cuda_mean += attacked.samples[i].value / static_cast<double>(kSamples);
    cpu_mean += reference.samples[i].value / static_cast<double>(kSamples);
  }
  EXPECT_NEAR(cuda_mean, cpu_mean, 0.05);
}

}  // namespace
}  // namespace holdfast::experiment

#include <fstream>

#include "holdfast/core/torch.h"
#include "support/datasets.h"
#include "support/errors.h"

namespace holdfast::data {
namespace {

TEST(Adhd, HasThePublishedCounts) {
  SKIP_WITHOUT("adhd");
  const struct {
    const char* call;
    std::int64_t graphs, positive;
  } sites[] = {{"adhd(site=KKI)", 83, 46}, {"adhd(site=OHSU)", 79, 44}, {"adhd(site=Peking_1)", 85, 36}, {"adhd", 247, 126}};
  for (const auto& site : sites) {
    const Dataset dataset = load_dataset(site.call);
    EXPECT_EQ(dataset.labels.size(0), site.graphs) << site.call;
    EXPECT_EQ(dataset.labels.sum().item<std::int64_t>(), site.positive) << site.call;
    EXPECT_EQ(dataset.schema.layout, Layout::graph(190));
  }
}

// Sites number their node labels differently; a node here is a region, whatever the site calls it.
TEST(Adhd, NodesAreRegionsAtEverySite) {
  SKIP_WITHOUT("adhd");
  const Dataset kki = load_dataset("adhd(site=KKI)");
  // The first edge of KKI joins its nodes 1 and 2, with labels 0 and 1, which its readme calls n_1 and n_187.
  EXPECT_EQ(kki.inputs[0][edge_index(190, 1, 187)].item<float>(), 1);
  // As many edges as lines of the file, each of which appears in both directions.
  std::ifstream file(datasets().make("adhd")->found_at({}) + "/KKI/KKI_A.txt");
  std::int64_t lines = 0;
  for (std::string line; std::getline(file, line);) lines += line.empty() ? 0 : 1;
  EXPECT_EQ(2 * kki.inputs.sum().item<double>(), static_cast<double>(lines));
}

TEST(AbideHo111, HasThePublishedCounts) {
  SKIP_WITHOUT("abide_ho111");
  const Dataset dataset = load_dataset("abide_ho111");
  EXPECT_EQ(dataset.labels.size(0), 871);
  EXPECT_EQ(dataset.labels.sum().item<std::int64_t>(), 403);
  EXPECT_EQ(dataset.schema.layout, Layout::graph(111));
  EXPECT_LE(dataset.inputs.abs().max().item<float>(), 1);
  // Region 82 is flat in 193 subjects.
  at::Tensor flat = at::ones({871}, at::kBool);
  for (std::int64_t other = 0; other < 111; ++other) {
    if (other != 82)
      flat = flat.logical_and(
          dataset.inputs.select(1, edge_index(111, std::min<std::int64_t>(82, other), std::max<std::int64_t>(82, other))).eq(0));
  }
  EXPECT_EQ(flat.sum().item<std::int64_t>(), 193);
}

TEST(AbideHo111, AskedForAgesHasChildrenAndAdultsAlone) {
  SKIP_WITHOUT("abide_ho111");
  const Dataset all = load_dataset("abide_ho111"), ages = load_dataset("abide_ho111(question=age)");
  EXPECT_EQ(ages.labels.size(0), 566);
  EXPECT_EQ(ages.labels.sum().item<std::int64_t>(), 266);
  EXPECT_EQ(ages.schema.classes, std::vector<std::string>({"child", "adult"}));
  // The first two subjects are 24 and 19 years old, the third 13.7.
  EXPECT_EQ(ages.labels[0].item<std::int64_t>(), 1);
  EXPECT_TRUE(at::equal(ages.inputs[0], all.inputs[0]));
  std::ifstream file(datasets().make("abide_ho111")->found_at({}) + "/subjects.csv");
  std::string line;
  std::getline(file, line);
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; std::getline(file, line); ++row) {
    const double age = std::stod(line.substr(line.rfind(',') + 1));
    if (age < 13 || age >= 18) rows.push_back(row);
  }
  EXPECT_TRUE(at::equal(ages.inputs, all.inputs_of(rows)));
}

TEST(Mutag, HasThePublishedCountsAndNodesThatAreAtoms) {
  SKIP_WITHOUT("mutag");
  const Dataset dataset = load_dataset("mutag");
  EXPECT_EQ(dataset.inputs.sizes(), at::IntArrayRef({188, 47 * 46 / 2}));
  EXPECT_EQ(dataset.labels.sum().item<std::int64_t>(), 125);
  // As many edges as lines of the file, each of which appears in both directions: no two atoms share a node.
  std::ifstream file(datasets().make("mutag")->found_at({}) + "/MUTAG_A.txt");
  std::int64_t lines = 0;
  for (std::string line; std::getline(file, line);) lines += line.empty() ? 0 : 1;
  EXPECT_EQ(2 * dataset.inputs.sum().item<double>(), static_cast<double>(lines));
  // The first lines of the file: atoms 1 and 2 are joined, 1 and 6, 5 and 7. The first molecule has 17 atoms: 14 carbons, then an
  // N at the 13th of them with two O (nodes 24, 28 and 29).
  const auto joined = [&](std::int64_t a, std::int64_t b) { return dataset.inputs[0][edge_index(47, a, b)].item<float>() == 1; };
  EXPECT_TRUE(joined(0, 1) && joined(0, 5) && joined(4, 6) && joined(12, 24) && joined(24, 28) && joined(24, 29));
  EXPECT_FALSE(joined(5, 6) || joined(28, 29));
  EXPECT_EQ(dataset.inputs[0].sum().item<float>(), 19);
}

TEST(GraphDatasets, TheFoldsTestEveryGraphOnce) {
  SKIP_WITHOUT("adhd");
  std::vector<int> tested(83);
  for (std::int64_t fold = 0; fold < 5; ++fold) {
    const Dataset dataset = load_dataset("adhd(site=KKI)", {.fold = fold});
    EXPECT_TRUE(dataset.test.size() == 16 || dataset.test.size() == 17) << dataset.test.size();
    EXPECT_EQ(dataset.train.size() + dataset.validation.size() + dataset.test.size(), 83U);
    for (const std::int64_t i : dataset.test) ++tested[static_cast<std::size_t>(i)];
  }
  EXPECT_EQ(tested, std::vector<int>(83, 1));
  EXPECT_ERROR(load_dataset("adhd", {.fold = 7}), kUsage, "fold 7 does not exist");
}

}  // namespace
}  // namespace holdfast::data

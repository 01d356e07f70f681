// What a configuration becomes before anything runs.
#include "holdfast/experiment/audit_config.h"

#include <gtest/gtest.h>

#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "support/temp_folder.h"

namespace holdfast::experiment {
namespace {

constexpr const char* kText = R"toml(
samples = 7
metrics = ["top_k(k=3)"]
[[dataset]]
name = "synthetic(samples=600)"
part = "validation"
seed = 4
[[model]]
name = "net"
architecture = "linear"
[model.train]
epochs = 1
)toml";

TEST(AuditConfig, ExplainersCompareWithTheFirstTrainingRows) {
  const TempFolder folder;
  const AuditConfig config = read_audit_config(Config::parse(kText, "audit.toml"));
  const AuditPlan plan = prepare_audit(config, load_datasets(config), folder.path(), {.threads = 1}, at::kCPU);
  const Dataset dataset = load_dataset("synthetic(samples=600)", {.seed = 4});
  ASSERT_EQ(plan.data.size(), 1U);
  const AuditData& data = plan.data[0];
  ASSERT_GT(dataset.train.size(), static_cast<std::size_t>(kBackgroundRows)) << "the case should have more rows than are taken";
  const std::vector<std::int64_t> first(dataset.train.begin(), dataset.train.begin() + kBackgroundRows);
  EXPECT_TRUE(at::equal(data.samples.background, dataset.inputs_of(first)));
  EXPECT_FALSE(data.samples.baseline.defined());

  const std::vector<std::int64_t> audited(dataset.validation.begin(), dataset.validation.begin() + 7);
  EXPECT_TRUE(at::equal(data.samples.inputs, dataset.inputs_of(audited)));
  EXPECT_TRUE(at::equal(data.samples.ids, at::tensor(audited, at::kLong))) << "samples keep the dataset's numbers";
}

}  // namespace
}  // namespace holdfast::experiment

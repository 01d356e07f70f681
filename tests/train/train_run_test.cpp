#include "holdfast/train/train_run.h"

#include "holdfast/core/files.h"
#include "holdfast/core/tensor.h"
#include "holdfast/model/model.h"
#include "support/datasets.h"
#include "support/errors.h"
#include "support/temp_folder.h"
#include "train/toy.h"

namespace holdfast::train {
namespace {

TrainConfig read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return read_train_config(Config::parse(text, "train.toml", overrides));
}

const char* const kSynthetic = R"toml(seed = 3
[dataset]
name = "synthetic(samples=300)"
[model]
architecture = "mlp(hidden=6)"
[train]
recipe = "sp"
epochs = 2
batch_size = 50
learning_rate = 1e-2
schedule = "cosine"
[early_stopping]
metric = "auc"
patience = 7
)toml";

TrainConfig quiet(TrainConfig config) {
  config.options.show_progress = false;
  return config;
}

TEST(TrainConfig, IsReadWhole) {
  const TrainConfig config = read(kSynthetic, {"train.weight_decay=0.25"});
  EXPECT_EQ(config.dataset, "synthetic(samples=300)");
  EXPECT_EQ(config.options.seed, 3u);
  EXPECT_EQ(config.options.architecture, "mlp(hidden=6)");
  EXPECT_EQ(config.options.recipe, "sp");
  EXPECT_EQ(config.options.epochs, 2);
  EXPECT_EQ(config.options.batch_size, 50);
  EXPECT_EQ(config.options.learning_rate, 1e-2);
  EXPECT_EQ(config.options.schedule, "cosine");
  EXPECT_EQ(config.options.weight_decay, 0.25);
  EXPECT_EQ(config.options.early_stopping.metric, "auc");
  EXPECT_EQ(config.options.early_stopping.patience, 7);
  EXPECT_TRUE(config.options.early_stopping.restore_best);
}

TEST(TrainConfig, SaysWhatIsWrongAndWhere) {
  EXPECT_ERROR(read(kSynthetic, {"train.epoch=3"}), kUsage, "epochs");
  EXPECT_ERROR(read(kSynthetic, {"train.epochs=0"}), kUsage, "train.epochs");
  EXPECT_ERROR(read(kSynthetic, {"train.learning_rate=0"}), kUsage, "train.learning_rate");
  EXPECT_ERROR(read(kSynthetic, {"early_stopping.metric=f1"}), kUsage, "early_stopping.metric");
  EXPECT_ERROR(read("[model]\narchitecture = \"mlp\"\n"), kUsage, "name");
  // The name of a method is checked with its line, before any data is read.
  EXPECT_ERROR(read("[dataset]\nname = \"synthetic\"\n[model]\narchitecture = \"mpl\"\n"), kUsage, "train.toml:4");
  EXPECT_ERROR(read("[dataset]\nname = \"synthetic\"\n[model]\narchitecture = \"mpl\"\n"), kUsage, "did you mean 'mlp'?");
  EXPECT_ERROR(read(kSynthetic, {"train.optimizer=adam(beta3=1)"}), kUsage, "unknown option 'beta3'");
  EXPECT_ERROR(read(kSynthetic, {"model.activation=relo"}), kUsage, "did you mean 'relu'?");
}

TEST(TrainRun, WritesAFolderThatLoads) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Json results = run_training(quiet(read(kSynthetic)), run, {{"cores", 2}});
  EXPECT_EQ(read_json(run + "/results.json"), results);
  EXPECT_EQ(read_json(run + "/manifest.json")["machine"]["cores"], 2);
  EXPECT_EQ(read_json(run + "/manifest.json")["train"]["activation"], "softplus(beta=0.5)");
  EXPECT_TRUE(file_exists(run + "/history.jsonl"));

  const Dataset dataset = load_dataset("synthetic(samples=300)");
  const auto model = load_model("mlp:" + run + "/model.safetensors");
  const at::Tensor logits = predict(*model->network(), dataset.inputs_of(dataset.test));
  EXPECT_EQ(results["test"], to_json(prediction_quality(logits, dataset.labels_of(dataset.test))));
  // The arrays beside it are the test samples.
  const at::Tensor samples = read_inputs(run + "/test/inputs.npy");
  EXPECT_TRUE(at::equal(samples, dataset.inputs_of(dataset.test)));
  EXPECT_TRUE(at::equal(read_labels(run + "/test/labels.npy", samples.size(0), 2), dataset.labels_of(dataset.test)));
  EXPECT_EQ(read_schema(run + "/test/schema.json").layout, dataset.schema.layout);
}

TEST(TrainRun, RepeatsToTheSameBytes) {
  const TempFolder folder;
  for (const char* name : {"a", "b"}) (void)run_training(quiet(read(kSynthetic)), folder / name);
  for (const char* file : {"/results.json", "/model.safetensors"}) {
    EXPECT_EQ(read_text(folder / "a" + file), read_text(folder / "b" + file)) << file;
  }
}

TEST(TrainRun, ReachesTheAccuracyBreastCancerAllows) {
  SKIP_WITHOUT("breast_cancer");
  const TempFolder folder;
  const Json results =
      run_training(quiet(read_train_config(Config::load(std::string(HOLDFAST_SOURCE_DIR) + "/configs/train_breast_cancer.toml"))),
                   folder.path());
  EXPECT_GT(results["test"]["accuracy"]["mean"], 0.93);
  EXPECT_GT(results["test"]["auc"]["mean"], 0.98);
}

TEST(TrainRun, ExampleConfigurationsAreValid) {
  for (const char* name : {"breast_cancer", "adult", "fashion_mnist"}) {
    EXPECT_NO_THROW(read_train_config(Config::load(fmt::format("{}/configs/train_{}.toml", HOLDFAST_SOURCE_DIR, name)))) << name;
  }
}

}  // namespace
}  // namespace holdfast::train

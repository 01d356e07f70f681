// Published weights: stored activations reproduced, accuracies of the sources reached.
#include <gtest/gtest.h>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/core/safetensors.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "holdfast/model/model.h"
#include "support/datasets.h"
#include "support/errors.h"
#include "support/outside.h"
#include "support/temp_folder.h"

namespace holdfast::model {
namespace {

// Array `name` of the stored reference, [1, shape...].
at::Tensor reference(const std::string& stem, const std::string& name) {
  const CsvTable table = read_csv(stem + ".csv");
  const Bytes bytes = read_bytes(stem + ".f32");
  for (const auto& row : table.rows) {
    if (row[0] != name) continue;
    std::vector<std::int64_t> shape = parse_sizes(row[1], name);
    shape.insert(shape.begin(), 1);
    const std::byte* start = bytes.data() + sizeof(float) * std::stoull(row[2]);
    return at::from_blob(const_cast<std::byte*>(start), shape, at::kFloat).clone();
  }
  throw std::runtime_error("no array " + name);
}

double accuracy(const Model& model, const at::Tensor& inputs, const at::Tensor& labels, std::int64_t batch) {
  const TileThread one_thread;  // as runs do: a second one only waits on small layers
  const at::NoGradGuard no_gradients;
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < inputs.size(0); i += batch) {
    const std::int64_t count = std::min(batch, inputs.size(0) - i);
    right += (model.logits(inputs.narrow(0, i, count)).argmax(1) == labels.narrow(0, i, count)).sum().item<std::int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(inputs.size(0));
}

// The network up to and including node `last`.
Network part_of(const Network& network, const std::string& last) {
  Network part;
  for (const Node& node : network.nodes()) {
    part.add(node.name, node.operation, node.inputs);
    if (node.name == last) break;
  }
  return part;
}

TEST(Pretrained, SqueezenetReproducesTheStoredActivations) {
  SKIP_WITHOUT_DATA(file, "models/squeezenet1_0_reference.f32");
  const std::string stem = file.substr(0, file.size() - 4);
  const TileThread one_thread;
  const at::NoGradGuard no_gradients;
  const auto model = load_model("squeezenet1_0:pretrained");

  // The stored input is BGR less the mean; ours is RGB in [0, 1], but for what resizing made overshoot.
  const at::Tensor bgr = reference(stem, "input_bgr_meansub") + at::tensor({104.f, 117.f, 123.f}).view({1, 3, 1, 1});
  const at::Tensor x = bgr.flip(1) / 255;

  const auto distance = [](const at::Tensor& a, const at::Tensor& b) { return (a - b.view_as(a)).abs().max().item<double>(); };
  EXPECT_LT(distance(part_of(*model->network(), "fire9_concat").logits(x), reference(stem, "fire9_concat")), 2e-3);
  const at::Tensor logits = model->logits(x);
  EXPECT_LT(distance(logits, reference(stem, "pool10_logits")), 5e-4);
  EXPECT_LT(distance(logits.softmax(1), reference(stem, "prob")), 1e-6);
  EXPECT_EQ(logits.argmax(1).item<std::int64_t>(), 967);
}

TEST(Pretrained, MobilenetGivesWhatTorchsFunctionsGive) {
  SKIP_WITHOUT_DATA(models, "models/mobilenet_v1_075_224.f32");
  const auto python = python_with("safetensors.torch");
  if (!python) GTEST_SKIP() << "no Python with safetensors and torch";
  const TempFolder folder;
  ASSERT_EQ(run_python(*python, "tests/model/mobilenet_reference.py", folder.path()), 0);
  const TensorFile file = read_safetensors(folder / "mobilenet.safetensors");
  const TileThread one_thread;
  const at::NoGradGuard no_gradients;
  const at::Tensor logits = load_model("mobilenet_v1_075:pretrained")->logits(to_tensor(*file.find("inputs")));
  EXPECT_TRUE(at::allclose(logits, to_tensor(*file.find("logits")), 1e-3, 1e-3));
}

TEST(Pretrained, MobilenetKnowsItsClasses) {
  SKIP_WITHOUT_DATA(models, "models/mobilenet_v1_075_224.f32");
  SKIP_WITHOUT("imagenet_samples");
  const Dataset samples = load_dataset("imagenet_samples(size=224)");
  // The source counts 85.9 % on 199 images like these.
  EXPECT_NEAR(accuracy(*load_model("mobilenet_v1_075:pretrained"), samples.inputs, samples.labels, 10), 0.859, 0.05);
}

TEST(Pretrained, CifarNetworksReachTheirAccuracyOnTheFirstThousandTestImages) {
  SKIP_WITHOUT_DATA(models, "models/cifar10_resnet20.f32");
  SKIP_WITHOUT("cifar10");
  const Dataset cifar = load_dataset("cifar10");
  const std::vector<std::int64_t> first(cifar.test.begin(), cifar.test.begin() + 1000);
  const at::Tensor inputs = cifar.inputs_of(first), labels = cifar.labels_of(first);
  EXPECT_NEAR(accuracy(*load_model("cifar_resnet20:pretrained"), inputs, labels, 250), 0.915, 1e-9);
  EXPECT_NEAR(accuracy(*load_model("cifar_resnet2b:pretrained"), inputs, labels, 250), 0.703, 1e-9);
  EXPECT_NEAR(accuracy(*load_model("cifar_resnet4b:pretrained"), inputs, labels, 250), 0.771, 1e-9);
}

TEST(Pretrained, MissingWeightsAreOneSentence) {
  const TempFolder empty;
  const char* before = std::getenv("HOLDFAST_DATA");
  const std::string saved = before != nullptr ? before : "";
  setenv("HOLDFAST_DATA", empty.path().c_str(), 1);
  EXPECT_ERROR(load_model("squeezenet1_0:pretrained"), kInput,
               "models/squeezenet1_0.f32 and .csv are not there; HOLDFAST_DATA names");

  make_folders(empty / "models");
  write_atomic(empty / "models/squeezenet1_0.f32", std::string(8, 'x'));
  write_atomic(empty / "models/squeezenet1_0.csv", std::string("name,shape,offset_floats,count\nconv1.weight,4x4,0,16\n"));
  EXPECT_ERROR(load_model("squeezenet1_0:pretrained"), kInput, "squeezenet1_0.csv:2");
  write_atomic(empty / "models/squeezenet1_0.csv", std::string("name,shape,offset_floats,count\nconv1.weight,1,99,1\n"));
  EXPECT_ERROR(load_model("squeezenet1_0:pretrained"), kInput, "squeezenet1_0.csv:2: offset 99 lies beyond the end");

  before != nullptr ? setenv("HOLDFAST_DATA", saved.c_str(), 1) : unsetenv("HOLDFAST_DATA");
}

}  // namespace
}  // namespace holdfast::model

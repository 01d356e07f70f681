#include <gtest/gtest.h>

#include "holdfast/core/files.h"
#include "holdfast/core/safetensors.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/model.h"
#include "support/errors.h"
#include "support/outside.h"
#include "support/small_models.h"
#include "support/temp_folder.h"

namespace holdfast::model {
namespace {

using testing_support::normal_tensor;

// A file of weights: of `call`, which it records.
std::string saved(const TempFolder& folder, const std::string& call, std::uint64_t seed = 3) {
  const std::string path = folder / "weights.safetensors";
  save_network(path, architectures().make(call)->build(seed), architectures().options(call).canonical());
  return path;
}

TEST(LoadModel, GivesBackWhatWasSaved) {
  const TempFolder folder;
  for (const std::string call : {"mlp(inputs=6,hidden=5x4,classes=3,activation=softplus,beta=0.5)",
                                 "cnn_small(mean=0.3,deviation=0.2)", "cifar_resnet20", "siamese_gcn(nodes=5)"}) {
    SCOPED_TRACE(call);
    const std::string path = saved(folder, call);
    const std::string name = call.substr(0, call.find('('));
    const Network network = architectures().make(call)->build(3);
    for (const std::string& text : {call + ":" + path, name + ":" + path, path}) {
      const auto model = load_model(text);
      EXPECT_EQ(model->name(), text);
      ASSERT_TRUE(model->layout());
      std::vector<std::int64_t> shape = model->layout()->sample_shape();
      shape.insert(shape.begin(), 2);
      const at::Tensor x = normal_tensor(shape, 1);
      EXPECT_TRUE(at::equal(model->logits(x), network.logits(x)));
    }
  }
}

TEST(LoadModel, OptionsBesideTheArchitectureWinOverTheFiles) {
  const TempFolder folder;
  const std::string path = saved(folder, "mlp(inputs=6)");
  const auto model = load_model("mlp(activation=tanh):" + path);
  const at::Tensor x = normal_tensor({2, 6}, 1);
  EXPECT_TRUE(at::equal(model->logits(x), architectures().make("mlp(inputs=6,activation=tanh)")->build(3).logits(x)));
}

TEST(LoadModel, ReadsWeightsThatPythonWrote) {
  const auto python = python_with("safetensors.torch");
  if (!python) GTEST_SKIP() << "no Python with safetensors and torch";
  const TempFolder folder;
  ASSERT_EQ(run_python(*python, "tests/model/make_safetensors.py", folder.path()), 0);
  const auto model = load_model("mlp(inputs=5,hidden=7,classes=3):" + folder / "mlp.safetensors");
  const TensorFile reference = read_safetensors(folder / "reference.safetensors");
  EXPECT_TRUE(
      at::allclose(model->logits(to_tensor(*reference.find("inputs"))), to_tensor(*reference.find("logits")), 1e-5, 1e-6));

  Network norm;
  norm.add("input", op::Input{});
  norm.add("bn", op::BatchNorm{at::zeros({7}), at::zeros({7}), at::zeros({7}), at::zeros({7})});
  std::vector<Parameter> values;
  for (auto& [name, array] : read_safetensors(folder / "norm.safetensors").arrays) values.push_back({name, to_tensor(array)});
  norm.load(values, "norm.safetensors");
  EXPECT_GT(std::get<op::BatchNorm>(norm.nodes()[1].operation).variance.min().item<double>(), 0.49);
}

TEST(LoadModel, SaysWhatIsWrong) {
  const TempFolder folder;
  const std::string path = saved(folder, "mlp(inputs=6)");
  EXPECT_ERROR(load_model("linear:" + path), kInput, "holds the weights of mlp, not of linear");
  EXPECT_ERROR(load_model("mlp(hidden=16):" + path), kInput, "hidden1.weight has shape [32, 6], the model needs [16, 6]");
  EXPECT_ERROR(load_model("mlq:" + path), kUsage, "unknown architecture 'mlq' (did you mean 'mlp'?)");
  EXPECT_ERROR(load_model("mlp"), kUsage, "'mlp' is an architecture without weights; write mlp:weights.safetensors");
  EXPECT_ERROR(load_model("mlp:"), kUsage, "write a file of weights or 'pretrained' after the colon");
  EXPECT_ERROR(load_model("mlp:pretrained"), kInput, "mlp has no published weights");
  EXPECT_ERROR(load_model("mlp:" + folder / "nothing.safetensors"), kInput, "nothing.safetensors");
  EXPECT_ERROR(load_model(folder / "nothing.pt"), kInput, "nothing.pt");
  EXPECT_ERROR(load_model("mlp(widht=3):" + path), kUsage, "mlp: unknown option 'widht'");
}

TEST(LoadModel, RefusesDamagedFiles) {
  const TempFolder folder;
  const std::string path = saved(folder, "mlp(inputs=6)");
  const Bytes whole = read_bytes(path);
  write_atomic(path, std::span(whole).first(whole.size() - 5));
  EXPECT_ERROR(load_model("mlp:" + path), kInput, path);

  Network network = architectures().make("mlp(inputs=6)")->build(0);
  network.parameters()[1].tensor[3] = std::numeric_limits<float>::infinity();
  save_network(path, network, "mlp(inputs=6)");
  EXPECT_ERROR(load_model(path), kInput, path + ": hidden1.bias holds a number that is not finite");

  write_safetensors(path, {.arrays = {{"x", to_raw(at::zeros({2}))}}});
  EXPECT_ERROR(load_model(path), kUsage, "does not record its architecture; write 'ARCHITECTURE(options):");
  EXPECT_ERROR(load_model("mlp(inputs=5):" + path), kInput, "it records no options; give them: mlp(option=value,...):");
}

TEST(NetworkModel, KnowsWhatItTakes) {
  const auto architecture = architectures().make("mlp(inputs=6)");
  const auto model = make_model(architecture->build(0), architecture->layout());
  EXPECT_TRUE(model->capabilities().layers && model->capabilities().float64 && model->capabilities().side_by_side);
  EXPECT_ERROR(model->logits(at::zeros({2, 5})), kInput,
               "the inputs have shape [2, 5], the model takes batches of samples of shape [6]");
  EXPECT_ERROR(model->logits(at::zeros({2, 6}, at::kDouble)), kInput, "the inputs are float64, the model computes in float32");
  EXPECT_THAT(model->describe(),
              testing::HasSubstr("A network of 3 operations (2 linear, activation) with 290 trainable parameters"));
  const auto twin = model->in_double();
  const at::Tensor x = normal_tensor({3, 6}, 1);
  EXPECT_TRUE(at::allclose(twin->logits(x.to(at::kDouble)).to(at::kFloat), model->logits(x), 1e-5, 1e-6));
}

TEST(CallableModel, RunsTheFunctionAndRefusesWhatItCannotDo) {
  const auto model = make_model(
      [](const at::Tensor& x) {
        return at::cat({x, -x}, 1);
      },
      Capabilities{.side_by_side = false}, at::kCPU);
  const at::Tensor x = normal_tensor({3, 1}, 1);
  EXPECT_TRUE(at::equal(model->logits(x, Rule::exact()), at::cat({x, -x}, 1)));
  EXPECT_FALSE(model->capabilities().layers);
  EXPECT_EQ(model->in_double(), nullptr);
  EXPECT_ERROR(model->logits(x, Rule::softplus(1)), kUsage, "its layers cannot be seen");
  const auto one = make_model([](const at::Tensor& at_x) { return at_x; }, {}, at::kCPU);
  EXPECT_ERROR(one->logits(x), kInput, "the output kinds logit, probability and value are one number");
  const auto wrong = make_model([](const at::Tensor& at_x) { return at_x.sum(); }, {}, at::kCPU);
  EXPECT_ERROR(wrong->logits(x), kInput, "the model gives outputs of shape [] for 3 samples; it must give logits");
}

}  // namespace
}  // namespace holdfast::model

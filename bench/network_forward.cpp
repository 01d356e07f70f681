// A Network's forward pass against the same torch::nn module: at most 1.03 times its time.
//
// Both have the same weights, and their results are compared before anything is timed. One thread; the two take turns, and the
// ratio is that of the medians over all turns.
//     bench/network_forward [turns]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "holdfast/model/model.h"
#include "timing.h"

namespace {

using namespace holdfast;
namespace nn = torch::nn;

constexpr double kLimit = 1.03;

nn::Sequential mlp_module() {
  return nn::Sequential(nn::Linear(30, 32), nn::ReLU(), nn::Linear(32, 2));
}

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).padding(kernel / 2));
}

nn::Sequential cnn_chen_module() {
  return nn::Sequential(conv(1, 32, 5), nn::ReLU(), nn::MaxPool2d(2), conv(32, 64, 5), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Flatten(), nn::Linear(3136, 1024), nn::ReLU(), nn::Linear(1024, 10));
}

nn::Sequential block(std::int64_t in, std::int64_t out, bool pool) {
  nn::Sequential layers(conv(in, out, 3), nn::BatchNorm2d(out), nn::ReLU());
  if (pool) layers->push_back(nn::MaxPool2d(2));
  return layers;
}

struct Resnet9Module : nn::Module {
  Resnet9Module() {
    for (const auto& [name, part] : {std::pair("conv1", conv1),
                                     {"conv2", conv2},
                                     {"res1a", res1a},
                                     {"res1b", res1b},
                                     {"conv3", conv3},
                                     {"conv4", conv4},
                                     {"res2a", res2a},
                                     {"res2b", res2b}}) {
      register_module(name, part);
    }
    register_module("output", output);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor one = conv2->forward(conv1->forward(x));
    const at::Tensor two = conv4->forward(conv3->forward(res1b->forward(res1a->forward(one)) + one));
    return output->forward(at::max_pool2d(res2b->forward(res2a->forward(two)) + two, 4).flatten(1));
  }
  nn::Sequential conv1 = block(3, 64, false), conv2 = block(64, 128, true), res1a = block(128, 128, false),
                 res1b = block(128, 128, false), conv3 = block(128, 256, true), conv4 = block(256, 512, true),
                 res2a = block(512, 512, false), res2b = block(512, 512, false);
  nn::Linear output{512, 10};
};

// Both list their tensors in the order of the layers.
void copy_weights(const Network& network, nn::Module& module) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> trained, statistics;
  for (const Parameter& parameter : network.parameters())
    (parameter.trainable ? trained : statistics).push_back(parameter.tensor);
  const std::vector<at::Tensor> parameters = module.parameters();
  TORCH_CHECK(parameters.size() == trained.size());
  for (std::size_t i = 0; i < trained.size(); ++i) parameters[i].copy_(trained[i]);
  std::size_t next = 0;
  for (const at::Tensor& buffer : module.buffers()) {
    if (buffer.is_floating_point()) buffer.copy_(statistics.at(next++));
  }
  module.eval();
}

double seconds(const std::function<at::Tensor()>& forward, int repeats) {
  return wall_seconds([&] {
           for (int i = 0; i < repeats; ++i) forward();
         }) /
         repeats;
}

bool compare(const std::string& name, const std::function<at::Tensor()>& ours, const std::function<at::Tensor()>& theirs,
             int turns) {
  if (!at::allclose(ours(), theirs(), 1e-5, 1e-6)) {
    std::printf("%-28s FAIL: the results differ\n", name.c_str());
    return false;
  }
  const int repeats = std::max(1, static_cast<int>(0.01 / seconds(theirs, 10)));
  std::vector<double> our_times, their_times;
  for (int turn = 0; turn < turns; ++turn) {
    // Each goes first every other time.
    if (turn % 2 == 0) our_times.push_back(seconds(ours, repeats));
    their_times.push_back(seconds(theirs, repeats));
    if (turn % 2 == 1) our_times.push_back(seconds(ours, repeats));
  }
  const double ratio = median(our_times) / median(their_times);
  std::printf("%-28s %10.1f us %10.1f us   ratio %.3f  %s\n", name.c_str(), 1e6 * median(our_times), 1e6 * median(their_times),
              ratio, ratio <= kLimit ? "PASS" : "FAIL");
  return ratio <= kLimit;
}

template <class Module>
bool compare_module(const std::string& call, Module& module, std::int64_t batch, int turns) {
  const auto architecture = architectures().make(call);
  const Network network = architecture->build(1);
  copy_weights(network, module);
  for (const at::Tensor& parameter : module.parameters()) parameter.requires_grad_(false);
  std::vector<std::int64_t> shape = architecture->layout().sample_shape();
  shape.insert(shape.begin(), batch);
  const at::Tensor x = at::linspace(0, 1, c10::multiply_integers(shape)).sin().view(shape);

  const auto forward = [&](const at::Tensor& inputs) {
    return std::pair<std::function<at::Tensor()>, std::function<at::Tensor()>>{[&] { return network.logits(inputs); },
                                                                               [&] { return module.forward(inputs); }};
  };
  bool passed = true;
  {
    const at::NoGradGuard no_gradients;
    const auto [ours, theirs] = forward(x);
    passed &= compare(call.substr(0, call.find('(')), ours, theirs, turns);
  }
  const at::Tensor leaf = x.clone().requires_grad_(true);
  const auto [ours, theirs] = forward(leaf);
  return compare(call.substr(0, call.find('(')) + ", recorded", ours, theirs, turns) && passed;
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::max(1, std::atoi(argv[1])) : 41;
  at::set_num_threads(1);
  std::printf("%-28s %13s %13s\n", "forward pass", "Network", "torch::nn");
  nn::Sequential mlp = mlp_module(), cnn = cnn_chen_module();
  Resnet9Module resnet;
  bool passed = compare_module("mlp", *mlp, 1, turns);
  passed &= compare_module("cnn_chen", *cnn, 16, turns);
  passed &= compare_module("resnet9(mean=0,deviation=1)", resnet, 2, turns);
  std::printf("%s: the limit is %.2f\n", passed ? "PASS" : "FAIL", kLimit);
  return passed ? 0 : 1;
}

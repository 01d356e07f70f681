// Peak memory of integrated gradients of one 3 x 227 x 227 image at 1000 steps on squeezenet1_0: the whole program under 1 GiB,
// with its pullback under 1.5 GiB.
//     explain_memory attribute|pullback [steps] [bound of the activations in MiB]
// One process for each, since the peak is that of the process. The map is compared with a few steps' worth of plain gradients
// first.
#include <cstdlib>
#include <string>

#include <fmt/core.h>
#include <sys/resource.h>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::bench {
namespace {

double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

at::Tensor image() {
  at::Tensor values = at::empty({1, 3, 227, 227});
  RandomStream stream(1, "bench");
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = static_cast<float>(stream.uniform());
  return values;
}

// Four steps, one gradient at a time.
void check(const ExplainTask& task) {
  at::Tensor sum = at::zeros_like(task.samples.inputs);
  for (int k = 1; k <= 4; ++k) {
    const at::Tensor z = (task.samples.inputs * (k / 4.0)).requires_grad_();
    const at::Tensor p = at::softmax(task.model.logits(z), 1).gather(1, task.samples.targets.unsqueeze(1)).sum();
    sum += torch::autograd::grad({p}, {z})[0] / 4;
  }
  const Explanation found = explainers().make("integrated_gradients(steps=4)")->attribute(task);
  const at::Tensor expected = task.samples.inputs * sum;
  const double apart = (found.maps * found.log_scale.exp().view({1, 1, 1, 1}) - expected).abs().max().item<double>();
  HOLDFAST_CHECK(apart <= 1e-4 * expected.abs().max().item<double>());
}

int run(const std::string& what, int steps, std::int64_t bound) {
  const auto architecture = architectures().make("squeezenet1_0");
  const auto model = make_model(architecture->build(1), architecture->layout());
  ExplainTask task{.model = *model, .samples = {.inputs = image(), .ids = at::zeros({1}, at::kLong)}};
  {
    const at::NoGradGuard no_graph;
    task.samples.targets = predicted_class(model->logits(task.samples.inputs));
  }
  check(task);
  task.memory = bound;
  const double before = peak_gib();
  const auto explainer = explainers().make(fmt::format("integrated_gradients(steps={})", steps));
  const bool pullback = what == "pullback";
  if (pullback) {
    (void)explainer->linearize(task)->pullback(at::ones_like(task.samples.inputs));
  } else {
    (void)explainer->attribute(task);
  }
  const double limit = pullback ? 1.5 : 1.0;
  fmt::print(
      "integrated_gradients(steps={}) of one 3 x 227 x 227 image on squeezenet1_0, {}: peak {:.2f} GiB, {:.2f} before it (limit "
      "{})\n",
      steps, what, peak_gib(), before, limit);
  return peak_gib() <= limit ? 0 : 1;
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "attribute";
  if (what != "attribute" && what != "pullback") {
    fmt::print("usage: explain_memory attribute|pullback [steps] [bound in MiB]\n");
    return 2;
  }
  return holdfast::bench::run(what, argc > 2 ? std::atoi(argv[2]) : 1000,
                              argc > 3 ? std::int64_t{std::atoi(argv[3])} << 20 : holdfast::kExplainMemory);
}

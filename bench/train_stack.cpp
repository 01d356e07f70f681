// What several trainings cost beside one: n-32-2 networks, 31 features, batches of 64, one thread for the one.
//     6 seeds on two threads   at most 3.4 times one seed on one
//     a grid of 20 networks    at most 5 times one network, on one thread
// Networks of the stack are first shown to end as they do alone. Times are medians of interleaved rounds. The gain is that of
// small batches, where a step is mostly dispatch: the larger the batch, the more of it is arithmetic that a stack does not save.
#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"
#include "holdfast/train/train_many.h"
#include "timing.h"

namespace holdfast::bench {
namespace {

constexpr int kRounds = 5;
constexpr double kSeedsLimit = 3.4, kGridLimit = 5;

TrainOptions one(std::uint64_t seed, const std::string& objective) {
  return {.architecture = "mlp(hidden=32)",
          .objective = objective,
          .epochs = 2,
          .batch_size = 64,
          .learning_rate = 1e-2,
          .seed = seed,
          .threads = 1,
          .show_progress = false};
}

double largest_difference(const Network& a, const Network& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.parameters().size(); ++i) {
    largest = std::max(largest, (a.parameters()[i].tensor - b.parameters()[i].tensor).abs().max().item<double>());
  }
  return largest;
}

bool compare(const char* what, const Dataset& dataset, const std::vector<TrainOptions>& many, int threads, double limit) {
  std::vector<double> together, alone;
  for (int round = 0; round < kRounds; ++round) {
    together.push_back(wall_seconds([&] { (void)train_many(dataset, many, threads); }));
    alone.push_back(wall_seconds([&] { (void)train_network(dataset, many.front()); }));
  }
  const double ratio = median(together) / median(alone);
  fmt::print("{}: {:.3f} s, one network {:.3f} s: {:.2f} times (limit {})\n", what, median(together), median(alone), ratio,
             limit);
  return ratio <= limit;
}

int run() {
  set_log_level(LogLevel::kWarning);
  const Dataset dataset = load_dataset("synthetic(samples=32000,linear=10,additive=6,pairs=4)");
  std::vector<TrainOptions> seeds, grid;
  for (std::uint64_t seed = 0; seed < 6; ++seed) seeds.push_back(one(seed, "ce"));
  for (int i = 0; i < 20; ++i) grid.push_back(one(0, fmt::format("r2et(top_k=4,curvature=0,gap={})", 0.01 * (i + 1))));

  const std::vector<TrainResult> together = train_many(dataset, seeds, 2);
  double apart = 0;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    apart = std::max(apart, largest_difference(together[i].network, train_network(dataset, seeds[i]).network));
  }
  fmt::print("{} features, {} training samples; weights of the stack differ from those alone by at most {:.1e}\n",
             dataset.schema.layout.features(), dataset.train.size(), apart);
  HOLDFAST_CHECK(apart < 1e-2);

  const bool quick = compare("6 seeds on two threads", dataset, seeds, 2, kSeedsLimit);
  return compare("a grid of 20 on one thread", dataset, grid, 1, kGridLimit) && quick ? 0 : 1;
}

}  // namespace
}  // namespace holdfast::bench

int main() {
  return holdfast::bench::run();
}

// What valid_effect costs beside the forward passes it needs: one of the rows and one of all changed rows, of a table with six
// numbers and six categories of four levels. An MLP 30-32-2, which has a shorter way, and an MLP 30-64-64-64-2. At most 1.1 times
// the same passes in plain LibTorch without autograd. One thread.
//
// The plain side takes changed rows that were made before, in batches of the size that suits it best, found by trying. Maps are
// compared before anything is timed; times are medians of interleaved rounds, in processor time.
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "timing.h"

namespace holdfast::bench {
namespace {

constexpr double kLimit = 1.1, kDeviation = 0.3, kMove = kDeviation / 10;
constexpr std::int64_t kRows = 500, kNumbers = 6, kGroups = 6, kLevels = 4, kColumns = kNumbers + kGroups * kLevels;
constexpr int kRounds = 41;

struct Table {
  Schema schema = Schema::of(Layout::vector(kColumns));
  at::Tensor rows;
};

// All moves of numbers stay in their range.
Table make_table() {
  Table table;
  table.rows = random_uniform({kColumns}, at::arange(kRows, at::kLong), 4, "bench").to(at::kFloat);
  for (std::int64_t i = 0; i < kNumbers; ++i)
    table.schema.features.push_back({.name = fmt::format("number {}", i), .low = -1, .high = 2, .deviation = kDeviation});
  for (std::int64_t g = 0; g < kGroups; ++g) {
    Group group{.name = fmt::format("category {}", g), .columns = {}, .levels = {}};
    for (std::int64_t level = 0; level < kLevels; ++level) {
      const std::int64_t column = kNumbers + g * kLevels + level;
      group.columns.push_back(column);
      table.schema.features.push_back({.name = fmt::format("level {}", column), .step = 1});
      table.rows.select(1, column).copy_((at::arange(kRows) + g).remainder(kLevels).eq(level));
    }
    table.schema.groups.push_back(group);
  }
  return table;
}

// Changed rows of one feature: [kRows, kColumns] for each change, and how much each counts.
struct Changes {
  std::int64_t feature;
  double weight;
  std::vector<at::Tensor> rows;
};

std::vector<Changes> change(const at::Tensor& rows) {
  std::vector<Changes> all;
  for (std::int64_t i = 0; i < kNumbers; ++i) {
    all.push_back({i, kDeviation / kMove / 2, {rows.clone(), rows.clone()}});
    all.back().rows[0].select(1, i).sub_(kMove);
    all.back().rows[1].select(1, i).add_(kMove);
  }
  for (std::int64_t g = 0; g < kGroups; ++g) {
    all.push_back({kNumbers + g, 1.0 / (kLevels - 1), {}});
    for (std::int64_t turn = 1; turn < kLevels; ++turn) {
      all.back().rows.push_back(rows.clone());
      const at::Tensor levels = all.back().rows.back().slice(1, kNumbers + g * kLevels, kNumbers + (g + 1) * kLevels);
      levels.copy_(levels.roll({turn}, {1}));
    }
  }
  return all;
}

using Logits = std::function<at::Tensor(const at::Tensor&)>;

// The same weights in plain torch.
Logits plain_logits(const Network& network) {
  std::vector<at::Tensor> w;
  for (const Parameter& parameter : network.parameters()) w.push_back(parameter.tensor);
  return [w](const at::Tensor& x) {
    at::Tensor values = x;
    for (std::size_t i = 0; i + 2 < w.size(); i += 2) values = at::relu(at::linear(values, w[i], w[i + 1]));
    return at::linear(values, w[w.size() - 2], w.back());
  };
}

at::Tensor expected_maps(const Logits& logits, const at::Tensor& rows, const at::Tensor& targets,
                         const std::vector<Changes>& changes) {
  const auto odds = [&](const at::Tensor& some) {
    const at::Tensor z = logits(some).to(at::kDouble), own = targets.unsqueeze(1);
    return (z.gather(1, own) - z.gather(1, 1 - own)).squeeze(1);
  };
  const at::Tensor clean = odds(rows), maps = at::zeros({kRows, kNumbers + kGroups}, at::kDouble);
  for (const Changes& one : changes) {
    for (const at::Tensor& changed : one.rows) maps.select(1, one.feature).add_((odds(changed) - clean).abs() * one.weight);
  }
  return maps;
}

// Rows a batch with which the plain passes take least time.
std::int64_t best_batch(const Logits& logits, const at::Tensor& rows, const std::function<void(std::int64_t)>& passes) {
  (void)logits(rows);  // the first call is slower
  std::int64_t best = rows.size(0);
  double quickest = 1e30;
  for (std::int64_t some = 64; some / 2 < rows.size(0); some *= 2) {
    std::vector<double> times;
    for (int i = 0; i < 21; ++i) times.push_back(thread_seconds([&] { passes(some); }));
    if (median(times) < quickest) quickest = median(times), best = some;
  }
  return best;
}

bool compare(const char* architecture, const char* name) {
  const Network network = architectures().make(architecture)->build(1);
  const Logits logits = plain_logits(network);
  const Table table = make_table();
  const auto model = make_model(network);
  const auto explainer = explainers().make("valid_effect");
  const at::NoGradGuard no_graph;
  const ExplainTask task{.model = *model,
                         .samples = {.inputs = table.rows,
                                     .targets = predicted_class(model->logits(table.rows)),
                                     .ids = at::arange(kRows, at::kLong),
                                     .schema = share_schema(table.schema)}};
  const std::vector<Changes> changes = change(table.rows);
  const Explanation found = explainer->attribute(task);
  const at::Tensor expected = expected_maps(logits, table.rows, task.samples.targets, changes),
                   maps = found.maps * found.log_scale.exp().unsqueeze(1);
  HOLDFAST_CHECK((maps - expected).abs().max().item<double>() <= 1e-4 * expected.abs().max().item<double>());

  std::vector<at::Tensor> parts;
  for (const Changes& one : changes) parts.insert(parts.end(), one.rows.begin(), one.rows.end());
  const at::Tensor changed = at::cat(parts);
  const auto passes = [&](std::int64_t batch) {
    (void)logits(table.rows);
    for (std::int64_t begin = 0; begin < changed.size(0); begin += batch) (void)logits(changed.slice(0, begin, begin + batch));
  };
  const std::int64_t batch = best_batch(logits, changed, passes);
  std::vector<double> ours, theirs;
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(thread_seconds([&] { (void)explainer->attribute(task); }));
    theirs.push_back(thread_seconds([&] { passes(batch); }));
  }
  const double ratio = median(ours) / median(theirs);
  fmt::print("{}, {} rows, valid_effect {:.2f} ms, bare passes {:.2f} ms ({} rows at a time): {:.3f} times (limit {})\n", name,
             kRows, median(ours) * 1e3, median(theirs) * 1e3, batch, ratio, kLimit);
  return ratio <= kLimit;
}

int run() {
  const TileThread one_thread;
  const bool shallow = compare("mlp(inputs=30,hidden=32,classes=2)", "mlp 30-32-2"),
             deep = compare("mlp(inputs=30,hidden=64x64x64,classes=2)", "mlp 30-64-64-64-2");
  return shallow && deep ? 0 : 1;
}

}  // namespace
}  // namespace holdfast::bench

int main() {
  return holdfast::bench::run();
}

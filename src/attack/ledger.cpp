#include "ledger.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/error.h"

namespace holdfast {
namespace {

// Rounding of float32 logits, of their size; what another batch size or precision may change.
constexpr double kLogitRounding = 1e-5;

struct Verdict {
  std::int64_t predicted = 0;
  double margin = 0;    // of the predicted class over the runner-up
  double required = 0;  // margin from which the prediction counts as sure
};

// The lower class on ties.
Verdict judge_logits(std::span<const double> logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  double runner_up = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (i != best) runner_up = std::max(runner_up, logits[i]);
  }
  return {static_cast<std::int64_t>(best), logits[best] - runner_up, kMargin + kLogitRounding * std::abs(logits[best])};
}

at::Tensor on_cpu(const at::Tensor& tensor) { return tensor.detach().cpu().contiguous(); }

std::span<const double> row_of(const at::Tensor& doubles, std::int64_t row) {
  const std::int64_t width = doubles.size(1);
  return {doubles.data_ptr<double>() + row * width, static_cast<std::size_t>(width)};
}

}  // namespace

ExplainTask explain_at(const AttackTask& task, const at::Tensor& inputs) {
  return {.model = task.model,
          .inputs = inputs,
          .targets = task.targets,
          .sample_ids = task.sample_ids,
          .seed = task.seed,
          .schema = &task.schema};
}

Ledger::Ledger(const AttackTask& task, const Explanation& clean, Select select)
    : task_(task),
      select_(select),
      folded_(static_cast<std::size_t>(task.schema.layout.features())),
      perturbed_(task.inputs.detach().clone()),
      running_(task.inputs.size(0)) {
  const at::Tensor maps = on_cpu(clean.maps), logits = on_cpu(clean.logits).to(at::kDouble);
  const at::Tensor ids = task.sample_ids.cpu();
  outcomes_.resize(static_cast<std::size_t>(running_));
  for (std::int64_t row = 0; row < running_; ++row) {
    const auto map = fold_row(maps, row);
    if (!map) failure("{}: the map of sample {} is not finite", task.explainer.name(), ids[row].item<std::int64_t>());
    Sample sample{.metric = task.metric.prepare(*map), .predicted = judge_logits(row_of(logits, row)).predicted};
    if (task.metric.top_count()) sample.top.emplace(task.metric.top_set(*map), map->size());
    outcomes_[static_cast<std::size_t>(row)].value = sample.metric->value(*map);
    samples_.push_back(std::move(sample));
    rows_.push_back(row);
  }
}

std::optional<MapView> Ledger::fold_row(const at::Tensor& maps, std::int64_t row) {
  const std::int64_t n = task_.schema.layout.inputs();
  AT_DISPATCH_FLOATING_TYPES(maps.scalar_type(), "fold_row", [&] {
    fold_into(task_.schema.layout, std::span<const scalar_t>(maps.data_ptr<scalar_t>() + row * n, static_cast<std::size_t>(n)), folded_);
  });
  const bool finite = std::all_of(folded_.begin(), folded_.end(), [](double value) { return value < std::numeric_limits<double>::infinity(); });
  if (!finite) return std::nullopt;
  return MapView{folded_, task_.schema};
}

void Ledger::charge(std::int64_t evaluations) {
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    if (!samples_[i].done) outcomes_[i].evaluations += evaluations;
  }
}

void Ledger::stop(std::int64_t sample) {
  samples_[static_cast<std::size_t>(sample)].done = true;
  --running_;
}

bool Ledger::is_worse(double value, double than) const {
  return task_.metric.direction() == Direction::kHigherIsMoreAlike ? value < than : value > than;
}

void Ledger::record(const at::Tensor& iterates, const Explanation& explanation) {
  HOLDFAST_CHECK(iterates.size(0) == static_cast<std::int64_t>(rows_.size()));
  ++iteration_;
  taken_rows_.clear();
  taken_samples_.clear();
  const at::Tensor maps = on_cpu(explanation.maps), logits = on_cpu(explanation.logits).to(at::kDouble);
  for (std::int64_t row = 0; row < iterates.size(0); ++row) {
    const std::int64_t sample = rows_[static_cast<std::size_t>(row)];
    if (!samples_[static_cast<std::size_t>(sample)].done) judge(row, row_of(logits, row), maps);
    if (task_.trace) outcomes_[static_cast<std::size_t>(sample)].trace.push_back(outcomes_[static_cast<std::size_t>(sample)].value);
  }
  if (taken_rows_.empty()) return;
  const auto index = [&](const std::vector<std::int64_t>& values) { return torch::tensor(values, at::kLong).to(iterates.device()); };
  perturbed_.index_copy_(0, index(taken_samples_), iterates.detach().index_select(0, index(taken_rows_)));
}

void Ledger::judge(std::int64_t row, std::span<const double> logits, const at::Tensor& maps) {
  const std::int64_t position = rows_[static_cast<std::size_t>(row)];
  Sample& sample = samples_[static_cast<std::size_t>(position)];
  SampleOutcome& outcome = outcomes_[static_cast<std::size_t>(position)];
  const Verdict verdict = judge_logits(logits);
  if (verdict.predicted != sample.predicted) {
    ++outcome.label_flips;
    if (select_ == Select::kLast) stop(position);
    return;
  }
  if (!(verdict.margin >= verdict.required)) return;
  const auto map = fold_row(maps, row);
  if (!map) return;
  if (sample.top && !sample.top->holds(map->values)) {
    outcome.first_swap = iteration_;
    sample.top.reset();
  }
  const double value = sample.metric->value(*map);
  if (std::isnan(value)) return;
  if (select_ == Select::kLast || std::isnan(outcome.value) || is_worse(value, outcome.value)) take(position, row, value);
  if (select_ == Select::kWorst && !is_worse(task_.metric.floor(), value)) stop(position);
}

void Ledger::take(std::int64_t sample, std::int64_t row, double value) {
  outcomes_[static_cast<std::size_t>(sample)].value = value;
  outcomes_[static_cast<std::size_t>(sample)].iteration = iteration_;
  taken_samples_.push_back(sample);
  taken_rows_.push_back(row);
}

std::optional<at::Tensor> Ledger::shrink() {
  const auto rows = static_cast<std::int64_t>(rows_.size());
  if ((rows - running_) * 8 < rows || running_ == 0) return std::nullopt;
  std::vector<std::int64_t> kept_rows, kept_samples;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t sample = rows_[static_cast<std::size_t>(row)];
    if (samples_[static_cast<std::size_t>(sample)].done) continue;
    kept_rows.push_back(row);
    kept_samples.push_back(sample);
  }
  rows_ = std::move(kept_samples);
  return torch::tensor(kept_rows, at::kLong).to(task_.inputs.device());
}

AttackResult Ledger::finish() {
  AttackResult result{.perturbed = perturbed_,
                      .original = task_.explainer.attribute(explain_at(task_, task_.inputs)),
                      .moved = task_.explainer.attribute(explain_at(task_, perturbed_))};
  const at::Tensor maps = on_cpu(result.moved.maps);
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    SampleOutcome& outcome = outcomes_[i];
    const auto map = fold_row(maps, static_cast<std::int64_t>(i));
    outcome.value = map ? samples_[i].metric->value(*map) : std::numeric_limits<double>::quiet_NaN();
    // Samples that were done early left their row; they stay where they are to the end.
    if (task_.trace) outcome.trace.resize(static_cast<std::size_t>(iteration_), outcome.value);
  }
  result.samples = std::move(outcomes_);
  return result;
}

}  // namespace holdfast

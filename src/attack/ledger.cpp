#include "ledger.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast {
namespace {

// Rounding of float32 logits, of their size; what another batch size or precision may change.
constexpr double kLogitRounding = 1e-5;

// The predicted class of a row, the lower one on ties, and whether its margin over the runner-up is large enough.
template <class Number>
std::pair<std::int64_t, bool> predict(const Number* logits, std::int64_t classes) {
  std::int64_t best = 0;
  Number runner_up = -std::numeric_limits<Number>::infinity();
  for (std::int64_t c = 1; c < classes; ++c) {
    if (logits[c] > logits[best]) {
      runner_up = logits[best];
      best = c;
    } else {
      runner_up = std::max(runner_up, logits[c]);
    }
  }
  const double top = static_cast<double>(logits[best]);
  return {best, top - static_cast<double>(runner_up) >= kMargin + kLogitRounding * std::abs(top)};
}

at::Tensor on_cpu(const at::Tensor& tensor) {
  return tensor.detach().cpu().contiguous();
}

}  // namespace

std::string to_string(Select select) {
  return select == Select::kWorst ? "worst" : "last";
}

ExplainTask explain_at(const AttackTask& task, const at::Tensor& inputs) {
  return {.model = task.model,
          .inputs = inputs,
          .targets = task.targets,
          .sample_ids = task.sample_ids,
          .seed = task.seed,
          .schema = &task.schema,
          .baseline = task.baseline,
          .background = task.background};
}

Ledger::Ledger(const AttackTask& task, const Explanation& clean, Select select)
    : task_(task),
      select_(select),
      higher_is_more_alike_(task.metric.direction() == Direction::kHigherIsMoreAlike),
      has_top_(task.metric.top_count().has_value()),
      perfect_(task.metric.perfect()),
      floor_(task.metric.floor()),
      perturbed_(on_cpu(task.inputs).clone()),
      running_(task.inputs.size(0)) {
  const at::Tensor ids = task.sample_ids.cpu();
  fold(clean.maps);
  read_predictions(clean.logits);
  outcomes_.resize(static_cast<std::size_t>(running_));
  samples_.reserve(outcomes_.size());
  for (std::int64_t row = 0; row < running_; ++row) {
    const auto map = map_of(row);
    if (!map) failure("{}: the map of sample {} is not finite", task.explainer.name(), ids[row].item<std::int64_t>());
    Sample sample{.metric = task.metric.prepare(*map), .predicted = predicted_[static_cast<std::size_t>(row)]};
    if (has_top_ && !task.metric.perfect_means_same_top()) sample.top.emplace(task.metric.top_set(*map), map->size());
    outcomes_[static_cast<std::size_t>(row)].value = sample.metric->value(*map);
    samples_.push_back(std::move(sample));
    rows_.push_back(row);
  }
}

void Ledger::fold(const at::Tensor& maps) {
  const at::Tensor plain = on_cpu(maps);
  folded_.resize(static_cast<std::size_t>(plain.size(0) * task_.schema.layout.features()));
  AT_DISPATCH_FLOATING_TYPES(plain.scalar_type(), "fold", [&] {
    fold_into(task_.schema.layout, std::span<const scalar_t>(plain.data_ptr<scalar_t>(), static_cast<std::size_t>(plain.numel())),
              folded_);
  });
  all_finite_ = std::isfinite(plain.sum().item<double>());  // only if every element is
}

std::optional<MapView> Ledger::map_of(std::int64_t row) const {
  const auto features = static_cast<std::size_t>(task_.schema.layout.features());
  const MapView map{std::span(folded_).subspan(static_cast<std::size_t>(row) * features, features), task_.schema};
  if (!all_finite_ && !std::all_of(map.values.begin(), map.values.end(), [](double value) { return std::isfinite(value); }))
    return std::nullopt;
  return map;
}

void Ledger::read_predictions(const at::Tensor& logits) {
  const at::Tensor plain = on_cpu(logits);
  const std::int64_t classes = plain.size(1);
  predicted_.resize(static_cast<std::size_t>(plain.size(0)));
  sure_.resize(predicted_.size());
  AT_DISPATCH_FLOATING_TYPES(plain.scalar_type(), "read_predictions", [&] {
    const scalar_t* row = plain.data_ptr<scalar_t>();
    for (std::size_t i = 0; i < predicted_.size(); ++i, row += classes) std::tie(predicted_[i], sure_[i]) = predict(row, classes);
  });
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
  return higher_is_more_alike_ ? value < than : value > than;
}

void Ledger::record(const at::Tensor& iterates, const Explanation& explanation) {
  HOLDFAST_CHECK(iterates.size(0) == static_cast<std::int64_t>(rows_.size()));
  ++iteration_;
  taken_rows_.clear();
  taken_samples_.clear();
  fold(explanation.maps);
  read_predictions(explanation.logits);
  for (std::int64_t row = 0; row < iterates.size(0); ++row) judge(row);
  if (task_.trace) {
    for (const std::int64_t sample : rows_) {
      SampleOutcome& outcome = outcomes_[static_cast<std::size_t>(sample)];
      outcome.trace.push_back(outcome.value);
    }
  }
  copy_taken(iterates);
}

// Row by row: few are taken, and an indexed copy costs more than they do.
void Ledger::copy_taken(const at::Tensor& iterates) {
  if (taken_rows_.empty()) return;
  const at::Tensor from = on_cpu(iterates);
  const std::size_t bytes = static_cast<std::size_t>(from.numel() / from.size(0)) * from.element_size();
  for (std::size_t i = 0; i < taken_rows_.size(); ++i) {
    std::memcpy(static_cast<std::byte*>(perturbed_.data_ptr()) + static_cast<std::size_t>(taken_samples_[i]) * bytes,
                static_cast<const std::byte*>(from.data_ptr()) + static_cast<std::size_t>(taken_rows_[i]) * bytes, bytes);
  }
}

void Ledger::judge(std::int64_t row) {
  const std::int64_t position = rows_[static_cast<std::size_t>(row)];
  const Sample& sample = samples_[static_cast<std::size_t>(position)];
  if (sample.done) return;
  SampleOutcome& outcome = outcomes_[static_cast<std::size_t>(position)];
  if (predicted_[static_cast<std::size_t>(row)] != sample.predicted) {
    ++outcome.label_flips;
    if (select_ == Select::kLast) stop(position);
    return;
  }
  if (!sure_[static_cast<std::size_t>(row)]) return;
  const auto map = map_of(row);
  if (!map) return;
  const double value = sample.metric->value(*map);
  if (has_top_ && outcome.first_swap < 0) note_swap(position, value, *map);
  if (std::isnan(value)) return;
  if (select_ == Select::kLast || std::isnan(outcome.value) || is_worse(value, outcome.value)) take(position, row, value);
  if (select_ == Select::kWorst && !is_worse(floor_, value)) stop(position);
}

void Ledger::note_swap(std::int64_t sample, double value, const MapView& map) {
  std::optional<TopSet>& top = samples_[static_cast<std::size_t>(sample)].top;
  const bool same = top ? top->holds(map.values) : value == perfect_;
  if (same) return;
  outcomes_[static_cast<std::size_t>(sample)].first_swap = iteration_;
  top.reset();
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
  return at::tensor(at::ArrayRef<std::int64_t>(kept_rows), at::kLong).to(task_.inputs.device());
}

AttackResult Ledger::finish() {
  const at::Tensor perturbed = perturbed_.to(task_.inputs.device());
  AttackResult result{.perturbed = perturbed,
                      .original = task_.explainer.attribute(explain_at(task_, task_.inputs)),
                      .moved = task_.explainer.attribute(explain_at(task_, perturbed))};
  fold(result.moved.maps);
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    SampleOutcome& outcome = outcomes_[i];
    const auto map = map_of(static_cast<std::int64_t>(i));
    outcome.value = map ? samples_[i].metric->value(*map) : std::numeric_limits<double>::quiet_NaN();
    // Samples that were done early left their row; they stay where they are to the end.
    if (task_.trace) outcome.trace.resize(static_cast<std::size_t>(iteration_), outcome.value);
  }
  result.samples = std::move(outcomes_);
  return result;
}

}  // namespace holdfast

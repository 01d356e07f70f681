#include "ledger.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "holdfast/core/clock.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/finite.h"

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
    } else if (logits[c] <= logits[best]) {
      runner_up = std::max(runner_up, logits[c]);
    } else {
      runner_up = std::numeric_limits<Number>::infinity();  // a logit that is no number: nothing is sure
    }
  }
  const double top = static_cast<double>(logits[best]);
  return {best, top - static_cast<double>(runner_up) >= kMargin + kLogitRounding * std::abs(top)};
}

// Probability of the predicted class, and what rounding of the logits may change of it.
template <class Number>
std::pair<double, double> probability_of(const Number* logits, std::int64_t classes, std::int64_t predicted) {
  const double top = static_cast<double>(logits[predicted]);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - top);
  const double p = 1 / sum;
  return {p, 2 * kLogitRounding * std::abs(top) * p * (1 - p)};
}

// The predicted class's logit above the highest of the others.
double margin_of(const double* logits, std::int64_t classes, std::int64_t predicted) {
  double margin = std::numeric_limits<double>::infinity();
  for (std::int64_t c = 0; c < classes; ++c) {
    if (c != predicted) margin = std::min(margin, logits[predicted] - logits[c]);
  }
  return margin;
}

// Half-precision models are judged in single precision.
at::Tensor on_cpu(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().cpu();
  return (at::isReducedFloatingType(plain.scalar_type()) ? plain.to(at::kFloat) : plain).contiguous();
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
  check_finite(clean, task.sample_ids, task.model, task.explainer);
  fold(clean.maps);
  read_predictions(clean.logits);
  outcomes_.resize(static_cast<std::size_t>(running_));
  done_.resize(outcomes_.size());
  evaluations_.resize(outcomes_.size());
  samples_.reserve(outcomes_.size());
  const at::Tensor logits = on_cpu(clean.logits).to(at::kDouble);
  for (std::int64_t row = 0; row < running_; ++row) {
    const auto map = map_of(row);
    HOLDFAST_CHECK(map);
    Sample sample{.metric = task.metric.prepare(*map), .predicted = predicted_[static_cast<std::size_t>(row)]};
    if (task.threat.tolerance) {
      sample.probability = probability_[static_cast<std::size_t>(row)];
      sample.rounding = rounding_[static_cast<std::size_t>(row)];
    }
    if (has_top_ && !task.metric.perfect_means_same_top()) sample.top.emplace(task.metric.top_set(*map), map->size());
    outcomes_[static_cast<std::size_t>(row)].value = sample.metric->value(*map);
    outcomes_[static_cast<std::size_t>(row)].clean_margin =
        margin_of(logits[row].data_ptr<double>(), logits.size(1), sample.predicted);
    samples_.push_back(std::move(sample));
    rows_.push_back(row);
  }
  if (!nothing_to_break()) return;
  std::fill(evaluations_.begin(), evaluations_.end(), task.explainer.evaluations(task.schema));  // of the clean explanation
  std::fill(done_.begin(), done_.end(), 1);
  running_ = 0;
}

bool Ledger::nothing_to_break() const {
  const bool still = task_.threat.epsilon == 0 || (task_.threat.frozen.defined() && task_.threat.frozen.all().item<bool>());
  const bool all_are_top = select_ == Select::kWorst && has_top_ && task_.metric.perfect_means_same_top() &&
                           *task_.metric.top_count() >= task_.schema.layout.features();
  return still || all_are_top;
}

void Ledger::keep_way() {
  stride_ = 1;
  mark();
}

void Ledger::mark() {
  if (stride_ == 0 || records_++ % stride_ != 0) return;
  Milestone here{.evaluations = evaluations_};
  for (const SampleOutcome& outcome : outcomes_) here.values.push_back(outcome.value);
  way_.push_back(std::move(here));
  if (way_.size() < 2 * kMilestones) return;
  for (std::size_t i = 1; i < kMilestones; ++i) way_[i] = std::move(way_[2 * i]);
  way_.resize(kMilestones);
  stride_ *= 2;
}

// Against the value at the last milestone before four fifths of the sample's work.
double Ledger::late_gain(std::size_t sample) const {
  if (way_.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (done_[sample]) return 0;
  double before = way_.front().values[sample];
  for (const Milestone& mark : way_) {
    if (5 * mark.evaluations[sample] <= 4 * evaluations_[sample]) before = mark.values[sample];
  }
  return std::abs(before - outcomes_[sample].value);
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
  if (task_.threat.tolerance) {
    probability_.resize(predicted_.size());
    rounding_.resize(predicted_.size());
  }
  AT_DISPATCH_FLOATING_TYPES(plain.scalar_type(), "read_predictions", [&] {
    const scalar_t* row = plain.data_ptr<scalar_t>();
    for (std::size_t i = 0; i < predicted_.size(); ++i, row += classes) std::tie(predicted_[i], sure_[i]) = predict(row, classes);
    if (!task_.threat.tolerance) return;
    row = plain.data_ptr<scalar_t>();
    for (std::size_t i = 0; i < predicted_.size(); ++i, row += classes) {
      std::tie(probability_[i], rounding_[i]) = probability_of(row, classes, predicted_[i]);
    }
  });
}

void Ledger::begin_component(std::string name) {
  close_component();
  components_.push_back({.name = std::move(name)});
  component_start_ = std::chrono::steady_clock::now();
}

void Ledger::close_component() {
  if (components_.empty()) return;
  components_.back().seconds = seconds_since(component_start_);
}

void Ledger::charge(std::int64_t evaluations) {
  for (std::size_t i = 0; i < done_.size(); ++i) evaluations_[i] += done_[i] ? 0 : evaluations;
  if (!components_.empty()) components_.back().evaluations += evaluations * running_;
}

void Ledger::charge(std::int64_t evaluations, const Owners& owners) {
  std::int64_t charged = 0;
  for (const std::int64_t sample : owners) {
    if (done(sample)) continue;
    evaluations_[static_cast<std::size_t>(sample)] += evaluations;
    charged += evaluations;
  }
  if (!components_.empty()) components_.back().evaluations += charged;
}

void Ledger::count_projections(std::span<const char> rows, const Owners& owners) {
  count(rows, owners, &SampleOutcome::projections);
}

void Ledger::count_non_finite(std::span<const char> rows, const Owners& owners) {
  count(rows, owners, &SampleOutcome::non_finite);
}

void Ledger::count_steps(std::span<const char> still, const Owners& owners) {
  for (std::size_t row = 0; row < still.size(); ++row) {
    if (done(owners[row])) continue;
    SampleOutcome& outcome = outcomes_[static_cast<std::size_t>(owners[row])];
    ++(still[row] ? outcome.no_gradient : outcome.followed);
  }
}

void Ledger::count(std::span<const char> rows, const Owners& owners, std::int64_t SampleOutcome::*counter) {
  if (std::find(rows.begin(), rows.end(), 1) == rows.end()) return;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row] && !done(owners[row])) ++(outcomes_[static_cast<std::size_t>(owners[row])].*counter);
  }
}

bool Ledger::finished(const Owners& owners) const {
  return std::all_of(owners.begin(), owners.end(), [&](std::int64_t sample) { return done(sample); });
}

Ledger::Owners Ledger::running() const {
  Owners result;
  for (std::size_t i = 0; i < done_.size(); ++i) {
    if (!done_[i]) result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

at::Tensor Ledger::best_points() const {
  return perturbed_.clone().to(task_.inputs.device());
}

void Ledger::stop(std::int64_t sample) {
  done_[static_cast<std::size_t>(sample)] = 1;
  --running_;
}

bool Ledger::is_worse(double value, double than) const {
  return higher_is_more_alike_ ? value < than : value > than;
}

void Ledger::record(const at::Tensor& iterates, const Explanation& explanation) {
  record(iterates, explanation, rows_);
}

void Ledger::record(const at::Tensor& iterates, const Explanation& explanation, const Owners& owners) {
  ++iteration_;
  judge_rows(iterates, explanation, owners);
  if (task_.trace) trace();
  mark();
}

void Ledger::record_start(const at::Tensor& points, const Explanation& explanation) {
  starting_ = true;
  judge_rows(points, explanation, rows_);
  starting_ = false;
  mark();
}

void Ledger::judge_rows(const at::Tensor& iterates, const Explanation& explanation, const Owners& owners) {
  HOLDFAST_CHECK(iterates.size(0) == static_cast<std::int64_t>(owners.size()));
  taken_rows_.clear();
  taken_samples_.clear();
  fold(explanation.maps);
  read_predictions(explanation.logits);
  values_.resize(owners.size());
  for (std::size_t row = 0; row < owners.size(); ++row) values_[row] = judge(static_cast<std::int64_t>(row), owners[row]);
  copy_taken(iterates);
}

void Ledger::record_again(const at::Tensor& iterates, const Explanation& explanation, const Owners& owners) {
  --iteration_;
  for (SampleOutcome& outcome : outcomes_) {
    if (!task_.trace) break;
    outcome.trace.pop_back();
    outcome.trace_evaluations.pop_back();
  }
  mending_ = true;
  record(iterates, explanation, owners);
  mending_ = false;
}

// All samples, whether they had a row or not: traces of one run have the same length.
void Ledger::trace() {
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    outcomes_[i].trace.push_back(outcomes_[i].value);
    outcomes_[i].trace_evaluations.push_back(evaluations_[i]);
  }
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

double Ledger::judge(std::int64_t row, std::int64_t position) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (done(position)) return kNone;
  const Sample& sample = samples_[static_cast<std::size_t>(position)];
  SampleOutcome& outcome = outcomes_[static_cast<std::size_t>(position)];
  if (predicted_[static_cast<std::size_t>(row)] != sample.predicted) {
    if (!mending_) ++outcome.label_flips;
    if (select_ == Select::kLast) stop(position);
    return kNone;
  }
  if (!sure_[static_cast<std::size_t>(row)] || !within_tolerance(row, sample)) return kNone;
  const auto map = map_of(row);
  if (!map) {
    ++outcome.non_finite;
    return kNone;
  }
  const double value = sample.metric->value(*map);
  if (has_top_ && outcome.first_swap < 0 && !starting_) note_swap(position, value, *map);
  if (std::isnan(value)) return kNone;
  if (select_ == Select::kLast || std::isnan(outcome.value) || is_worse(value, outcome.value)) take(position, row, value);
  if (select_ == Select::kWorst && !is_worse(floor_, value)) stop(position);
  return value;
}

// Both probabilities may be off by their rounding; what is left must hold for the verifier too.
bool Ledger::within_tolerance(std::int64_t row, const Sample& sample) const {
  if (!task_.threat.tolerance) return true;
  const double moved = std::abs(probability_[static_cast<std::size_t>(row)] - sample.probability);
  return moved + rounding_[static_cast<std::size_t>(row)] + sample.rounding <= *task_.threat.tolerance;
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
  samples_[static_cast<std::size_t>(sample)].component = static_cast<int>(components_.size()) - 1;
  taken_samples_.push_back(sample);
  taken_rows_.push_back(row);
}

std::optional<at::Tensor> Ledger::shrink() {
  return shrink(rows_);
}

std::optional<at::Tensor> Ledger::shrink(Owners& owners) {
  const auto rows = static_cast<std::int64_t>(owners.size());
  const auto over = std::count_if(owners.begin(), owners.end(), [&](std::int64_t sample) { return done(sample); });
  if (over * 8 < rows || over == rows) return std::nullopt;
  std::vector<std::int64_t> kept_rows, kept_samples;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t sample = owners[static_cast<std::size_t>(row)];
    if (done(sample)) continue;
    kept_rows.push_back(row);
    kept_samples.push_back(sample);
  }
  owners = std::move(kept_samples);
  return at::tensor(at::ArrayRef<std::int64_t>(kept_rows), at::kLong).to(task_.inputs.device());
}

AttackResult Ledger::finish() {
  close_component();
  const at::Tensor perturbed = best_points();
  AttackResult result{.perturbed = perturbed,
                      .original = task_.explainer.attribute(explain_at(task_, task_.inputs)),
                      .moved = task_.explainer.attribute(explain_at(task_, perturbed))};
  fold(result.moved.maps);
  const at::Tensor before = on_cpu(result.original.logits).to(at::kDouble), after = on_cpu(result.moved.logits).to(at::kDouble);
  const std::int64_t classes = before.size(1);
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    SampleOutcome& outcome = outcomes_[i];
    outcome.evaluations = evaluations_[i];
    const auto map = map_of(row);
    outcome.value = map ? samples_[i].metric->value(*map) : std::numeric_limits<double>::quiet_NaN();
    outcome.clean_margin = margin_of(before.data_ptr<double>() + row * classes, classes, samples_[i].predicted);
    outcome.late_gain = late_gain(i);
    outcome.margin = margin_of(after.data_ptr<double>() + row * classes, classes, samples_[i].predicted);
    if (samples_[i].component >= 0) outcome.component = components_[static_cast<std::size_t>(samples_[i].component)].name;
  }
  result.samples = std::move(outcomes_);
  result.components = std::move(components_);
  return result;
}

void look_at_start(const AttackTask& task, Ledger& ledger, const std::string& attack) {
  if (!task.start.defined() || ledger.select() != Select::kWorst || ledger.finished()) return;
  ledger.begin_component("start");
  const at::Tensor points = task.threat.admit(task.start, task.inputs);
  ledger.charge(task.explainer.evaluations(task.schema));
  ledger.record_start(points, task.explainer.attribute(explain_at(task, points)));
  if (!attack.empty()) ledger.begin_component(attack);
}

}  // namespace holdfast

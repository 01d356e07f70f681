#include "ledger.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "batch_step.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/finite.h"

namespace holdfast::attack {
std::string to_string(Select select) {
  return select == Select::kWorst ? "worst" : "last";
}

Select parse_select(const std::string& text) {
  if (text == "worst") return Select::kWorst;
  if (text == "last") return Select::kLast;
  usage_error("select: '{}' must be worst or last", text);
}

ExplainTask explain_at(const AttackTask& task, const at::Tensor& inputs) {
  return {.model = task.model, .samples = task.samples.moved_to(inputs), .seed = task.seed};
}

namespace {

std::unique_ptr<BatchJudge> judge_for(const AttackTask& task, const Explanation& clean) {
  const bool batches = task.backend == Backend::kBatch || (task.backend == Backend::kAuto && !task.samples.inputs.is_cpu());
  return batches && projects_in_batches(task.threat) ? BatchJudge::make(task, clean) : nullptr;
}

}  // namespace

Ledger::Ledger(const AttackTask& task, const Explanation& clean, Select select)
    : task_(task),
      select_(select),
      batch_judge_(judge_for(task, clean)),
      higher_is_more_alike_(task.metric.direction() == Direction::kHigherIsMoreAlike),
      has_top_(task.metric.top_count().has_value()),
      perfect_(task.metric.perfect()),
      floor_(task.metric.floor()),
      outcomes_(static_cast<std::size_t>(task.samples.count())),
      done_(outcomes_.size()),
      work_(outcomes_.size()),
      batch_(task.map_schema(), task.threat.tolerance.has_value()),
      batched_(dynamic_cast<const BatchMetric*>(&task.metric)),
      perturbed_((batch_judge_ ? task.samples.inputs.detach() : on_cpu(task.samples.inputs)).clone()),
      running_(task.samples.count()) {
  check_finite(clean, task.samples.ids, task.model, task.explainer);
  batch_.read(clean);
  samples_.reserve(outcomes_.size());
  const at::Tensor logits = on_cpu(clean.logits).to(at::kDouble);
  for (std::int64_t row = 0; row < running_; ++row) {
    const auto map = batch_.map(row);
    HOLDFAST_CHECK(map);
    Sample sample{.predicted = batch_.predicted(row)};
    if (batched_ == nullptr)
      sample.metric = task.metric.prepare(*map);
    else
      clean_maps_.insert(clean_maps_.end(), map->values.begin(), map->values.end());
    if (task.threat.tolerance) sample.probability = batch_.probability(row);
    if (has_top_ && !task.metric.perfect_means_same_top()) sample.top.emplace(task.metric.top_set(*map), map->size());
    outcomes_[static_cast<std::size_t>(row)].clean_margin =
        margin_of(logits[row].data_ptr<double>(), logits.size(1), sample.predicted);
    samples_.push_back(std::move(sample));
    rows_.push_back(row);
  }
  compare_rows(rows_);
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    outcomes_[i].value = value_of(row, row, *batch_.map(row));
    clean_values_.push_back(outcomes_[i].value);
  }
  settled_.resize(outcomes_.size());
  if (!nothing_to_break()) return;
  work_.charge_all(task.explainer.evaluations(*task.samples.schema));  // for the clean explanation
  std::fill(done_.begin(), done_.end(), 1);
  running_ = 0;
}

// One call for all rows, where the metric takes many pairs at once.
void Ledger::compare_rows(const Owners& owners, bool done_too) {
  if (batched_ == nullptr) return;
  const auto features = static_cast<std::size_t>(task_.map_schema().layout.features());
  std::vector<double> originals, perturbed;
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < owners.size(); ++row) {
    const auto map = batch_.map(static_cast<std::int64_t>(row));
    if ((done(owners[row]) && !done_too) || !map) continue;
    const double* original = clean_maps_.data() + static_cast<std::size_t>(owners[row]) * features;
    originals.insert(originals.end(), original, original + features);
    perturbed.insert(perturbed.end(), map->values.begin(), map->values.end());
    rows.push_back(row);
  }
  row_values_.assign(owners.size(), std::numeric_limits<double>::quiet_NaN());
  if (rows.empty()) return;
  const std::vector<double> values = batched_->compare_rows(originals, perturbed, task_.map_schema());
  for (std::size_t i = 0; i < rows.size(); ++i) row_values_[rows[i]] = values[i];
}

double Ledger::value_of(std::int64_t row, std::int64_t sample, const MapView& map) const {
  if (batched_ != nullptr) return row_values_[static_cast<std::size_t>(row)];
  return samples_[static_cast<std::size_t>(sample)].metric->value(map);
}

bool Ledger::nothing_to_break() const {
  const bool all_are_top = select_ == Select::kWorst && has_top_ && task_.metric.perfect_means_same_top() &&
                           *task_.metric.top_count() >= task_.map_schema().layout.features();
  return !task_.threat.can_move() || all_are_top;
}

void Ledger::keep_history() {
  history_.start();
  history_.add(work_, outcomes_);
}

double Ledger::late_gain(std::size_t sample) const {
  if (history_.is_empty()) return std::numeric_limits<double>::quiet_NaN();
  return done_[sample] && !settled_[sample] ? 0 : std::abs(history_.before_last_fifth(sample, work_) - outcomes_[sample].value);
}

void Ledger::begin_restart() {
  restarts_.push_back(clean_values_);
  restart_points_ = task_.samples.inputs.detach().to(perturbed_.options()).clone();
  in_restart_ = true;
}

void Ledger::join_restarts() {
  in_restart_ = false;
  for (const SampleOutcome& outcome : outcomes_) joined_values_.push_back(outcome.value);
}

void Ledger::leave_settled() {
  for (std::size_t i = 0; i < done_.size(); ++i) {
    if (done_[i] || outcomes_[i].value != joined_values_[i]) continue;
    settled_[i] = 1;
    stop(static_cast<std::int64_t>(i));
  }
}

double Ledger::restart_gap(std::size_t sample) const {
  if (restarts_.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (done_[sample] && !settled_[sample]) return 0;
  double gap = 0;
  for (const std::vector<double>& values : restarts_) {
    const double behind = std::abs(values[sample] - outcomes_[sample].value);
    gap = std::isnan(behind) ? behind : std::max(gap, behind);
  }
  return gap;
}

void Ledger::charge(std::int64_t evaluations) {
  work_.charge(evaluations, done_, running_);
}

void Ledger::charge(std::int64_t evaluations, const Owners& owners) {
  work_.charge(evaluations, done_, owners);
}

void Ledger::count_projections(std::span<const char> rows, const Owners& owners) {
  count(rows, owners, &SampleOutcome::projections);
}

void Ledger::count_non_finite(std::span<const char> rows, const Owners& owners) {
  count(rows, owners, &SampleOutcome::non_finite);
}

void Ledger::count_steps(std::span<const char> without_gradient, const Owners& owners) {
  for (std::size_t row = 0; row < without_gradient.size(); ++row) {
    if (done(owners[row])) continue;
    SampleOutcome& outcome = outcomes_[static_cast<std::size_t>(owners[row])];
    ++(without_gradient[row] ? outcome.no_gradient : outcome.followed);
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
  return (in_restart_ ? restart_points_ : perturbed_).clone().to(task_.samples.inputs.device());
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
  history_.add(work_, outcomes_);
}

void Ledger::record_more(const at::Tensor& iterates, const Explanation& explanation, const Owners& owners) {
  judge_rows(iterates, explanation, owners);
}

void Ledger::note_proof(std::int64_t sample, double proven, std::int64_t nodes) {
  SampleOutcome& outcome = outcomes_[static_cast<std::size_t>(sample)];
  const double now = is_worse(outcome.value, proven) ? outcome.value : proven;
  if (!is_worse(now, outcome.proven)) outcome.proven = now;  // another search may have proven more
  outcome.nodes += nodes;
  if (!done(sample) && !is_worse(outcome.proven, outcome.value)) stop(sample);
}

void Ledger::record_start(const at::Tensor& points, const Explanation& explanation) {
  starting_ = true;
  judge_rows(points, explanation, rows_);
  starting_ = false;
  history_.add(work_, outcomes_);
}

void Ledger::judge_rows(const at::Tensor& iterates, const Explanation& explanation, const Owners& owners) {
  HOLDFAST_CHECK(iterates.size(0) == static_cast<std::int64_t>(owners.size()));
  taken_.clear();
  restart_taken_.clear();
  batch_.read(explanation);
  values_.resize(owners.size());
  compare_rows(owners);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    values_[i] = judge(row, owners[i], read_row(row, owners[i]));
  }
  copy_taken(iterates);
}

void Ledger::record_judged(const at::Tensor& iterates, const JudgedRows& judged, const Owners& owners) {
  HOLDFAST_CHECK(iterates.size(0) == static_cast<std::int64_t>(owners.size()) && judged.values.size() == owners.size());
  ++iteration_;
  taken_.clear();
  restart_taken_.clear();
  values_.resize(owners.size());
  for (std::size_t row = 0; row < owners.size(); ++row) {
    const int flags = static_cast<int>(judged.flags[row]);
    values_[row] = judge(static_cast<std::int64_t>(row), owners[row],
                         {.same_class = (flags & kSameClass) != 0,
                          .preserved = (flags & kCertain) != 0,
                          .finite = (flags & kFinite) != 0,
                          .value = judged.values[row],
                          .same_top = (flags & kSameTop) != 0});
  }
  copy_taken(iterates);
  if (task_.trace) trace();
  history_.add(work_, outcomes_);
}

void Ledger::take_back_iteration() {
  --iteration_;
  for (SampleOutcome& outcome : outcomes_) {
    if (!task_.trace) break;
    outcome.trace.pop_back();
    outcome.trace_evaluations.pop_back();
  }
}

void Ledger::record_again(const at::Tensor& iterates, const Explanation& explanation, const Owners& owners) {
  take_back_iteration();
  mending_ = true;
  record(iterates, explanation, owners);
  mending_ = false;
}

void Ledger::record_judged_again(const at::Tensor& iterates, const JudgedRows& judged, const Owners& owners) {
  take_back_iteration();
  mending_ = true;
  record_judged(iterates, judged, owners);
  mending_ = false;
}

// All samples, whether they had a row or not: traces of one run have the same length.
void Ledger::trace() {
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    outcomes_[i].trace.push_back(outcomes_[i].value);
    outcomes_[i].trace_evaluations.push_back(work_.evaluations(i));
  }
}

// Row by row: few are taken, and an indexed copy costs more than they do.
void Ledger::copy_taken(const at::Tensor& iterates) const {
  taken_.copy(iterates, perturbed_);
  restart_taken_.copy(iterates, restart_points_);
}

void Ledger::Taken::copy(const at::Tensor& iterates, const at::Tensor& points) const {
  if (rows.empty()) return;
  if (!points.is_cpu()) {
    const auto index = [&](const std::vector<std::int64_t>& values) {
      return at::tensor(at::ArrayRef<std::int64_t>(values), at::kLong).to(points.device());
    };
    // Of several rows of one sample the last is the worst.
    std::vector<std::int64_t> last_rows, last_samples;
    std::vector<char> seen(static_cast<std::size_t>(points.size(0)));
    for (std::size_t i = rows.size(); i-- > 0;) {
      if (std::exchange(seen[static_cast<std::size_t>(samples[i])], 1)) continue;
      last_rows.push_back(rows[i]);
      last_samples.push_back(samples[i]);
    }
    points.index_copy_(0, index(last_samples), iterates.detach().index_select(0, index(last_rows)).to(points.options()));
    return;
  }
  const at::Tensor from = on_cpu(iterates);
  const std::size_t bytes = static_cast<std::size_t>(from.numel() / from.size(0)) * from.element_size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(static_cast<std::byte*>(points.data_ptr()) + static_cast<std::size_t>(samples[i]) * bytes,
                static_cast<const std::byte*>(from.data_ptr()) + static_cast<std::size_t>(rows[i]) * bytes, bytes);
  }
}

Ledger::Reading Ledger::read_row(std::int64_t row, std::int64_t position) const {
  const Sample& sample = samples_[static_cast<std::size_t>(position)];
  Reading reading;
  if (done(position)) return reading;
  reading.same_class = batch_.predicted(row) == sample.predicted;
  reading.preserved = reading.same_class && batch_.is_certain(row) && within_tolerance(row, sample);
  if (!reading.preserved) return reading;
  const auto map = batch_.map(row);
  reading.finite = map.has_value();
  if (!map) return reading;
  reading.value = value_of(row, position, *map);
  if (has_top_ && outcomes_[static_cast<std::size_t>(position)].first_swap < 0)
    reading.same_top = sample.top ? sample.top->holds(map->values) : reading.value == perfect_;
  return reading;
}

double Ledger::judge(std::int64_t row, std::int64_t position, const Reading& reading) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (done(position)) return kNone;
  SampleOutcome& outcome = outcomes_[static_cast<std::size_t>(position)];
  if (!reading.same_class) {
    if (!mending_) ++outcome.label_flips;
    if (select_ == Select::kLast) stop(position);
    return kNone;
  }
  if (!reading.preserved) return kNone;
  if (!reading.finite) {
    ++outcome.non_finite;
    return kNone;
  }
  const double value = reading.value;
  if (has_top_ && outcome.first_swap < 0 && !starting_ && !reading.same_top) {
    outcome.first_swap = iteration_;
    samples_[static_cast<std::size_t>(position)].top.reset();
  }
  if (std::isnan(value)) return kNone;
  if (select_ == Select::kLast || is_better_find(value, outcome.value)) take(position, row, value);
  if (in_restart_ && is_better_find(value, best_value(position))) {
    restarts_.back()[static_cast<std::size_t>(position)] = value;
    restart_taken_.rows.push_back(row);
    restart_taken_.samples.push_back(position);
  }
  if (select_ == Select::kWorst && !is_worse(floor_, value)) stop(position);
  return value;
}

// Both probabilities may be off by their rounding; what is left must hold for the verifier too.
bool Ledger::within_tolerance(std::int64_t row, const Sample& sample) const {
  if (!task_.threat.tolerance) return true;
  const BatchReading::Probability here = batch_.probability(row);
  return std::abs(here.value - sample.probability.value) + here.rounding + sample.probability.rounding <= *task_.threat.tolerance;
}

void Ledger::take(std::int64_t sample, std::int64_t row, double value) {
  outcomes_[static_cast<std::size_t>(sample)].value = value;
  outcomes_[static_cast<std::size_t>(sample)].iteration = iteration_;
  samples_[static_cast<std::size_t>(sample)].component = work_.component();
  taken_.samples.push_back(sample);
  taken_.rows.push_back(row);
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
  return at::tensor(at::ArrayRef<std::int64_t>(kept_rows), at::kLong).to(task_.samples.inputs.device());
}

AttackResult Ledger::finish() {
  work_.close_component();
  const at::Tensor perturbed = perturbed_.clone().to(task_.samples.inputs.device());
  AttackResult result{.perturbed = perturbed,
                      .original = task_.explainer.attribute(explain_at(task_, task_.samples.inputs)),
                      .moved = task_.explainer.attribute(explain_at(task_, perturbed))};
  batch_.read_maps(result.moved.maps);
  Owners everyone(samples_.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  compare_rows(everyone, /*done_too=*/true);
  const at::Tensor before = on_cpu(result.original.logits).to(at::kDouble), after = on_cpu(result.moved.logits).to(at::kDouble);
  const std::int64_t classes = before.size(1);
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    SampleOutcome& outcome = outcomes_[i];
    outcome.evaluations = work_.evaluations(i);
    const auto map = batch_.map(row);
    outcome.value = map ? value_of(row, row, *map) : std::numeric_limits<double>::quiet_NaN();
    outcome.clean_margin = margin_of(before.data_ptr<double>() + row * classes, classes, samples_[i].predicted);
    outcome.late_gain = late_gain(i);
    outcome.restart_gap = restart_gap(i);
    outcome.margin = margin_of(after.data_ptr<double>() + row * classes, classes, samples_[i].predicted);
    if (samples_[i].component >= 0) outcome.component = work_.component_name(samples_[i].component);
  }
  result.samples = std::move(outcomes_);
  result.components = work_.take_components();
  return result;
}

void look_at_start(const AttackTask& task, Ledger& ledger, const std::string& attack) {
  if (!task.start.defined() || ledger.select() != Select::kWorst || ledger.finished()) return;
  ledger.begin_component("start");
  const at::Tensor points = task.threat.admit(task.start, task.samples.inputs);
  ledger.charge(task.explainer.evaluations(*task.samples.schema));
  ledger.record_start(points, task.explainer.attribute(explain_at(task, points)));
  if (!attack.empty()) ledger.begin_component(attack);
}

}  // namespace holdfast::attack

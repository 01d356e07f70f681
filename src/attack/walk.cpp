#include "walk.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "batch_step.h"
#include "descend.h"
#include "feature_maps.h"
#include "holdfast/core/device_graph.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/linear_chain.h"
#include "replay_queue.h"
#include "rows.h"

namespace holdfast::attack {
namespace {

at::Tensor rows_at(const at::Tensor& tensor, const at::Tensor& rows) {
  return tensor.index_select(0, rows.to(tensor.device()));
}

class FixedCotangent final : public Descent {
 public:
  explicit FixedCotangent(at::Tensor cotangent) : cotangent_(std::move(cotangent)) {}
  at::Tensor gradient(Linearization& here, const ExplainTask&) override { return here.pullback(cotangent_); }
  bool is_repeatable() const override { return true; }
  void keep(const at::Tensor& rows) override { cotangent_ = rows_at(cotangent_, rows); }

 private:
  at::Tensor cotangent_;
};

class Walk {
 public:
  Walk(const AttackTask& task, Ledger& ledger, Descent& descent, const WalkRules& rules, Walkers walkers)
      : task_(task),
        ledger_(ledger),
        descent_(descent),
        rules_(rules),
        walkers_(std::move(walkers)),
        passes_(task.explainer.evaluations(*task.samples.schema)),
        judges_where_it_walks_(!rules.surrogate && !task.threat.valid && !rules.fresh_noise &&
                               task.precision != Precision::kBf16),
        judge_(ledger.batch_judge()) {
    update_owners();
  }

  void run(std::unique_ptr<Linearization> here) {
    here_ = std::move(here);
    if (rules_.judge_start) judge();
    for (std::int64_t i = can_be_recorded() ? run_recorded() : 0; i < rules_.steps && !ledger_.finished(walkers_.owners); ++i) {
      throw_if_interrupted();
      at::Tensor gradient = gradient_at(i);
      here_.reset();  // one graph at a time
      if (queue_.is_empty()) {
        if (const auto kept = ledger_.shrink(walkers_.owners)) keep(*kept, gradient);
      }
      if (rules_.momentum > 0) gradient = velocity_ = with_momentum(gradient);
      step(gradient, rules_.step_length(i));
      judge();
      queue_.end_step();
      if (queue_.is_full()) queue_.run();
    }
    queue_.run();
  }

 private:
  // Whether every step is the same work on the device: one pass, one length, nothing that the host has a part in.
  bool can_be_recorded() const {
    return judge_ != nullptr && judges_where_it_walks_ && !rules_.judge_start && rules_.first_step == rules_.last_step &&
           rules_.momentum == 0 && rules_.hinge == 0 && descent_.is_repeatable() && passes_ == 1 &&
           task_.model.network() != nullptr && task_.threat.frozen.empty() && task_.samples.schema->groups.empty() &&
           DeviceGraph::is_available(task_.samples.inputs);
  }

  // Takes steps that are recorded once and repeated, and returns how many. A repetition judges the point where it is and goes on
  // from there; so the last point is judged by itself. Fewer rows are recorded anew, unless few steps are left.
  std::int64_t run_recorded() {
    std::int64_t i = 0;
    while (rules_.steps - i >= kFewestRecorded && !ledger_.finished(walkers_.owners)) {
      const at::Tensor points = walkers_.points.clone();
      const std::int64_t rows = points.size(0);
      at::Tensor numbers = at::empty({3 * rows}, points.options().dtype(at::kDouble));  // judged, and the step's flags
      const auto graph = DeviceGraph::record(points, [&] {
        ExplainTask at = point();
        at.samples.inputs = points;
        const std::unique_ptr<Linearization> here = task_.explainer.linearize(at);
        const at::Tensor judged = judge_->read(here->at(), owners_on_device_);
        const BatchStep step = descend_batch(task_.threat, points, direction(*here, at), walkers_.clean, rules_.first_step);
        at::cat_out(numbers, {judged.flatten(), step.flags});
        points.copy_(step.next);
      });
      if (graph == nullptr) break;
      points.copy_(walkers_.points);
      for (; i < rules_.steps && !ledger_.finished(walkers_.owners); ++i) {
        throw_if_interrupted();
        const at::Tensor before = i > 0 ? points.clone() : at::Tensor();
        graph->replay();
        const at::Tensor now = numbers.clone();
        if (i > 0) {
          charge(passes_);
          record_numbers(before, now.narrow(0, 0, 2 * rows), owners_, /*again=*/false);
        }
        charge(2 * passes_ * descent_.pullbacks() + (i == 0 && !here_ ? passes_ : 0));
        note_step(now.narrow(0, 2 * rows, rows));
        queue_.end_step();
        if (!queue_.is_full()) continue;
        queue_.run();
        if (auto kept = ledger_.shrink(walkers_.owners)) {
          walkers_.points = points.clone();
          at::Tensor none = walkers_.points;
          keep(*kept, none);
          ++i;
          break;
        }
      }
      if (walkers_.points.size(0) == points.size(0)) walkers_.points = points.clone();
    }
    queue_.run();
    here_.reset();
    if (i > 0 && !ledger_.finished(walkers_.owners)) judge();
    return i;
  }
  static constexpr std::int64_t kFewestRecorded = 24;

  using OwnersPointer = std::shared_ptr<const Ledger::Owners>;

  // Does something with the ledger: at once by rows, in batches when the numbers it needs have come from the device. Samples that
  // were done by then are left alone, as if the walk had stopped for them.
  void later(const at::Tensor& numbers, ReplayQueue::Work work, std::int64_t bytes = 0) {
    if (judge_ == nullptr) {
      work({});
    } else {
      queue_.add(numbers, std::move(work), bytes);
    }
  }

  void charge(std::int64_t evaluations) {
    later({}, [this, evaluations, owners = owners_](auto) { ledger_.charge(evaluations, *owners); });
  }

  void step(const at::Tensor& gradient, double length) {
    if (judge_ == nullptr) {
      walkers_.points = descend(task_.threat, walkers_.points, gradient, walkers_.clean, length, notes_);
      count_step();
      return;
    }
    BatchStep taken = descend_batch(task_.threat, walkers_.points, gradient, walkers_.clean, length);
    walkers_.points = std::move(taken.next);
    note_step(taken.flags);
  }
  void note_step(const at::Tensor& of_rows) {
    later(of_rows, [this, owners = owners_](std::span<const double> flags) {
      const auto read = [&](std::vector<char>& rows, StepFlag flag) {
        rows.clear();
        for (const double sum : flags) rows.push_back((static_cast<int>(sum) & flag) != 0 ? 1 : 0);
      };
      read(notes_.projected, kProjected);
      read(notes_.broken, kBroken);
      read(notes_.without_gradient, kWithoutGradient);
      count_step(*owners);
    });
  }
  void count_step() { count_step(walkers_.owners); }
  void count_step(const Ledger::Owners& owners) {
    ledger_.count_projections(notes_.projected, owners);
    ledger_.count_non_finite(notes_.broken, owners);
    ledger_.count_steps(notes_.without_gradient, owners);
  }

  // The rows' samples, as those who do something later keep them, and on the device.
  void update_owners() {
    if (judge_ != nullptr) {
      owners_on_device_ = at::tensor(at::ArrayRef<std::int64_t>(walkers_.owners), at::kLong).to(task_.samples.inputs.device());
    }
    owners_ = std::make_shared<const Ledger::Owners>(walkers_.owners);
    kept_.reset();
  }

  // Hands rows to the ledger. `again`: they were mended, and belong to the iteration before.
  void record(const at::Tensor& points, const Explanation& there, const OwnersPointer& owners, const at::Tensor& on_device,
              bool again) {
    if (judge_ == nullptr) {
      again ? ledger_.record_again(points, there, *owners) : ledger_.record(points, there, *owners);
      return;
    }
    record_numbers(points, judge_->read(there, on_device), owners, again);
  }
  void record_numbers(const at::Tensor& points, const at::Tensor& judged_rows, const OwnersPointer& owners, bool again) {
    later(
        judged_rows,
        [this, points, owners, again](std::span<const double> numbers) {
          if (ledger_.finished(walkers_.owners)) return;
          const JudgedRows judged{numbers.first(owners->size()), numbers.last(owners->size())};
          again ? ledger_.record_judged_again(points, judged, *owners) : ledger_.record_judged(points, judged, *owners);
        },
        static_cast<std::int64_t>(points.nbytes()));
  }

  ExplainTask point() const {
    ExplainTask point = explain_at(task_, walkers_.points);
    point.samples.targets = walkers_.targets;
    point.samples.ids = walkers_.ids;
    point.keep_signs = true;
    return point;
  }

  // The gradient in the precision of directions. What `here` says of its point was found before, in full precision, unless the
  // point is judged apart from it.
  at::Tensor direction(Linearization& here, const ExplainTask& at) {
    const PrecisionGuard lower(task_.precision);
    return descent_.gradient(here, at);
  }

  at::Tensor gradient_at(std::int64_t step) {
    ExplainTask at = point();
    if (rules_.surrogate) at.rule = rules_.surrogate(step);
    if (rules_.fresh_noise) at.seed = derived_seed(task_.seed, "walk.noise", static_cast<std::uint64_t>(step));
    std::int64_t cost = 2 * passes_ * descent_.pullbacks();
    if (!here_) {
      const PrecisionGuard lower(task_.precision);
      here_ = task_.explainer.linearize(at);
      cost += passes_;
    }
    charge(cost);
    at::Tensor gradient = direction(*here_, at);
    if (rules_.momentum > 0 || rules_.hinge > 0) leave_out_non_finite(gradient);
    return rules_.hinge > 0 ? with_label(gradient, at) : gradient;
  }

  // What must be kept of each row, [rows]: its clean class and, where the threat model has a tolerance, the bounds of that
  // class's log-odds, or of the value. `room` is how far the clean sample is from losing it.
  struct Kept {
    at::Tensor classes, low, high, room;
    Kept of(const at::Tensor& rows) const {
      return {rows_at(classes, rows), rows_at(low, rows), rows_at(high, rows), rows_at(room, rows)};
    }
  };
  const Kept& kept(const at::Tensor& logits) {
    if (kept_) return *kept_;
    std::vector<std::int64_t> classes;
    std::vector<double> low, high, room;
    for (const std::int64_t sample : walkers_.owners) {
      const double p = ledger_.clean_probability(sample), tolerance = task_.threat.tolerance.value_or(1);
      classes.push_back(ledger_.predicted(sample));
      room.push_back(ledger_.clean_margin(sample));
      if (is_value(logits)) {
        const bool held = task_.threat.tolerance.has_value();
        low.push_back(held ? p - tolerance : -kInfinity);
        high.push_back(held ? p + tolerance : kInfinity);
        if (held) room.back() = tolerance;
        continue;
      }
      low.push_back(tolerance < p ? log_odds(p - tolerance) : -kInfinity);
      high.push_back(tolerance < 1 - p ? log_odds(p + tolerance) : kInfinity);
      if (task_.threat.tolerance) room.back() = std::min({room.back(), log_odds(p) - low.back(), high.back() - log_odds(p)});
    }
    const auto numbers = [&](const std::vector<double>& values) {
      return at::tensor(at::ArrayRef<double>(values), at::kDouble).to(task_.samples.inputs.options());
    };
    kept_ = Kept{at::tensor(at::ArrayRef<std::int64_t>(classes), at::kLong).to(task_.samples.inputs.device()), numbers(low),
                 numbers(high), numbers(room)};
    return *kept_;
  }
  // Whether the model gives a value, not classes.
  static bool is_value(const at::Tensor& logits) { return logits.size(1) == 1; }
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static double log_odds(double p) { return std::log(p) - std::log1p(-p); }

  // How far each row is from losing what must be kept, in logits.
  at::Tensor margins(const at::Tensor& logits, const Kept& kept) const {
    const at::Tensor own = logits.gather(1, kept.classes.unsqueeze(1)).squeeze(1);
    if (is_value(logits)) return at::minimum(own - kept.low, kept.high - own);
    const at::Tensor others = logits.scatter(1, kept.classes.unsqueeze(1), -kInfinity);
    const at::Tensor margin = own - others.amax(1);
    if (!task_.threat.tolerance) return margin;
    const at::Tensor odds = own - others.logsumexp(1);
    return at::minimum(margin, at::minimum(odds - kept.low, kept.high - odds));
  }
  // Gradient of the margin by the inputs, for some rows; `there` are their logits, where they are known.
  at::Tensor margin_gradient(const at::Tensor& rows, const at::Tensor& there, const Kept& kept, const Rule& rule) const {
    const at::AutoGradMode with_graph(true);
    const at::Tensor points = rows_at(walkers_.points, rows).detach();
    if (const Network* network = task_.model.network(); network != nullptr && there.defined() && there.is_cpu()) {
      const at::Tensor logits = there.detach().requires_grad_();
      const at::Tensor cotangent = torch::autograd::grad({margins(logits, kept.of(rows)).sum()}, {logits})[0];
      const at::Tensor gradient = chain_input_gradient(*network, rule, points, cotangent.contiguous());
      if (gradient.defined()) return gradient;
    }
    const at::Tensor inputs = points.requires_grad_();
    const at::Tensor logits = rule.softplus_beta.empty() ? task_.model.logits(inputs) : task_.model.logits(inputs, rule);
    return torch::autograd::grad({margins(logits, kept.of(rows)).sum()}, {inputs})[0];
  }
  void charge_rows(const OwnersPointer& owners, std::int64_t evaluations) {
    later({}, [this, evaluations, owners](auto) { ledger_.charge(evaluations, *owners); });
  }
  OwnersPointer owners_of(const at::Tensor& rows) const {
    Ledger::Owners owners;
    const at::Tensor plain = rows.cpu().contiguous();
    for (std::int64_t i = 0; i < plain.numel(); ++i)
      owners.push_back(walkers_.owners[static_cast<std::size_t>(plain.data_ptr<std::int64_t>()[i])]);
    return std::make_shared<const Ledger::Owners>(std::move(owners));
  }

  at::Tensor with_label(const at::Tensor& gradient, const ExplainTask& at) {
    const Kept& kept = this->kept(here_->at().logits);
    const at::Tensor limit = (kHingeShare * kept.room).clamp_max(rules_.hinge);
    const at::Tensor rows = (margins(here_->at().logits, kept) < limit).nonzero().squeeze(1);
    if (rows.numel() == 0) return gradient;
    charge_rows(owners_of(rows), 1);
    at::Tensor direction = scaled_to_one(gradient);
    return direction.index_add_(0, rows, scaled_to_one(margin_gradient(rows, rows_at(here_->at().logits, rows), kept, at.rule)),
                                /*alpha=*/-1);
  }

  // One Newton step to a margin of `repair`, by the shortest way in the threat's norm, for the rows that are below.
  void repair(const at::Tensor& logits) {
    const Kept& kept = this->kept(logits);
    const at::Tensor margin = margins(logits, kept), wanted = (kRepairShare * kept.room).clamp_max(rules_.repair);
    const at::Tensor rows = (margin < wanted).nonzero().squeeze(1);
    if (rows.numel() == 0) return;
    // Points that were made valid are judged elsewhere than where they walk.
    const at::Tensor there = task_.threat.valid ? at::Tensor() : rows_at(logits, rows);
    const at::Tensor gradient = task_.threat.hold_frozen(margin_gradient(rows, there, kept, {}));
    const at::Tensor missing = 1.001 * rows_at(wanted - margin, rows);
    const bool corners = task_.threat.norm == Norm::kLinf;
    const at::Tensor size = corners ? gradient.flatten(1).abs().sum(1) : gradient.flatten(1).square().sum(1);
    const at::Tensor length = (missing / size.clamp_min(std::numeric_limits<float>::min())).to(gradient.dtype());
    const at::Tensor step = per_row(length, gradient.dim()) * (corners ? gradient.sign() : gradient);
    const at::Tensor clean = rows_at(walkers_.clean, rows);
    const at::Tensor moved = task_.threat.project(rows_at(walkers_.points, rows) + step, clean);
    walkers_.points = walkers_.points.index_copy(0, rows.to(walkers_.points.device()), moved);
    ExplainTask judged = explain_at(task_, task_.threat.admit(moved, clean));
    judged.samples.targets = rows_at(walkers_.targets, rows);
    judged.samples.ids = rows_at(walkers_.ids, rows);
    const OwnersPointer owners = owners_of(rows);
    charge_rows(owners, 1 + passes_);
    record(judged.samples.inputs, task_.explainer.attribute(judged), owners,
           judge_ != nullptr ? rows_at(owners_on_device_, rows) : at::Tensor(), /*again=*/true);
  }

  void judge() {
    charge(passes_);
    if (judges_where_it_walks_) {
      here_ = task_.explainer.linearize(point());
      record(walkers_.points, here_->at(), owners_, owners_on_device_, /*again=*/false);
      return;
    }
    ExplainTask judged = point();
    judged.samples.inputs = task_.threat.admit(walkers_.points, walkers_.clean);
    const Explanation there = task_.explainer.attribute(judged);
    record(judged.samples.inputs, there, owners_, owners_on_device_, /*again=*/false);
    if (rules_.repair > 0 && rules_.surrogate) repair(there.logits);
  }

  void keep(const at::Tensor& rows, at::Tensor& gradient) {
    walkers_.keep(rows);
    update_owners();
    descent_.keep(rows);
    gradient = rows_at(gradient, rows);
    if (velocity_.defined()) velocity_ = rows_at(velocity_, rows);
  }

  // At a kink a gradient may have elements that are not finite. descend() leaves them out and notes them; where the gradient is
  // mixed with others before, they must not spread.
  void leave_out_non_finite(at::Tensor& gradient) {
    if (judge_ != nullptr) {
      const at::Tensor broken = gradient.isfinite().logical_not().flatten(1).any(1).to(at::kDouble);
      later(broken, [this, owners = owners_](std::span<const double> flags) {
        const std::vector<char> rows(flags.begin(), flags.end());
        ledger_.count_non_finite(rows, *owners);
      });
      gradient = gradient.nan_to_num(0, 0, 0);
      return;
    }
    if (std::isfinite(gradient.sum().item<double>())) return;
    const at::Tensor broken = gradient.isfinite().logical_not().flatten(1).any(1).to(at::kChar).cpu().contiguous();
    ledger_.count_non_finite({reinterpret_cast<const char*>(broken.data_ptr<std::int8_t>()), walkers_.owners.size()},
                             walkers_.owners);
    gradient = gradient.nan_to_num(0, 0, 0);
  }

  static at::Tensor scaled_to_one(const at::Tensor& gradient) {
    const at::Tensor size = gradient.flatten(1).abs().sum(1).clamp_min(std::numeric_limits<float>::min());
    return gradient / per_row(size, gradient.dim());
  }

  at::Tensor with_momentum(const at::Tensor& gradient) const {
    if (gradient.is_cpu() && (gradient.scalar_type() == at::kFloat || gradient.scalar_type() == at::kDouble))
      return mixed_rows(gradient.contiguous());
    const at::Tensor fresh = scaled_to_one(gradient);
    return velocity_.defined() ? rules_.momentum * velocity_ + fresh : fresh;
  }

  // The same in one pass.
  at::Tensor mixed_rows(const at::Tensor& gradient) const {
    const at::Tensor before = velocity_.defined() ? velocity_.contiguous() : at::Tensor();
    at::Tensor next = at::empty_like(gradient);
    AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "with_momentum", [&] {
      rows::mix<scalar_t>(rows_of(gradient), rules_.momentum, before.defined() ? before.const_data_ptr<scalar_t>() : nullptr,
                          gradient.const_data_ptr<scalar_t>(), next.mutable_data_ptr<scalar_t>());
    });
    return next;
  }

  const AttackTask& task_;
  Ledger& ledger_;
  Descent& descent_;
  const WalkRules& rules_;
  Walkers walkers_;
  const std::int64_t passes_;
  const bool judges_where_it_walks_;
  const BatchJudge* judge_;  // null where rows are judged on the host
  ReplayQueue queue_;
  OwnersPointer owners_;
  at::Tensor owners_on_device_;
  std::optional<Kept> kept_;
  std::unique_ptr<Linearization> here_;
  at::Tensor velocity_;
  StepNotes notes_;
};

}  // namespace

std::unique_ptr<Descent> fixed_cotangent(at::Tensor cotangent) {
  return std::make_unique<FixedCotangent>(std::move(cotangent));
}

double WalkRules::step_length(std::int64_t step) const {
  if (first_step == last_step || steps == 1) return first_step;
  const double way = static_cast<double>(step) / static_cast<double>(steps - 1);
  return last_step + (first_step - last_step) * (1 + std::cos(std::numbers::pi * way)) / 2;
}

Walkers Walkers::of(const AttackTask& task) {
  Walkers all{
      .points = task.samples.inputs, .clean = task.samples.inputs, .targets = task.samples.targets, .ids = task.samples.ids};
  all.owners.resize(static_cast<std::size_t>(task.samples.inputs.size(0)));
  std::iota(all.owners.begin(), all.owners.end(), 0);
  return all;
}

Walkers Walkers::of(const AttackTask& task, Ledger::Owners owners, at::Tensor points) {
  const at::Tensor rows = at::tensor(at::ArrayRef<std::int64_t>(owners), at::kLong);
  return {.owners = std::move(owners),
          .points = std::move(points),
          .clean = rows_at(task.samples.inputs, rows),
          .targets = rows_at(task.samples.targets, rows),
          .ids = rows_at(task.samples.ids, rows)};
}

void Walkers::keep(const at::Tensor& rows) {
  for (at::Tensor* tensor : {&points, &clean, &targets, &ids}) *tensor = rows_at(*tensor, rows);
}

void walk(const AttackTask& task, Ledger& ledger, Descent& descent, const WalkRules& rules, Walkers walkers,
          std::unique_ptr<Linearization> here) {
  Walk(task, ledger, descent, rules, std::move(walkers)).run(std::move(here));
}

}  // namespace holdfast::attack

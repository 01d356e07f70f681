#include "walk.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "descend.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"

namespace holdfast {
namespace {

at::Tensor rows_at(const at::Tensor& tensor, const at::Tensor& rows) {
  return tensor.index_select(0, rows.to(tensor.device()));
}

class FixedCotangent final : public Descent {
 public:
  explicit FixedCotangent(at::Tensor cotangent) : cotangent_(std::move(cotangent)) {}
  at::Tensor gradient(Linearization& here, const ExplainTask&) override { return here.pullback(cotangent_); }
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
        passes_(task.explainer.evaluations()),
        judges_where_it_walks_(!rules.surrogate && !task.threat.valid) {}

  void run(std::unique_ptr<Linearization> here) {
    here_ = std::move(here);
    if (rules_.judge_start) judge();
    for (std::int64_t i = 0; i < rules_.steps && !ledger_.finished(walkers_.owners); ++i) {
      throw_if_interrupted();
      at::Tensor gradient = gradient_at(i);
      here_.reset();  // one graph at a time
      if (const auto kept = ledger_.shrink(walkers_.owners)) keep(*kept, gradient);
      leave_out_non_finite(gradient);
      if (rules_.momentum > 0) gradient = velocity_ = with_momentum(gradient);
      walkers_.points = descend(task_.threat, walkers_.points, gradient, walkers_.clean, rules_.step_length(i), &projected_);
      ledger_.count_projections(projected_, walkers_.owners);
      judge();
    }
  }

 private:
  ExplainTask point() const {
    ExplainTask point = explain_at(task_, walkers_.points);
    point.targets = walkers_.targets;
    point.sample_ids = walkers_.ids;
    point.keep_signs = true;
    return point;
  }

  at::Tensor gradient_at(std::int64_t step) {
    ExplainTask at = point();
    if (rules_.surrogate) at.rule = rules_.surrogate(step);
    std::int64_t cost = 2 * passes_ * descent_.pullbacks();
    if (!here_) {
      here_ = task_.explainer.linearize(at);
      cost += passes_;
    }
    ledger_.charge(cost, walkers_.owners);
    return descent_.gradient(*here_, at);
  }

  void judge() {
    ledger_.charge(passes_, walkers_.owners);
    if (judges_where_it_walks_) {
      here_ = task_.explainer.linearize(point());
      ledger_.record(walkers_.points, here_->at(), walkers_.owners);
      return;
    }
    ExplainTask judged = point();
    judged.inputs = task_.threat.admit(walkers_.points, walkers_.clean);
    ledger_.record(judged.inputs, task_.explainer.attribute(judged), walkers_.owners);
  }

  void keep(const at::Tensor& rows, at::Tensor& gradient) {
    walkers_.keep(rows);
    descent_.keep(rows);
    gradient = rows_at(gradient, rows);
    if (velocity_.defined()) velocity_ = rows_at(velocity_, rows);
  }

  // At a kink a gradient may have elements that are no number: they are counted, and the step goes along the others.
  void leave_out_non_finite(at::Tensor& gradient) {
    if (std::isfinite(gradient.sum().item<double>())) return;
    const at::Tensor broken = gradient.isfinite().logical_not().flatten(1).any(1).to(at::kChar).cpu().contiguous();
    ledger_.count_non_finite({reinterpret_cast<const char*>(broken.data_ptr<std::int8_t>()), walkers_.owners.size()},
                             walkers_.owners);
    gradient = gradient.nan_to_num(0, 0, 0);
  }

  at::Tensor with_momentum(const at::Tensor& gradient) const {
    std::vector<std::int64_t> one_a_row(static_cast<std::size_t>(gradient.dim()), 1);
    one_a_row[0] = gradient.size(0);
    const at::Tensor size = gradient.flatten(1).abs().sum(1).clamp_min(std::numeric_limits<float>::min()).view(one_a_row);
    return velocity_.defined() ? rules_.momentum * velocity_ + gradient / size : gradient / size;
  }

  const AttackTask& task_;
  Ledger& ledger_;
  Descent& descent_;
  const WalkRules& rules_;
  Walkers walkers_;
  const std::int64_t passes_;
  const bool judges_where_it_walks_;
  std::unique_ptr<Linearization> here_;
  at::Tensor velocity_;
  std::vector<char> projected_;
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
  Walkers all{.points = task.inputs, .clean = task.inputs, .targets = task.targets, .ids = task.sample_ids};
  all.owners.resize(static_cast<std::size_t>(task.inputs.size(0)));
  std::iota(all.owners.begin(), all.owners.end(), 0);
  return all;
}

Walkers Walkers::of(const AttackTask& task, Ledger::Owners owners, at::Tensor points) {
  const at::Tensor rows = at::tensor(at::ArrayRef<std::int64_t>(owners), at::kLong);
  return {.owners = std::move(owners),
          .points = std::move(points),
          .clean = rows_at(task.inputs, rows),
          .targets = rows_at(task.targets, rows),
          .ids = rows_at(task.sample_ids, rows)};
}

void Walkers::keep(const at::Tensor& rows) {
  for (at::Tensor* tensor : {&points, &clean, &targets, &ids}) *tensor = rows_at(*tensor, rows);
}

void walk(const AttackTask& task, Ledger& ledger, Descent& descent, const WalkRules& rules, Walkers walkers,
          std::unique_ptr<Linearization> here) {
  Walk(task, ledger, descent, rules, std::move(walkers)).run(std::move(here));
}

}  // namespace holdfast

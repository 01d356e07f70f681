#include "holdfast/attack/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack {
namespace {

// What rounding may add to a change of a probability.
constexpr double kProbabilityTolerance = 1e-6;

at::Tensor plain_rows(const at::Tensor& tensor) {
  return tensor.detach().cpu().to(at::kDouble).reshape({tensor.size(0), -1}).contiguous();
}

class Verifier {
 public:
  Verifier(const ThreatModel& threat, const at::Tensor& sample_ids, const std::string& attack)
      : threat_(threat), ids_(sample_ids.cpu()), attack_(attack) {
    if (threat.valid) groups_ = threat.valid->groups;
    if (threat.switches) groups_ = threat.switches->groups;
  }

  template <class... Args>
  [[noreturn]] void fail(std::int64_t row, fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorKind::kBug, fmt::format("{}: sample {} {}; this is a bug in the attack", attack_,
                                             ids_[row].item<std::int64_t>(), fmt::format(format, std::forward<Args>(args)...)));
  }

  // Norm of the row's perturbation, once it and the row itself are found to be allowed.
  double check_row(std::int64_t row, const double* clean, const double* perturbed, std::int64_t n) const {
    double sum_of_squares = 0, sum = 0, largest = 0, size = 0;
    const std::int64_t part = n / threat_.blocks;
    const std::vector<bool> in_group = columns_of_groups(n);
    for (std::int64_t i = 0; i < n; ++i) {
      if (i % part == 0) sum_of_squares = sum = largest = 0;  // the next token's ball
      if (!std::isfinite(perturbed[i])) fail(row, "has element {} that is not finite", i);
      const double move = std::abs(perturbed[i] - clean[i]);
      if (move > 0) check_element(row, i, perturbed[i], in_group[static_cast<std::size_t>(i)]);
      if (threat_.switches && in_group[static_cast<std::size_t>(i)]) continue;  // switches take nothing of the ball
      sum_of_squares += move * move;
      sum += move;
      largest = std::max(largest, move);
      size = std::max(size, threat_.norm == Norm::kL2 ? std::sqrt(sum_of_squares) : threat_.norm == Norm::kL1 ? sum : largest);
    }
    if (size > threat_.epsilon * (1 + kBallTolerance)) {
      fail(row, "moved by {} in {}, epsilon is {}", size, to_string(threat_.norm), threat_.epsilon);
    }
    if (threat_.non_negative) check_signs(row, clean, perturbed, n);
    check_levels(row, clean, perturbed);
    return size;
  }

 private:
  std::vector<bool> columns_of_groups(std::int64_t n) const {
    std::vector<bool> in_group(static_cast<std::size_t>(n), false);
    for (const auto& group : groups_) {
      for (const std::int64_t column : group) in_group[static_cast<std::size_t>(column)] = true;
    }
    return in_group;
  }

  // The ball holds groups that may switch; the schema may freeze some of their levels.
  bool may_not_move(std::int64_t i, bool in_group) const {
    if (!threat_.switches || !in_group) return threat_.is_frozen(i);
    return !threat_.switches->held.empty() && threat_.switches->held[static_cast<std::size_t>(i)];
  }

  void check_element(std::int64_t row, std::int64_t i, double value, bool in_group) const {
    if (may_not_move(i, in_group)) fail(row, "moved element {}, which is frozen", i);
    if (threat_.box) check_range(row, i, value, *threat_.box, "the box");
    if (threat_.valid && !in_group) check_number(row, i, value);
  }

  void check_range(std::int64_t row, std::int64_t i, double value, std::pair<double, double> range, const char* what) const {
    const auto [low, high] = range;
    const double slack = kBallTolerance * std::max(std::abs(low), std::abs(high));
    if (value < low - slack || value > high + slack)
      fail(row, "has element {} at {}, outside {} {} to {}", i, value, what, low, high);
  }

  void check_number(std::int64_t row, std::int64_t i, double value) const {
    const auto at = static_cast<std::size_t>(i);
    const double low = threat_.valid->low[at], high = threat_.valid->high[at], step = threat_.valid->step[at];
    check_range(row, i, value, {low, high}, "its range");
    if (step == 0) return;
    const double off = std::abs(std::remainder(value - low, step));
    if (off > kBallTolerance * std::max({std::abs(low), std::abs(high), step}))
      fail(row, "has element {} at {}, which is not {} plus a multiple of {}", i, value, low, step);
  }

  // A group that moved at all has one column at 1 and the others at 0; no more groups moved than may switch.
  void check_levels(std::int64_t row, const double* clean, const double* perturbed) const {
    std::int64_t switched = 0;
    for (const auto& group : groups_) {
      std::int64_t moved = 0, ones = 0, zeros = 0;
      for (const std::int64_t column : group) {
        moved += perturbed[column] != clean[column];
        ones += perturbed[column] == 1;
        zeros += perturbed[column] == 0;
      }
      if (moved > 0 && (ones != 1 || ones + zeros != static_cast<std::int64_t>(group.size())))
        fail(row, "is no valid row: the one-hot group of element {} has {} columns at 1 and {} at 0", group[0], ones, zeros);
      switched += moved > 0;
    }
    if (threat_.switches && switched > threat_.switches->most)
      fail(row, "has {} categories at another level, {} may switch", switched, threat_.switches->most);
  }

  void check_signs(std::int64_t row, const double* clean, const double* perturbed, std::int64_t n) const {
    if (std::any_of(clean, clean + n, [](double value) { return value < 0; })) return;
    for (std::int64_t i = 0; i < n; ++i) {
      if (perturbed[i] < 0) fail(row, "has element {} at {}; the clean sample has no negative ones", i, perturbed[i]);
    }
  }

  const ThreatModel& threat_;
  at::Tensor ids_;
  std::vector<std::vector<std::int64_t>> groups_;  // that must be one-hot where they moved
  const std::string& attack_;
};

// Position of the largest logit (the first on ties), and how far `chosen` lies above all others.
struct Reading {
  std::int64_t predicted = 0;
  double margin = 0;
};
Reading read(const double* logits, std::int64_t classes, std::int64_t chosen) {
  Reading reading{.margin = std::numeric_limits<double>::infinity()};
  for (std::int64_t c = 0; c < classes; ++c) {
    if (logits[c] > logits[reading.predicted]) reading.predicted = c;
    if (c != chosen) reading.margin = std::min(reading.margin, logits[chosen] - logits[c]);
  }
  return reading;
}

// Softmax probability of a class; the value of a model that gives one.
double probability(const double* logits, std::int64_t classes, std::int64_t chosen) {
  if (classes == 1) return logits[0];
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - logits[chosen]);
  return 1 / sum;
}

// Whether the first row's logits are others in some larger batch. Attacks ask for many points of a sample at once, in batches
// larger than those in which the samples were tried before.
bool depends_on_others(const Model& model, const at::Tensor& rows) {
  if (model.network() != nullptr) return false;
  constexpr std::int64_t kMostRows = 4096, kMostElements = std::int64_t{1} << 26;
  const at::Tensor alone = plain_rows(model.logits(rows.slice(0, 0, 1)));
  for (std::int64_t count = 2; count <= kMostRows && count * rows[0].numel() <= kMostElements; count *= 2) {
    std::vector<std::int64_t> repeats(static_cast<std::size_t>(rows.dim()), 1);
    repeats[0] = (count + rows.size(0) - 1) / rows.size(0);
    const at::Tensor among = plain_rows(model.logits(rows.repeat(repeats).slice(0, 0, count))).slice(0, 0, 1);
    if ((among - alone).abs().max().item<double>() > 1e-3 * (1 + alone.abs().max().item<double>())) return true;
  }
  return false;
}

}  // namespace

Verification verify(const Model& model, const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& perturbed,
                    const at::Tensor& sample_ids, const std::string& attack) {
  HOLDFAST_CHECK(clean.sizes() == perturbed.sizes());
  const at::NoGradGuard no_graph;
  const Verifier verifier(threat, sample_ids, attack);
  const at::Tensor before = plain_rows(clean), after = plain_rows(perturbed);
  const std::unique_ptr<Model> exact = model.capabilities().float64 ? model.in_double() : nullptr;
  const at::Tensor clean_logits = plain_rows(model.logits(clean));
  const at::Tensor origin = exact ? plain_rows(exact->logits(clean.to(at::kDouble))) : clean_logits;
  const at::Tensor logits = plain_rows(exact ? exact->logits(perturbed.to(at::kDouble)) : model.logits(perturbed));

  Verification result{.smallest_margin = std::numeric_limits<double>::infinity(), .in_double = exact != nullptr};
  const std::int64_t n = before.size(1), classes = logits.size(1);
  for (std::int64_t row = 0; row < before.size(0); ++row) {
    const double *origin_row = before.data_ptr<double>() + row * n, *moved_row = after.data_ptr<double>() + row * n;
    result.largest_distance = std::max(result.largest_distance, verifier.check_row(row, origin_row, moved_row, n));
    if (std::equal(origin_row, origin_row + n, moved_row)) continue;
    ++result.moved;
    const std::int64_t expected = read(clean_logits.data_ptr<double>() + row * classes, classes, 0).predicted;
    const Reading reading = read(logits.data_ptr<double>() + row * classes, classes, expected);
    if (!(reading.margin >= kVerifiedMargin)) {
      if (depends_on_others(model, at::cat({perturbed.slice(0, row, row + 1), clean, perturbed})))
        input_error("{}: its output for a sample depends on the other samples of the batch", model.name());
      verifier.fail(row, "is predicted as class {} with class {} ahead by {}, not by {}", reading.predicted, expected,
                    reading.margin, kVerifiedMargin);
    }
    result.smallest_margin = std::min(result.smallest_margin, reading.margin);
    const double change = std::abs(probability(logits.data_ptr<double>() + row * classes, classes, expected) -
                                   probability(origin.data_ptr<double>() + row * classes, classes, expected));
    if (threat.tolerance && change > *threat.tolerance + kProbabilityTolerance)
      verifier.fail(row, "has its {} moved by {}, the tolerance is {}", classes == 1 ? "value" : "class's probability", change,
                    *threat.tolerance);
    result.largest_change = std::max(result.largest_change, change);
  }
  return result;
}

}  // namespace holdfast::attack

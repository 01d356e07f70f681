#include "holdfast/attack/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast {
namespace {

at::Tensor plain_rows(const at::Tensor& tensor) {
  return tensor.detach().cpu().to(at::kDouble).reshape({tensor.size(0), -1}).contiguous();
}

class Verifier {
 public:
  Verifier(const ThreatModel& threat, const at::Tensor& sample_ids, const std::string& attack)
      : threat_(threat), ids_(sample_ids.cpu()), attack_(attack) {
    if (threat.frozen.defined()) frozen_ = threat.frozen.cpu().contiguous();
  }

  template <class... Args>
  [[noreturn]] void fail(std::int64_t row, fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorKind::kBug, fmt::format("{}: sample {} {}; this is a bug in the attack", attack_,
                                             ids_[row].item<std::int64_t>(), fmt::format(format, std::forward<Args>(args)...)));
  }

  // Norm of the row's perturbation, once it and the row itself are found to be allowed.
  double check_row(std::int64_t row, const double* clean, const double* perturbed, std::int64_t n) const {
    double sum_of_squares = 0, sum = 0, largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(perturbed[i])) fail(row, "has element {} that is not finite", i);
      const double move = std::abs(perturbed[i] - clean[i]);
      sum_of_squares += move * move;
      sum += move;
      largest = std::max(largest, move);
      if (move > 0) check_element(row, i, perturbed[i]);
    }
    const double size = threat_.norm == Norm::kL2 ? std::sqrt(sum_of_squares) : threat_.norm == Norm::kL1 ? sum : largest;
    if (size > threat_.epsilon * (1 + kBallTolerance)) {
      fail(row, "moved by {} in {}, epsilon is {}", size, to_string(threat_.norm), threat_.epsilon);
    }
    return size;
  }

 private:
  void check_element(std::int64_t row, std::int64_t i, double value) const {
    if (frozen_.defined() && frozen_.data_ptr<bool>()[i]) fail(row, "moved element {}, which is frozen", i);
    if (!threat_.box) return;
    const auto [low, high] = *threat_.box;
    const double slack = kBallTolerance * std::max(std::abs(low), std::abs(high));
    if (value < low - slack || value > high + slack)
      fail(row, "has element {} at {}, outside the box {} to {}", i, value, low, high);
  }

  const ThreatModel& threat_;
  at::Tensor ids_, frozen_;
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

}  // namespace

Verification verify(const Model& model, const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& perturbed,
                    const at::Tensor& sample_ids, const std::string& attack) {
  HOLDFAST_CHECK(clean.sizes() == perturbed.sizes());
  const at::NoGradGuard no_graph;
  const Verifier verifier(threat, sample_ids, attack);
  const at::Tensor before = plain_rows(clean), after = plain_rows(perturbed);
  const std::unique_ptr<Model> exact = model.capabilities().float64 ? model.in_double() : nullptr;
  const at::Tensor clean_logits = plain_rows(model.logits(clean));
  const at::Tensor logits = plain_rows(exact ? exact->logits(perturbed.to(at::kDouble)) : model.logits(perturbed));

  Verification result{.smallest_margin = std::numeric_limits<double>::infinity(), .in_double = exact != nullptr};
  const std::int64_t n = before.size(1), classes = logits.size(1);
  for (std::int64_t row = 0; row < before.size(0); ++row) {
    const double size = verifier.check_row(row, before.data_ptr<double>() + row * n, after.data_ptr<double>() + row * n, n);
    result.largest_distance = std::max(result.largest_distance, size);
    if (size == 0) continue;
    ++result.moved;
    const std::int64_t expected = read(clean_logits.data_ptr<double>() + row * classes, classes, 0).predicted;
    const Reading reading = read(logits.data_ptr<double>() + row * classes, classes, expected);
    if (!(reading.margin >= kVerifiedMargin)) {
      verifier.fail(row, "is predicted as class {} with class {} ahead by {}, not by {}", reading.predicted, expected,
                    reading.margin, kVerifiedMargin);
    }
    result.smallest_margin = std::min(result.smallest_margin, reading.margin);
  }
  return result;
}

}  // namespace holdfast

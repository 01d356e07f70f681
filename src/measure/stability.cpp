#include "stability.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"
#include "nan.h"

namespace holdfast::measure {
namespace {

Stability::Flips flips_of(const Options& options, Stability::Flips quantus_flips) {
  if (options.flag("quantus") && !options.given("flips")) return quantus_flips;
  return options.word("flips") == "keep" ? Stability::Flips::kKeep : Stability::Flips::kExclude;
}

at::Tensor own_rows(const at::Tensor& tensor, const PointBlock& block) {
  return tensor.slice(0, block.sample, block.sample + block.samples);
}

}  // namespace

at::Tensor Nearby::true_maps() const {
  return maps * log_scale.exp().unsqueeze(2);
}

at::Tensor Nearby::true_near_maps() const {
  return near_maps * log_scale.exp().unsqueeze(2);
}

double norm_order(const std::string& word) {
  if (word == "linf") return std::numeric_limits<double>::infinity();
  return word == "l1" ? 1 : 2;
}

at::Tensor norm_of(const at::Tensor& rows, double order) {
  return at::linalg_vector_norm(rows, order, {-1});
}

OptionSpec norm_option() {
  return {"norm", "l2", one_of({"l2", "l1", "linf"}), "of differences"};
}

std::vector<OptionSpec> stability_options(const char* from, std::vector<OptionSpec> own) {
  std::vector<OptionSpec> all = surroundings_options(from);
  all.insert(all.end(), own.begin(), own.end());
  all.push_back(
      {"flips", "exclude", one_of({"exclude", "keep"}), "points where another class is predicted: left out or taken in"});
  all.push_back({"quantus", false, anything(), "as Quantus 0.6 computes it with its defaults, for comparison"});
  return all;
}

Stability::Stability(const Options& options, Over over, Flips quantus_flips, bool one_sided)
    : Measure(options.canonical()),
      surroundings_(options, one_sided && options.flag("quantus"), name()),
      over_(over),
      quantus_(options.flag("quantus")),
      flips_(flips_of(options, quantus_flips)) {}

void Stability::check(const MeasureTask& task) const {
  task.explainer.check_task(task.explain_task());
  surroundings_.check(task);
}

Measurement Stability::run(const MeasureTask& task) const {
  check(task);
  const std::int64_t samples = task.samples.inputs.size(0), points = surroundings_.count(task);
  const Explanation clean = task.explainer.attribute(task.explain_task());
  const at::Tensor predicted = predicted_class(clean.logits);
  const at::Tensor flipped = at::empty({samples, points}, at::kBool);
  at::Tensor all;  // the terms; their number is known after the first block
  for (const PointBlock& block : point_blocks(samples, points, rows_that_fit(task))) {
    throw_if_interrupted();
    const Nearby nearby = explain(task, block, clean);
    const at::Tensor kept = terms(nearby).to(at::kCPU, at::kDouble);
    if (!all.defined()) {
      std::vector<std::int64_t> shape = kept.sizes().vec();
      shape[0] = samples;
      shape[1] = points;
      all = at::empty(shape, at::kDouble);
    }
    const auto place = [&](const at::Tensor& of) {
      return own_rows(of, block).slice(1, block.point, block.point + block.points);
    };
    place(all).copy_(kept);
    place(flipped).copy_(nearby.near_logits.argmax(2).ne(own_rows(predicted, block).unsqueeze(1)));
  }

  const at::Tensor ratio = (samples > 0 ? ratios(all) : at::empty({0, points}, at::kDouble)).contiguous();
  Measurement result{.parts = notes(task, clean)};
  std::vector<double> label_flips, undefined(static_cast<std::size_t>(samples), 0.0);
  for (std::int64_t b = 0; b < samples; ++b) {
    const bool* changed = flipped.const_data_ptr<bool>() + b * points;
    result.values.push_back(
        reduce(ratio.const_data_ptr<double>() + b * points, changed, points, undefined[static_cast<std::size_t>(b)]));
    label_flips.push_back(static_cast<double>(std::count(changed, changed + points, true)));
  }
  result.parts.insert(result.parts.begin(), {{"label_flips", label_flips}, {"undefined", undefined}});
  return result;
}

std::vector<std::pair<std::string, std::vector<double>>> Stability::notes(const MeasureTask&, const Explanation&) const {
  return {};
}

Nearby Stability::explain(const MeasureTask& task, const PointBlock& block, const Explanation& clean) const {
  const at::Tensor inputs = surroundings_.points(task, block);
  const Explanation there = task.explainer.attribute(task_at(task, block, inputs));
  const auto one = [&](const at::Tensor& tensor) { return own_rows(tensor, block).reshape({block.samples, 1, -1}); };
  const auto many = [&](const at::Tensor& tensor) { return tensor.reshape({block.samples, block.points, -1}); };
  const at::Tensor log_scale = own_rows(clean.log_scale, block).unsqueeze(1);
  const at::Tensor scale = (there.log_scale.view({block.samples, block.points}) - log_scale).exp_().unsqueeze_(2);
  return {.task = task,
          .block = block,
          .inputs = one(task.samples.inputs),
          .maps = one(clean.maps),
          .near_inputs = many(inputs),
          .near_maps = many(there.maps) * scale,
          .logits = one(clean.logits),
          .near_logits = many(there.logits),
          .log_scale = log_scale};
}

double Stability::reduce(const double* ratios, const bool* flipped, std::int64_t count, double& undefined) const {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  std::int64_t taken = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (flipped[i] && flips_ == Flips::kUndefine) return kNaN;
    if (flipped[i] && flips_ == Flips::kExclude) continue;
    if (quantus_ ? std::isnan(ratios[i]) : !std::isfinite(ratios[i])) {
      ++undefined;
      continue;
    }
    largest = std::max(largest, ratios[i]);
    sum += ratios[i];
    ++taken;
  }
  if (taken == 0) return kNaN;
  return over_ == Over::kMax ? largest : sum / static_cast<double>(taken);
}

}  // namespace holdfast::measure

#include "faithfulness.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "nan.h"
#include "points.h"

namespace holdfast::measure {
namespace {

constexpr std::int64_t kStepsOfPictures = 100;

// Numbers of the points of a block as (order, count, draw); the last runs fastest.
struct PointNumbers {
  at::Tensor order, count, draw;
};

PointNumbers numbers_of(const PointBlock& block, std::int64_t counts, std::int64_t draws, at::Device device) {
  const at::Tensor number = at::arange(block.point, block.point + block.points, at::TensorOptions(at::kLong).device(device));
  const at::Tensor pair = number.floor_divide(draws);
  return {pair.floor_divide(counts), pair.remainder(counts), number.remainder(draws)};
}

std::int64_t id_of(const MeasureTask& task, std::int64_t sample) {
  return task.samples.ids[sample].item<std::int64_t>();
}

}  // namespace

std::vector<OptionSpec> faithfulness_options(std::vector<OptionSpec> own) {
  std::vector<OptionSpec> all = removal_options();
  all.insert(all.end(), own.begin(), own.end());
  all.push_back({"random", 1, at_least(0), "random orders that the part `random` averages"});
  return all;
}

OptionSpec steps_option() {
  return {"steps", 0, at_least(0), "steps from none to all features; 0: one by one on tables, 100 on images and graphs"};
}

std::vector<std::int64_t> paper_counts(const Layout& layout, std::int64_t features) {
  if (layout.kind == Layout::Kind::kVector || layout.is_sequence()) return equal_counts(layout, features, 0, /*from_zero=*/false);
  std::vector<std::int64_t> counts;
  for (const std::int64_t percent : {1, 5, 10, 20, 50}) counts.push_back(std::max<std::int64_t>(1, features * percent / 100));
  return counts;
}

std::vector<std::int64_t> equal_counts(const Layout& layout, std::int64_t features, std::int64_t steps, bool from_zero) {
  if (steps == 0) steps = layout.kind == Layout::Kind::kVector || layout.is_sequence() ? features : kStepsOfPictures;
  steps = std::min(steps, features);
  std::vector<std::int64_t> counts;
  for (std::int64_t i = from_zero ? 0 : 1; i <= steps; ++i) counts.push_back(i * features / steps);
  return counts;
}

struct Faithfulness::Answers {
  std::vector<double> clean;        // one a sample
  std::vector<bool> ranked;         // whether the sample's map ranks anything
  at::Tensor probability, flipped;  // [B, orders, counts] double; order 0 is the map's
};

// The orders in which features of a block's samples are removed, as each element's place in each order: [samples, orders, n].
struct Faithfulness::Orders {
  at::Tensor places;
  std::vector<bool> ranked;

  Orders(const MeasureTask& task, const PointBlock& block, const Units& units, const at::Tensor& maps, std::int64_t random) {
    const Layout& layout = task.samples.layout();
    const auto elements = static_cast<std::size_t>(layout.inputs());
    const at::Tensor some = maps.slice(0, block.sample, block.sample + block.samples);
    const at::Tensor own = maps_of_elements(some, *task.samples.schema).to(at::kCPU, at::kDouble).contiguous();
    const at::Tensor place = at::empty({block.samples, 1 + random, layout.inputs()}, at::kInt);
    std::int32_t* next = place.mutable_data_ptr<std::int32_t>();
    for (std::int64_t b = 0; b < block.samples; ++b) {
      const std::vector<double> map =
          fold(layout, std::span(own.const_data_ptr<double>() + static_cast<std::size_t>(b) * elements, elements));
      ranked.push_back(units.ranks(map));
      units.places(units.ranked(map), {next, elements});
      next += elements;
      RandomStream stream(task.seed, "faithfulness.random", static_cast<std::uint64_t>(id_of(task, block.sample + b)));
      for (std::int64_t i = 0; i < random; ++i, next += elements)
        units.places(stream.permutation(units.count()), {next, elements});
    }
    places = place.to(task.samples.inputs.device());
  }
};

Faithfulness::Faithfulness(const Options& options, Remove which)
    : Measure(options.canonical()), removal_(options, name()), which_(which), random_(options.integer("random")) {}

void Faithfulness::check(const MeasureTask& task) const {
  task.explainer.check_task(task.explain_task());
  removal_.check(task);
}

std::vector<std::string> Faithfulness::columns(std::span<const std::int64_t>) const {
  return {};
}

std::vector<double> Faithfulness::column_values(const RemovalCurve&) const {
  return {};
}

Measurement Faithfulness::run(const MeasureTask& task) const {
  check(task);
  const Units units(*task.samples.schema, removal_.whole_groups());
  const std::vector<std::int64_t> counts = this->counts(task.samples.layout(), units.count());
  const Explanation clean = task.explainer.attribute(task.explain_task());
  const Answers answers = ask(task, units, counts, clean);

  Measurement result;
  const std::vector<std::string> names = columns(counts);
  for (const std::string& name : names) result.parts.push_back({name, {}});
  if (random_ > 0) result.parts.push_back({"random", {}});
  for (const std::string& name : names) {
    if (random_ > 0) result.parts.push_back({"random_" + name, {}});
  }
  const auto curve_of = [&](std::size_t sample, std::int64_t order) {
    const std::size_t begin = (sample * static_cast<std::size_t>(1 + random_) + static_cast<std::size_t>(order)) * counts.size();
    return RemovalCurve{.clean = answers.clean[sample],
                        .count = counts,
                        .probability = {answers.probability.const_data_ptr<double>() + begin, counts.size()},
                        .flipped = {answers.flipped.const_data_ptr<double>() + begin, counts.size()},
                        .features = units.count()};
  };
  for (std::size_t b = 0; b < answers.clean.size(); ++b) {
    const bool ranked = answers.ranked[b];
    result.values.push_back(ranked ? score(curve_of(b, 0)) : kNaN);
    std::size_t part = 0;
    for (const double value : column_values(curve_of(b, 0))) result.parts[part++].second.push_back(ranked ? value : kNaN);
    if (random_ == 0) continue;
    std::vector<double> sums(1 + names.size(), 0.0);
    for (std::int64_t order = 1; order <= random_; ++order) {
      const RemovalCurve curve = curve_of(b, order);
      sums[0] += score(curve);
      const std::vector<double> more = column_values(curve);
      for (std::size_t i = 0; i < more.size(); ++i) sums[1 + i] += more[i];
    }
    for (const double sum : sums) result.parts[part++].second.push_back(sum / static_cast<double>(random_));
  }
  return result;
}

Faithfulness::Answers Faithfulness::ask(const MeasureTask& task, const Units& units, std::span<const std::int64_t> counts,
                                        const Explanation& clean) const {
  const at::NoGradGuard no_graph;
  const std::int64_t samples = task.samples.inputs.size(0), steps = static_cast<std::int64_t>(counts.size()),
                     draws = removal_.draws();
  const std::int64_t per_sample = (1 + random_) * steps * draws;
  const at::Tensor limits = at::tensor(counts, at::kInt).to(task.samples.inputs.device());
  const at::Tensor predicted = predicted_class(clean.logits);

  Answers answers;
  const at::Tensor probability = at::empty({samples, per_sample}, at::kDouble), flipped = at::empty_like(probability);
  at::Tensor places, replacement;
  for (const PointBlock& block : point_blocks(samples, per_sample, rows_that_fit(task, Pass::kForward))) {
    throw_if_interrupted();
    if (block.point == 0) {
      const Orders orders(task, block, units, clean.maps, random_);
      answers.ranked.insert(answers.ranked.end(), orders.ranked.begin(), orders.ranked.end());
      places = orders.places;
      replacement = removal_.values(task, block);
    }
    const PointNumbers number = numbers_of(block, steps, draws, task.samples.inputs.device());
    const at::Tensor limit = limits.index_select(0, number.count).unsqueeze(1);
    const at::Tensor place = places.index_select(1, number.order);
    const at::Tensor removed = which_ == Remove::kTop ? (place < limit).logical_and(place >= 0) : place >= limit;
    const at::Tensor own = task.samples.inputs.slice(0, block.sample, block.sample + block.samples).flatten(1).unsqueeze(1);
    std::vector<std::int64_t> shape = task.samples.inputs.sizes().vec();
    shape[0] = block.rows();
    const at::Tensor inputs = at::where(removed, replacement.index_select(1, number.draw), own).view(shape);

    const at::Tensor logits = task.model.logits(inputs);
    const auto put = [&](const at::Tensor& where, const at::Tensor& what) {
      where.slice(0, block.sample, block.sample + block.samples)
          .slice(1, block.point, block.point + block.points)
          .copy_(what.view({block.samples, block.points}));
    };
    put(probability, class_scores(logits, repeated(task.samples.targets, block)));
    put(flipped, predicted_class(logits).ne(repeated(predicted, block)));
  }

  const auto mean_of_draws = [&](const at::Tensor& all) {
    return all.view({samples, 1 + random_, steps, draws}).mean(3).contiguous();
  };
  answers.probability = mean_of_draws(probability);
  answers.flipped = mean_of_draws(flipped);
  const at::Tensor before = class_scores(clean.logits, task.samples.targets).cpu().contiguous();
  answers.clean.assign(before.const_data_ptr<double>(), before.const_data_ptr<double>() + samples);
  return answers;
}

}  // namespace holdfast::measure

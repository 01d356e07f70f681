#include "state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "../draw.h"
#include "../feature_maps.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/neighborhood.h"
#include "holdfast/model/activation.h"

namespace holdfast::attack::gauntlet {
namespace {

// Samples with at most so many features are small.
constexpr std::int64_t kSmall = 256;
// Explainers that need at least so many passes for a map are costly: large samples get half the walks.
constexpr std::int64_t kCostly = 10;
// Passes that the searches of a small and of a large sample get where walks are blind, about what walks cost; and the fewest and
// most points that is, whatever one costs.
constexpr std::int64_t kSmallPasses = 30000, kSmallFewest = 700, kLargePasses = 15000, kLargeFewest = 60, kLargeMost = 3000;
// Rows that the scales of layers are read off.
constexpr std::int64_t kReference = 32;
// A walk's first step from anywhere, from a corner and from the best point, and its last, of epsilon; what it keeps of earlier
// directions; how far around the best point walks start, and near it, of the way to a point anywhere.
constexpr double kFirstStep = 0.5, kFirstCornerStep = 2.0 / 3, kFirstSmallStep = 0.2, kLastStep = 1.0 / 60, kMomentum = 0.75;
constexpr double kAround = 0.5, kNear = 0.2;
// Of the effort: what each stage gets.
constexpr double kShares[] = {0.4, 0.3, 0.2, 0.1};
// Of all work: what each stage takes. The third one leaves out what is for restarts alone, and few samples reach the last one.
constexpr double kTaken[] = {0.48, 0.36, 0.14, 0.02};
// Evaluations of a small and of a large sample at standard effort with an explainer of one pass, as measured.
constexpr double kSmallWork = 42000, kLargeWork = 3200;
// Walks of one sample that are taken side by side. More rounds see more of what was found before.
constexpr std::int64_t kSideBySide = 20;
// In logits: the surrogate's margin below which the label's gradient joins, also for walks from the best point; the margin that
// a flipped iterate is brought back to.
constexpr double kHinge = 0.3, kSmallHinge = 0.1, kRepair = 0.01;

bool piecewise_linear(const Network& network) {
  return std::any_of(network.nodes().begin(), network.nodes().end(), [](const Node& node) {
    const auto* activation = std::get_if<op::Activation>(&node.operation);
    return activation != nullptr && is_piecewise_linear(*activation);
  });
}

std::vector<at::Tensor> pre_activations(const Network& network, const at::Tensor& inputs) {
  return network.run(inputs, {.keep_pre_activations = true}).pre_activations;
}

// The scale of each layer's pre-activations: their deviation over the rows, or how far they can be moved inside the ball where
// that is less. A random point of the ball moves a linear function by 1/sqrt(n) of what the best one does.
std::vector<double> layer_scales(const AttackTask& task) {
  const Network* network = task.model.network();
  if (network == nullptr || !piecewise_linear(*network)) return {};
  const at::NoGradGuard no_graph;
  const at::Tensor& rows = task.reference.defined() ? task.reference : task.samples.inputs;
  const at::Tensor inputs = rows.slice(0, 0, kReference).to(task.samples.inputs.options());
  const at::Tensor ids = at::arange(inputs.size(0), at::kLong);
  const at::Tensor moved = draw_points(task.threat, inputs, ids, derived_seed(task.seed, "gauntlet.scales"), /*on_sphere=*/true);
  const double reach = std::sqrt(static_cast<double>(inputs[0].numel()));
  const std::vector<at::Tensor> here = pre_activations(*network, inputs), there = pre_activations(*network, moved);
  std::vector<double> scales;
  for (std::size_t i = 0; i < here.size(); ++i) {
    const double spread = here[i].std(/*unbiased=*/false).item<double>();
    const double change = reach * (there[i] - here[i]).square().mean().sqrt().item<double>();
    scales.push_back(std::max(std::min(spread, change), 1e-6 * std::max(spread, 1e-6)));
  }
  return scales;
}

at::Tensor mask_of(const AttackTask& task, const Explanation& clean, std::int64_t k, std::int64_t radius) {
  const Neighborhood neighborhood(task.map_schema(), radius);
  FeatureSet set;
  const at::Tensor mask = weigh_features(task.map_schema().layout, clean.maps, [&](auto map, auto row) {
    const MapView view{map, task.map_schema()};
    neighborhood.reset(set);
    for (const std::int64_t i : task.metric.top_count() ? task.metric.top_set(view) : top_k_set(map, k)) set.add(i);
    if (radius > 0) neighborhood.grow(set);
    for (const std::int64_t i : set.members()) row[static_cast<std::size_t>(i)] = 1;
  });
  return mask.to(clean.maps.options());
}

bool is_small(const AttackTask& task) {
  return task.samples.layout().features() <= kSmall;
}

bool is_costly(const AttackTask& task) {
  return task.explainer.evaluations(*task.samples.schema) >= kCostly && !is_small(task);
}

bool has_gradients(const AttackTask& task) {
  return task.explainer.is_differentiable() && task.model.capabilities().double_backward;
}

std::int64_t attacked_top(const AttackTask& task) {
  return task.metric.top_count().value_or(std::max<std::int64_t>(1, task.map_schema().layout.features() / 4));
}

}  // namespace

double expected_evaluations(double effort, const Explainer& explainer, const Schema& schema) {
  const double standard = schema.layout.features() <= kSmall ? kSmallWork : kLargeWork;
  return effort * standard * static_cast<double>(explainer.evaluations(schema));
}

AttackState::AttackState(const AttackTask& the_task, Ledger& the_ledger, const Explanation& the_clean, double the_effort,
                         bool noise)
    : task(the_task),
      ledger(the_ledger),
      clean(the_clean),
      fresh_noise(noise),
      aim(the_task.metric.aim()),
      features(the_task.map_schema().layout.features()),
      k(attacked_top(the_task)),
      gradients(has_gradients(the_task)),
      blind(!gradients || the_task.model.network() == nullptr),
      small(is_small(the_task)),
      top(mask_of(the_task, the_clean, k, 0)),
      near(aim.radius > 0 ? mask_of(the_task, the_clean, k, aim.radius) : top),
      effort_(the_effort * (has_gradients(the_task) && is_costly(the_task) ? 0.5 : 1)),
      expected_(expected_evaluations(effort_, the_task.explainer, *the_task.samples.schema)),
      seed_(the_task.seed),
      scales_(gradients ? layer_scales(the_task) : std::vector<double>{}) {}

void AttackState::begin(Stage stage) {
  const auto number = static_cast<std::uint64_t>(stage);
  stage_ = stage;
  share_ = kShares[number];
  // What the stages before took tells what this one and those behind it will.
  if (number > 0) expected_ = mean_evaluations() / std::accumulate(kTaken, kTaken + number, 0.0);
  seed_ = number == 0 ? task.seed : derived_seed(task.seed, "gauntlet.stage", number);
}

double AttackState::mean_evaluations() const {
  const Ledger::Owners running = ledger.running();
  double sum = 0;
  for (const std::int64_t sample : running) sum += static_cast<double>(ledger.evaluations(sample));
  return running.empty() ? 0 : sum / static_cast<double>(running.size());
}

double AttackState::expected_left() const {
  return static_cast<double>(ledger.running().size()) * std::max(0.0, expected_ - mean_evaluations());
}

Ledger::Owners AttackState::rows(std::int64_t times) const {
  const Ledger::Owners running = ledger.running();
  Ledger::Owners result;
  for (std::int64_t i = 0; i < times; ++i) result.insert(result.end(), running.begin(), running.end());
  return result;
}

std::int64_t AttackState::scaled(std::int64_t standard) const {
  return std::max<std::int64_t>(1, std::llround(effort_ * share_ * static_cast<double>(standard)));
}

std::int64_t AttackState::scaled_alone(std::int64_t standard) const {
  return std::max<std::int64_t>(1, std::llround(effort_ * static_cast<double>(standard)));
}

AttackState::Walks AttackState::scaled_walks(std::int64_t walks, std::int64_t steps) const {
  const double all_steps = effort_ * share_ * static_cast<double>(walks * steps);
  const std::int64_t count = scaled(walks);
  return {count, std::max<std::int64_t>(1, std::llround(all_steps / static_cast<double>(count)))};
}

AttackState::Rounds AttackState::scaled_rounds(std::int64_t walks, std::int64_t least) const {
  const std::int64_t all = scaled(walks), count = std::max(std::min(least, all), (all + kSideBySide - 1) / kSideBySide);
  return {count, (all + count - 1) / count};
}

std::int64_t AttackState::searched_points() const {
  const std::int64_t passes = task.explainer.evaluations(*task.samples.schema);
  return scaled(small ? std::max(kSmallPasses / passes, kSmallFewest)
                      : std::clamp(kLargePasses / passes, kLargeFewest, kLargeMost));
}

at::Tensor AttackState::rows_of(const at::Tensor& tensor, const Ledger::Owners& owners) {
  return tensor.index_select(0, at::tensor(at::ArrayRef<std::int64_t>(owners), at::kLong).to(tensor.device()));
}

// Rows of one sample come one block of all running samples after the other, each block with a seed of its own.
at::Tensor AttackState::anywhere(const at::Tensor& origin, const at::Tensor& ids, std::int64_t number) const {
  const std::int64_t running = static_cast<std::int64_t>(ledger.running().size());
  std::vector<at::Tensor> parts;
  ThreatModel relaxed = task.threat;
  relaxed.valid.reset();  // walks start in the space between valid rows
  for (std::int64_t begin = 0; begin < origin.size(0); begin += running) {
    const std::uint64_t seed = derived_seed(seed_, "gauntlet.start", static_cast<std::uint64_t>(number * 1000 + begin / running));
    const at::Tensor from = origin.slice(0, begin, begin + running), names = ids.slice(0, begin, begin + running);
    if (task.threat.norm == Norm::kLinf) {
      const at::Tensor around = draw_levels(relaxed, from, names, seed);
      parts.push_back(relaxed.project(around + task.threat.epsilon * draw_signs(from, names, seed), from));
    } else {
      parts.push_back(draw_points(relaxed, from, names, seed, /*on_sphere=*/false));
    }
  }
  return at::cat(parts);
}

at::Tensor AttackState::starts(const Ledger::Owners& owners, const WalkPlan& plan) const {
  const at::Tensor best = rows_of(ledger.best_points(), owners);
  const at::Tensor origin = rows_of(task.samples.inputs, owners);
  const at::Tensor start = anywhere(origin, rows_of(task.samples.ids, owners).cpu(), plan.number);
  if (plan.start == WalkPlan::Start::kAnywhere) return start;
  const double share = plan.start == WalkPlan::Start::kNearBest ? kNear : kAround;
  return task.threat.project(best + share * (start - origin), origin);
}

at::Tensor AttackState::uniform(const Ledger::Owners& owners, const char* purpose, std::int64_t walk) const {
  const at::Tensor ids = rows_of(task.samples.ids, owners).cpu();
  const std::int64_t running = static_cast<std::int64_t>(ledger.running().size());
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < ids.size(0); begin += running) {
    const std::uint64_t seed = derived_seed(seed_, purpose, static_cast<std::uint64_t>(walk * 1000 + begin / running));
    parts.push_back(random_uniform({features}, ids.slice(0, begin, begin + running), seed, purpose, clean.maps.device()));
  }
  return at::cat(parts).to(clean.maps.options());
}

std::function<Rule(std::int64_t)> AttackState::surrogate(const WalkPlan& plan) const {
  if (scales_.empty()) return {};
  return [this, plan](std::int64_t step) {
    const double way = plan.steps > 1 ? static_cast<double>(step) / static_cast<double>(plan.steps - 1) : 1;
    Rule rule;
    for (const double scale : scales_) {
      rule.softplus_beta.push_back(plan.from * std::pow(plan.to / plan.from, way) / scale);
    }
    return rule;
  };
}

void AttackState::judge(const at::Tensor& points, const Ledger::Owners& owners) {
  ExplainTask point = explain_at(task, task.threat.admit(points, rows_of(task.samples.inputs, owners)));
  point.samples.targets = rows_of(task.samples.targets, owners);
  point.samples.ids = rows_of(task.samples.ids, owners);
  ledger.charge(task.explainer.evaluations(*task.samples.schema), owners);
  const Explanation there = task.explainer.attribute(point);
  const BatchJudge* judge = ledger.batch_judge();
  if (judge == nullptr) {
    ledger.record(point.samples.inputs, there, owners);
    return;
  }
  // Two numbers a row come from the device, not the maps.
  const at::Tensor on_device = at::tensor(at::ArrayRef<std::int64_t>(owners), at::kLong).to(task.samples.inputs.device());
  const at::Tensor read = judge->read(there, on_device).cpu().contiguous();
  const std::span<const double> numbers(read.const_data_ptr<double>(), static_cast<std::size_t>(read.numel()));
  ledger.record_judged(point.samples.inputs, {numbers.first(owners.size()), numbers.last(owners.size())}, owners);
}

std::vector<double> AttackState::harm() const {
  std::vector<double> result = ledger.values();
  const double sign = task.metric.direction() == Direction::kHigherIsMoreAlike ? 1 : -1;
  for (double& value : result) value = std::isnan(value) ? std::numeric_limits<double>::infinity() : sign * value;
  return result;
}

void AttackState::walk_down(Descent& descent, const Ledger::Owners& owners, const WalkPlan& plan) {
  const bool small_steps = plan.start == WalkPlan::Start::kNearBest;
  const double first = small_steps ? kFirstSmallStep : task.threat.norm == Norm::kLinf ? kFirstCornerStep : kFirstStep;
  const WalkRules rules{.steps = plan.steps,
                        .first_step = task.threat.epsilon * first,
                        .last_step = task.threat.epsilon * kLastStep,
                        .momentum = kMomentum,
                        .surrogate = surrogate(plan),
                        .fresh_noise = fresh_noise,
                        .hinge = small_steps ? kSmallHinge : kHinge,
                        .repair = kRepair};
  attack::walk(task, ledger, descent, rules, Walkers::of(task, owners, starts(owners, plan)));
}

}  // namespace holdfast::attack::gauntlet

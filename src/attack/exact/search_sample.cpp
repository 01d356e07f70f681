#include "search_sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "../batch_reading.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/method.h"
#include "holdfast/core/tile_work.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/logit_cotangent.h"
#include "read_chain.h"

namespace holdfast::attack::exact {
namespace {

// Bytes that the rows of all units may take, of which a part of the ball has so many copies.
constexpr std::int64_t kMostBytes = std::int64_t{256} << 20, kCopies = 4;
// Evaluations are made many rows at a time, nodes one after the other: a node takes about as long as so many.
constexpr double kEvaluationsOfNode = 50;
// Features of which all pairs are bounded in every part.
constexpr std::int64_t kMostOrdered = 256;

Eigen::VectorXd plain_vector(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().to(at::kCPU, at::kDouble).flatten().contiguous();
  return Eigen::Map<const Eigen::VectorXd>(plain.const_data_ptr<double>(), plain.numel());
}

std::optional<std::string> why_not_metric(const AttackTask& task) {
  const Aim aim = task.metric.aim();
  const bool of_top = aim.at == Aim::At::kTop || aim.at == Aim::At::kNearTop || aim.at == Aim::At::kTopNear;
  const bool bounded = of_top ? !aim.diversity && task.metric.direction() == Direction::kHigherIsMoreAlike : is_of_order(task);
  if (!bounded)
    return fmt::format("there is no bound for {}; use top_k, lens_precision, lens_recall or kendall", task.metric.name());
  const Layout& layout = task.samples.layout();
  if (layout.inputs() != layout.features())
    return fmt::format("a feature of the map is the sum of {} elements, whose magnitudes change inside a cell",
                       layout.inputs() / layout.features());
  return std::nullopt;
}

std::optional<std::string> why_not_pairs(const AttackTask& task) {
  const std::int64_t features = task.samples.layout().features();
  if (!is_of_order(task) || features <= kMostOrdered) return std::nullopt;
  return fmt::format("{} features are {} pairs for every part of the ball; kendall has a bound for up to {} features", features,
                     features * (features - 1) / 2, kMostOrdered);
}

std::optional<std::string> why_not_threat(const ThreatModel& threat) {
  if (threat.norm == Norm::kL1) return "cells are searched in l2 and linf balls; this one is l1";
  if (threat.valid) return "cells are searched between valid rows too; use gauntlet with --valid";
  if (threat.switches && threat.switches->most > 0) return "cells are searched around the sample's own categories; use gauntlet";
  if (threat.tolerance) return "there is no search with a tolerance of the probability; use gauntlet";
  return std::nullopt;
}

std::optional<std::string> why_not_network(const AttackTask& task, const RankedGradient& ranked) {
  const std::string model = task.model.name().empty() ? "the model" : task.model.name();
  if (task.model.network() == nullptr)
    return fmt::format("{} does not show its layers; in Python load_model can read those of a module, else use gauntlet", model);
  const Network& network = *task.model.network();
  if (const auto what = what_prevents(network))
    return fmt::format("cells are those of linear layers with relu or leaky_relu, but {} has {}; use gauntlet", model, *what);
  std::int64_t units = 0, inputs = 0, classes = 0;
  for (const Node& node : network.nodes()) {
    const auto* linear = std::get_if<op::Linear>(&node.operation);
    if (linear == nullptr) continue;
    if (inputs == 0) inputs = linear->weight.size(1);
    classes = linear->weight.size(0);
    units += classes;
  }
  if (classes != 2 && ranked.quantity != ExplainedQuantity::kLogit)
    return fmt::format("with {} classes the ranking by the {} changes inside a cell; explain target=logit", classes,
                       ranked.quantity == ExplainedQuantity::kProbability ? "probability" : "cross-entropy");
  constexpr std::int64_t kRowBytes = kCopies * static_cast<std::int64_t>(sizeof(double));
  if (const std::int64_t bytes = kRowBytes * units * inputs; bytes > kMostBytes)
    return fmt::format(
        "{} units and {} inputs take {} MiB for one part of the ball, and there may be 2^{} of them; units times "
        "inputs may be at most {}",
        units - classes, inputs, bytes >> 20, units - classes, kMostBytes / kRowBytes);
  return std::nullopt;
}

// The allowed points as bounds of the elements and a ball. As much wider as the verifier lets points be.
void set_region(const ThreatModel& threat, CellProblem& problem) {
  const Eigen::Index n = problem.x.size();
  const double epsilon = threat.epsilon * (1 + kBallTolerance), endless = std::numeric_limits<double>::infinity();
  problem.is_free.assign(static_cast<std::size_t>(n), 1);
  for (Eigen::Index i = 0; i < n; ++i) problem.is_free[static_cast<std::size_t>(i)] = threat.is_frozen(i) ? 0 : 1;
  const bool linf = threat.norm == Norm::kLinf;
  problem.low = linf ? Eigen::VectorXd(problem.x.array() - epsilon) : Eigen::VectorXd::Constant(n, -endless);
  problem.high = linf ? Eigen::VectorXd(problem.x.array() + epsilon) : Eigen::VectorXd::Constant(n, endless);
  const auto free = std::count(problem.is_free.begin(), problem.is_free.end(), 1);
  problem.radius = linf ? epsilon * std::sqrt(static_cast<double>(free)) : epsilon;
  if (threat.box) {
    const auto [low, high] = *threat.box;
    problem.low = problem.low.cwiseMax(low - kBallTolerance * std::abs(low));
    problem.high = problem.high.cwiseMin(high + kBallTolerance * std::abs(high));
  }
  if (threat.non_negative && problem.x.minCoeff() >= 0) problem.low = problem.low.cwiseMax(0);
  problem.low = problem.low.cwiseMin(problem.x);
  problem.high = problem.high.cwiseMax(problem.x);
}

CellProblem problem_of(const AttackTask& task, const Chain& chain, const MapView& clean, std::int64_t sample,
                       std::int64_t predicted) {
  CellProblem problem{.x = plain_vector(task.samples.inputs[sample]), .low = {}, .high = {}, .is_free = {}, .explained = {}};
  set_region(task.threat, problem);
  problem.predicted = predicted;
  problem.margin = kVerifiedMargin;
  const RankedGradient ranked = *task.explainer.ranked_gradient(*task.samples.schema);
  const auto target = task.samples.targets[sample].item<std::int64_t>();
  problem.explained = Eigen::VectorXd::Zero(chain.layers.back().weight.rows());
  problem.explained[target] = 1;
  if (ranked.quantity != ExplainedQuantity::kLogit) problem.explained[1 - target] = -1;
  if (ranked.project) {
    for (const Group& group : task.samples.schema->groups) problem.groups.push_back(group.columns);
  }
  if (is_of_order(task)) {
    problem.ordered.assign(clean.values.begin(), clean.values.end());
  } else {
    problem.top = task.metric.top_set(clean);
  }
  return problem;
}

// The metric at a point on the model itself; NaN where the prediction is not preserved.
double confirm(const AttackTask& task, Ledger& ledger, std::int64_t sample, const Eigen::VectorXd& point) {
  const Samples own = task.samples.slice(sample, sample + 1);
  at::Tensor candidate = at::empty({point.size()}, at::kDouble);
  Eigen::Map<Eigen::VectorXd>(candidate.data_ptr<double>(), point.size()) = point;
  ExplainTask there{.model = task.model, .samples = own, .seed = task.seed};
  there.samples.inputs = task.threat.project(candidate.to(own.inputs.options()).view_as(own.inputs), own.inputs);
  ledger.charge(task.explainer.evaluations(*task.samples.schema), {sample});
  ledger.record_more(there.samples.inputs, task.explainer.attribute(there), {sample});
  return ledger.values()[0];
}

// `clean` is the folded map at the sample.
void search_sample(const AttackTask& task, const Chain& chain, const CellLimits& limits, const MapView& clean,
                   std::int64_t sample, Ledger& ledger) {
  // Nothing can be moved, nothing is left to break, or the map has no order.
  if (ledger.done(sample) || std::isnan(ledger.best_value(sample)))
    return ledger.note_proof(sample, ledger.best_value(sample), 0);
  const auto metric = task.metric.prepare(clean);
  const CellJudge judge{.value =
                            [&](std::span<const double> values) {
                              return metric->value({values, *task.samples.schema});
                            },
                        .confirm = [&](const Eigen::VectorXd& point) { return confirm(task, ledger, sample, point); }};
  const CellProblem problem = problem_of(task, chain, clean, sample, ledger.predicted(sample));
  const CellAnswer answer = search_cells(chain, problem, limits, judge, ledger.best_value(sample));
  ledger.note_proof(sample, answer.proven, answer.nodes);
  TileWork::report(kEvaluationsOfNode * static_cast<double>(answer.nodes));
}

}  // namespace

bool is_of_order(const AttackTask& task) {
  return parse_method_call(task.metric.name()).name == "kendall";
}

std::optional<std::string> why_not(const AttackTask& task) {
  const auto ranked = task.explainer.ranked_gradient(*task.samples.schema);
  if (!ranked) return fmt::format("it is for saliency, and {} does not rank the features by a gradient", task.explainer.name());
  if (const auto why = why_not_metric(task)) return why;
  if (const auto why = why_not_pairs(task)) return why;
  if (const auto why = why_not_threat(task.threat)) return why;
  return why_not_network(task, *ranked);
}

void search_samples(const AttackTask& task, const CellLimits& limits, const Explanation& clean, Ledger& ledger,
                    const std::function<double()>& work_after) {
  const Chain chain = read_chain(*task.model.network());
  BatchReading reading(*task.samples.schema, /*with_probabilities=*/false);
  reading.read_maps(clean.maps);
  ledger.begin_iteration();
  const std::int64_t samples = task.samples.count();
  const double before = TileWork::done_here();
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    search_sample(task, chain, limits, *reading.map(sample), sample, ledger);
    const double of_one = (TileWork::done_here() - before) / static_cast<double>(sample + 1);
    TileWork::expect_left(of_one * static_cast<double>(samples - sample - 1) + (work_after ? work_after() : 0));
  }
}

}  // namespace holdfast::attack::exact

#include "holdfast/experiment/certify.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "holdfast/core/error.h"
#include "holdfast/core/method.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/measure_all.h"
#include "holdfast/explain/logit_cotangent.h"

namespace holdfast::experiment {
namespace {

// Audits certify in passing: not where pairs of features would be millions.
constexpr std::int64_t kFewFeatures = 256;

// To six digits: it is shown to people, and what holds in a larger ball holds in a smaller one.
double rounded_up(double radius) {
  if (radius <= 0 || !std::isfinite(radius)) return radius;
  const double unit = std::pow(10.0, std::floor(std::log10(radius)) - 5);
  const double up = std::stod(fmt::format("{:.6g}", std::ceil(radius / unit) * unit));
  return up >= radius ? up : radius;
}

// The radius of the l2 ball that holds all allowed points.
double l2_radius(const ThreatModel& threat, const Layout& layout) {
  if (threat.norm != Norm::kLinf) return threat.epsilon * std::sqrt(static_cast<double>(threat.blocks));
  const std::int64_t frozen = std::count(threat.frozen.begin(), threat.frozen.end(), true);
  return rounded_up(threat.epsilon * std::sqrt(static_cast<double>(layout.inputs() - frozen)));
}

// Why a check refuses, or nothing. A refusal is an answer here, not an error.
template <class Check>
std::optional<std::string> refusal(const Check& check) {
  try {
    check();
    return std::nullopt;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage) throw;
    return error.what();
  }
}

std::optional<std::string> not_of_top(const Metric& metric) {
  const Aim aim = metric.aim();
  const bool of_top = aim.at == Aim::At::kTop || aim.at == Aim::At::kNearTop || aim.at == Aim::At::kTopNear;
  if (of_top && !aim.diversity && metric.direction() == Direction::kHigherIsMoreAlike && metric.top_count()) return std::nullopt;
  return fmt::format("it bounds P@k, which says nothing about {}; top_k, lens_precision and lens_recall have bounds",
                     metric.name());
}

// Why without the name in front that errors begin with: what is listed has its name beside it.
std::string without_name(const std::string& why, const std::string& name) {
  return why.starts_with(name + ": ") ? why.substr(name.size() + 2) : why;
}

// A measure that may certify a cell, with the explainer it takes.
struct Candidate {
  std::string call;
  std::shared_ptr<const Explainer> explainer;
};

// Either the measure to run, or why there is none.
struct Choice {
  std::optional<Candidate> candidate;
  std::string why;
};

// Margins and the exact search follow the gradient of a class's probability or logit while the class stays.
std::optional<std::string> of_a_value(const Cell& cell) {
  if (cell.subject.model->output_kind() != OutputKind::kValue) return std::nullopt;
  return fmt::format("it is for classes, and {} gives a value; smoothed_overlap takes any model", cell.subject.model_name);
}

bool is_smoothed(const std::string& explainer) {
  return parse_method_call(explainer).name == "smooth_top";
}

Choice margins_of(const Cell& cell) {
  if (const auto why = not_of_top(*cell.metric)) return {{}, *why};
  if (const auto why = of_a_value(cell)) return {{}, *why};
  const Schema& schema = *cell.subject.samples.schema;
  const auto ranked = cell.explainer->ranked_gradient(schema);
  if (!ranked) {
    const std::string name = cell.explainer->name(), why = "it bounds the gradient that saliency shows, not " + name;
    if (is_smoothed(name)) return {{}, why};
    return {{}, fmt::format("{}; smooth_top(k={},of={}) has a certificate by smoothing", why, *cell.metric->top_count(), name)};
  }
  if (ranked->quantity == ExplainedQuantity::kLogit)
    return {{},
            "it bounds the gradient of the probability, and this is a logit's; exact takes it, or explain target=probability"};
  const auto& switches = cell.threat.switches;
  return {Candidate{
              fmt::format("certified_overlap(k={},radius={}{}{})", *cell.metric->top_count(),
                          l2_radius(cell.threat, schema.layout), ranked->project || schema.groups.empty() ? "" : ",project=none",
                          switches ? fmt::format(",switches={}", switches->most) : ""),
              cell.explainer},
          ""};
}

Choice smoothing_of(const Cell& cell) {
  if (const auto why = not_of_top(*cell.metric)) return {{}, *why};
  if (cell.threat.switches && cell.threat.switches->most > 0)
    return {{}, "it bounds a ball around the sample, and switched categories leave it; certified_overlap tries the switches"};
  const std::int64_t k = *cell.metric->top_count();
  const std::string name = cell.explainer->name();
  const double radius = l2_radius(cell.threat, cell.subject.samples.layout());
  if (!is_smoothed(name))
    return {{},
            fmt::format("it certifies smooth_top, which is another explanation: explain smooth_top(k={},sigma={:.2g},of={})", k,
                        radius > 0 ? radius : 0.1, name)};
  const Options options = explainers().options(name);
  if (options.integer("k") != k)
    return {{},
            fmt::format("the explanation counts the top {}, the metric compares the top {}: choose the same k",
                        options.integer("k"), k)};
  const Aim aim = cell.metric->aim();
  return {Candidate{fmt::format("smoothed_overlap(k={},w={},radius={},sigma={},samples={})", k,
                                aim.at == Aim::At::kNearTop ? aim.radius : 0, radius, options.real("sigma"),
                                options.integer("samples")),
                    explainers().make(options.word("of"))},
          ""};
}

// `loud`: what should be known before the work starts is said.
void add_measured(const Cell& cell, const char* name, const Choice& choice, const TileOptions& tiles, bool loud,
                  Certificates& all) {
  if (!choice.candidate) {
    all.others.push_back({name, choice.why});
    return;
  }
  const std::unique_ptr<Measure> measure = measures().make(choice.candidate->call);
  const MeasureTask task{.model = *cell.subject.model,
                         .explainer = *choice.candidate->explainer,
                         .samples = cell.subject.samples,
                         .seed = cell.seed};
  Measurement measured;
  const auto why = refusal([&] {
    check_measure(*measure, task);
    if (loud) announce(*measure, task);
    measured = measure_all(*measure, task, tiles);
  });
  if (why) {
    all.others.push_back({name, without_name(*why, measure->name())});
  } else {
    all.proven.push_back({measure->name(), std::move(measured.values), std::move(measured.parts)});
  }
}

void add_exact(const Cell& cell, const TileOptions& tiles, const at::Tensor& start, Progress* progress, Certificates& all) {
  if (const auto why = of_a_value(cell)) {
    all.others.push_back({"exact", *why});
    return;
  }
  Cell searched = cell;
  searched.attack = attacks().make("exact");
  const AttackTask task = searched.task(start);
  if (const auto why = refusal([&] { check_cell(*searched.attack, task); })) {
    all.others.push_back({"exact", without_name(*why, "exact")});
    return;
  }
  const CellResult result = run_cell(*searched.attack, task, tiles, progress);
  Certificate exact{.name = searched.attack->name(), .values = {}, .parts = {{"found", {}}, {"nodes", {}}}};
  for (const SampleOutcome& sample : result.samples) {
    exact.values.push_back(sample.proven);
    exact.parts[0].second.push_back(sample.value);
    exact.parts[1].second.push_back(static_cast<double>(sample.nodes));
  }
  all.found = result.perturbed;
  all.found_values = exact.parts[0].second;
  all.proven.push_back(std::move(exact));
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Json named_values(const std::string& name, const std::vector<double>& values) {
  return {{"name", name}, {"mean", mean_of(values)}, {"values", values}};
}

}  // namespace

Certificates certify(const Cell& cell, const TileOptions& tiles, const at::Tensor& start, Progress* progress) {
  Certificates all;
  add_measured(cell, "certified_overlap", margins_of(cell), tiles, /*loud=*/true, all);
  add_exact(cell, tiles, start, progress, all);
  add_measured(cell, "smoothed_overlap", smoothing_of(cell), tiles, /*loud=*/true, all);
  return all;
}

std::optional<Certificate> certify_in_passing(const Row& row, const TileOptions& tiles) {
  const Cell& cell = row.cell;
  Certificates all;
  if (std::all_of(row.result.samples.begin(), row.result.samples.end(),
                  [](const SampleOutcome& sample) { return !std::isnan(sample.proven); })) {
    Certificate exact{.name = cell.attack->name(), .values = {}};
    for (const SampleOutcome& sample : row.result.samples) exact.values.push_back(sample.proven);
    if (!exact.values.empty()) all.proven.push_back(std::move(exact));
  }
  if (cell.subject.samples.layout().features() <= kFewFeatures)
    add_measured(cell, "certified_overlap", margins_of(cell), tiles, /*loud=*/false, all);
  add_measured(cell, "smoothed_overlap", smoothing_of(cell), tiles, /*loud=*/false, all);
  return best_of(all.proven);
}

std::optional<Certificate> best_of(const std::vector<Certificate>& certificates) {
  if (certificates.empty()) return std::nullopt;
  const Certificate* highest = &certificates.front();
  for (const Certificate& certificate : certificates) {
    if (mean_of(certificate.values) > mean_of(highest->values)) highest = &certificate;
  }
  Certificate best{.name = highest->name, .values = highest->values};
  for (const Certificate& certificate : certificates) {
    for (std::size_t i = 0; i < best.values.size(); ++i) best.values[i] = std::max(best.values[i], certificate.values[i]);
  }
  return best;
}

namespace {

Json certify_and_attack(const Cell& cell, Grid& grid, const TileOptions& tiles) {
  const Row row = grid.run_alone(cell);
  const Certificates all = certify(cell, tiles, row.result.perturbed);
  Json json{{"epsilon", cell.threat.epsilon}, {"certificates", Json::array()}, {"inapplicable", Json::array()}};
  for (const Certificate& certificate : all.proven) {
    json["certificates"].push_back(named_values(certificate.name, certificate.values));
    for (const auto& [part, values] : certificate.parts) json["certificates"].back()["parts"][part] = values;
  }
  for (const Inapplicable& other : all.others) json["inapplicable"].push_back({{"name", other.name}, {"why", other.why}});
  const std::optional<Certificate> best = best_of(all.proven);
  json["best"] = best ? named_values(best->name, best->values) : Json();
  std::vector<double> attacked = row.assessment.values;
  for (std::size_t i = 0; i < all.found_values.size(); ++i) attacked[i] = std::min(attacked[i], all.found_values[i]);
  json["attacked"] = named_values(cell.attack->name(), attacked);
  return json;
}

}  // namespace

Json certify_subject(const Subject& subject, const Trial& trial, std::uint64_t seed, const TileOptions& tiles) {
  HOLDFAST_CHECK(trial.explainers.size() == 1 && trial.attacks.size() == 1 && trial.metrics.size() == 1);
  if (trial.threat.norm == Norm::kL1)
    usage_error("norm l1: certificates are for l2 and linf; those of the l2 ball with the same epsilon hold in it too");
  check_samples(subject.dataset, subject.samples, trial);
  const std::vector<Cell> cells = make_cells(subject, trial, seed);
  Grid grid({.tiles = tiles, .random_points = false});
  Json curve = Json::array();
  for (const Cell& cell : cells) curve.push_back(certify_and_attack(cell, grid, tiles));
  Json result{{"model", subject.model_name},
              {"explainer", cells.front().explainer->name()},
              {"metric", cells.front().metric->name()},
              {"norm", to_string(trial.threat.norm)},
              {"samples", subject.samples.count()}};
  result.update(curve.back());
  if (curve.size() > 1) result["curve"] = std::move(curve);
  return result;
}

}  // namespace holdfast::experiment

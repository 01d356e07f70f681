// r2et/fig4: pictures of attacked maps, and the share of the top pixels on the digits' strokes.
#include "claims.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../model_tiles.h"
#include "holdfast/core/torch.h"

namespace holdfast::experiment::paper::r2et {
namespace {

constexpr std::int64_t kShown = 3;
constexpr double kStroke = 0.3;  // a pixel at least this bright belongs to the digit

// Share of the clean map's top k on the strokes, one number a sample; the chance level is the share of such pixels.
MeasuredCell stroke_shares(const StudiedNetwork& subject, const std::string& metric_call) {
  const auto metric = metrics().make(metric_call);
  const MapBatch clean = clean_maps(subject, 0, 1);
  const at::Tensor inputs = inputs_of(subject), pixels = inputs.flatten(1).contiguous();
  MeasuredCell cell;
  for (std::int64_t i = 0; i < clean.count; ++i) {
    const std::vector<std::int64_t> top = metric->top_set(clean[i]);
    const float* row = pixels.const_data_ptr<float>() + i * pixels.size(1);
    const auto inside = std::ranges::count_if(top, [&](std::int64_t pixel) { return row[pixel] >= kStroke; });
    cell.values.push_back(static_cast<double>(inside) / static_cast<double>(top.size()));
  }
  cell.parts["chance"] = {inputs.ge(kStroke).to(at::kDouble).mean().item<double>()};
  return cell;
}

// The first samples of a network under er, for the report to draw.
Panel panel_of(PaperRun& run, const Setting& setting, const MethodNetworks& networks) {
  const StudiedNetwork subject = subject_of(setting, networks.members.front(), kShown);
  const std::string call = setting.fill("top_k(k={k})");
  const CellResult cell =
      attack_maps(subject, attack_of(setting, setting.fill("er(steps={steps})"), {call}, "last"), run.seed, 1);
  const Dataset& data = subject.data->data;
  const auto metric = metrics().make(call);
  const MapBatch clean = fold_maps(cell.original_maps, data.schema), moved = fold_maps(cell.perturbed_maps, data.schema);
  PanelSamples samples{.inputs = inputs_of(subject),
                       .perturbed = cell.perturbed,
                       .original_maps = cell.original_maps,
                       .perturbed_maps = cell.perturbed_maps,
                       .ids = subject.rows.positions,
                       .labels = to_vector(data.labels_of(subject.rows.positions)),
                       .predictions = to_vector(predicted_class(cell.logits)),
                       .values = {},
                       .top_original = {},
                       .top_perturbed = {}};
  for (std::int64_t i = 0; i < clean.count; ++i) {
    samples.values.push_back(metric->compare(clean[i], moved[i]));
    samples.top_original.push_back(metric->top_set(clean[i]));
    samples.top_perturbed.push_back(metric->top_set(moved[i]));
  }
  return run.context.panel(fmt::format("{}: {}, {}", setting.dataset, networks.method.name, call), data.schema, samples);
}

// Adds a row for each method: its share on the strokes, and P@k under er.
void count_strokes(PaperRun& run, const std::vector<const MeasuredRow*>& rows) {
  const Setting& setting = *rows.front()->setting;
  const std::string metric = setting.fill("top_k(k={k})");
  std::vector<Job<MeasuredCell>> jobs;
  for (const MeasuredRow* row : rows) {
    for (const Member& member : row->networks->members) {
      const StudiedNetwork subject = subject_of(setting, member);
      jobs.push_back({fmt::format("{}; strokes of {}, {}", member.trained.key, subject.rows.words, metric),
                      [subject, metric] { return stroke_shares(subject, metric); },
                      {.kind = fmt::format("{}\n{}\nstrokes", subject.data->key, subject.structure)}});
    }
  }
  const std::vector<MeasuredCell> strokes = run.context.compute(setting.name + ": strokes", jobs);
  StrokeShares shares{.chance = strokes.front().parts.at("chance")[0]};
  std::size_t next = 0;
  for (const MeasuredRow* row : rows) {
    Numbers on_strokes;
    for (std::size_t i = 0; i < row->networks->members.size(); ++i, ++next) {
      on_strokes.values.push_back(strokes[next].values);
      shares.above_chance[row->method()].push_back(defined_mean(strokes[next].values) - strokes[next].parts.at("chance")[0]);
    }
    Value share = value_of(on_strokes, run.seed);
    share.chance = shares.chance;
    run.table("top pixels on strokes").add({setting.name, row->method()}, {share, row->values[0]});
  }
  std::vector<std::string> broken;
  for (const MeasuredRow* row : rows) {
    const bool is_compared = row->method() == "Vanilla" || row->method() == "R2ET";
    if (is_compared && !row->networks->counts()) broken.push_back(fmt::format("{}: {}", row->method(), row->networks->standing));
  }
  Finding found = judge_strokes(shares, run.claim("R12").limits[0]);
  if (!broken.empty())
    found = {Judgement::kNotDecided,
             found.words,
             found.number,
             {},
             fmt::format("Networks that do not count decide nothing ({}).", fmt::join(broken, "; "))};
  run.judge("R12", found, setting.members);
}

}  // namespace

Finding judge_strokes(const StrokeShares& shares, double visible) {
  const std::vector<double>&vanilla = shares.above_chance.at("Vanilla"), &sp = shares.above_chance.at("SP"),
        &r2et = shares.above_chance.at("R2ET");
  const Value gain = difference_over_seeds(r2et, vanilla), plain = over_seeds(vanilla);
  const std::string why = fmt::format(
      "Number: share of the top 50 on the digits' strokes, R2ET (ReLU) minus Vanilla, paired by seed, MNIST pairs. "
      "Above chance, which is {:.3f}: Vanilla {}, R2ET {}, SP {}; Vanilla's are said not to show the digit below {}. "
      "A map that is only brighter in the middle of the image beats chance as well. Objects (CIFAR-10) are shown "
      "and not counted.",
      shares.chance, words(plain), words(over_seeds(r2et)), words(over_seeds(sp)), visible);
  return found_in({part_above("R2ET's top pixels show the digit more than Vanilla's", gain, 0),
                   part_below("Vanilla's do not show it", plain, visible)},
                  {{"found", why}}, gain);
}

void analyse_fig4(PaperRun& run) {
  run.judge("R12", {Judgement::kNotDecided, {{"found", "MNIST, whose strokes are counted, was left out."}}, {}}, 0);
  for (const Setting& setting : run.settings) {
    const std::vector<MethodNetworks>& all = run.networks(setting);
    if (run.context.plans()) continue;  // pictures of networks that are not there
    for (const MethodNetworks& one : all) run.figure("maps").panels.push_back(panel_of(run, setting, one));
  }
  for (const auto& rows : run.measured("er").by_setting()) count_strokes(run, rows);  // photographs have no strokes
}

}  // namespace holdfast::experiment::paper::r2et

// r2et/fig4: saliency before and after er, with the top k marked, for four methods: MNIST pairs and CIFAR-10 images. The paper
// says that R2ET's top pixels show the digit and Vanilla's do not: the share of the top k on the digits' strokes says it in
// numbers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "../judging.h"
#include "../samples.h"
#include "experiments.h"
#include "holdfast/core/torch.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kFig4Info{
    .name = "r2et/fig4", .summary = "pictures of maps before and after er, top k marked, four methods", .citation = kPaper};

constexpr std::int64_t kShown = 3;
constexpr double kStroke = 0.3;  // a pixel at least this bright belongs to the digit

std::vector<Method> shown_methods() {
  return {method("Vanilla"), method("SP"), method("Est-H"), method("R2ET")};
}

// Share of the clean map's top k on the strokes, one number a sample.
std::vector<double> on_strokes(const MapBatch& clean, const Metric& metric, const at::Tensor& inputs) {
  const at::Tensor pixels = inputs.flatten(1).contiguous();
  std::vector<double> shares;
  for (std::int64_t i = 0; i < clean.count; ++i) {
    const std::vector<std::int64_t> top = metric.top_set(clean[i]);
    const float* row = pixels.const_data_ptr<float>() + i * pixels.size(1);
    const auto inside = std::count_if(top.begin(), top.end(), [&](std::int64_t pixel) { return row[pixel] >= kStroke; });
    shares.push_back(static_cast<double>(inside) / static_cast<double>(top.size()));
  }
  return shares;
}

Json stroke_shares(const Setting& setting, const Member& member) {
  const CellSubject subject = subject_of(setting, member);
  const SubjectRows rows = rows_of(subject);
  const Schema& schema = member.data->data.schema;
  const ExplainedBatch explained = explain_all(
      *explainers().make(subject.explainer),
      {.model = *subject.model, .samples = {.inputs = rows.inputs, .ids = rows.ids, .schema = share_schema(schema)}},
      {.threads = 1});
  const double strokes = rows.inputs.ge(kStroke).to(at::kDouble).mean().item<double>();
  return {{"values", on_strokes(fold_maps(explained.maps, schema), *metrics().make(setting.top_k()), rows.inputs)},
          {"chance", strokes}};
}

// The first samples of a network under er, for the report to draw.
Panel panel_of(ExperimentContext& context, const Setting& setting, const Entry& entry) {
  CellSubject subject = subject_of(setting, entry.members.front());
  subject.samples = kShown;
  const CellResult cell = attacked(
      subject, {.attack = setting.er(), .metrics = {setting.top_k()}, .epsilon = setting.epsilon, .select = Select::kLast},
      context.seed);
  const SubjectRows rows = rows_of(subject);
  const Schema& schema = subject.data->data.schema;
  const auto metric = metrics().make(setting.top_k());
  const MapBatch clean = fold_maps(cell.original_maps, schema), moved = fold_maps(cell.perturbed_maps, schema);
  PanelSamples samples{.inputs = rows.inputs,
                       .perturbed = cell.perturbed,
                       .original_maps = cell.original_maps,
                       .perturbed_maps = cell.perturbed_maps,
                       .ids = to_vector(rows.ids),
                       .labels = to_vector(rows.labels),
                       .predictions = to_vector(predicted_class(cell.logits)),
                       .values = {},
                       .top_original = {},
                       .top_perturbed = {}};
  for (std::int64_t i = 0; i < clean.count; ++i) {
    samples.values.push_back(metric->compare(clean[i], moved[i]));
    samples.top_original.push_back(metric->top_set(clean[i]));
    samples.top_perturbed.push_back(metric->top_set(moved[i]));
  }
  return context.panel(fmt::format("{}: {}, {}", setting.dataset, entry.method->name, setting.top_k()), schema, samples);
}

class Fig4 final : public Experiment {
 public:
  explicit Fig4(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "Saliency before and after the attack", .paper = kPaper};
    result.settings["choice"] = kChoiceRule;
    ResultTable table{
        .name = "top pixels on strokes",
        .caption = fmt::format(
            "Share of the clean map's top k on pixels brighter than {} (chance: the share of such pixels), and P@k under er.",
            kStroke),
        .keys = {"dataset", "method"},
        .columns = {"on strokes", "P@k, er"}};
    Figure figure{.name = "maps",
                  .caption = "Input, nudged input, saliency before and after er, and which of the top k were kept, lost or new."};
    static const std::vector<Method> methods = shown_methods();
    for (const Setting& setting : settings(context, Which::kOthers)) {
      if (setting.folds) continue;
      const std::vector<Entry> entries = zoo(context, setting, methods, Chooser::kEr);
      if (entries.empty()) continue;
      const Cells er = compute(context, setting.name() + ": er", entries, [&](const Member& member) {
        return attack_cell(setting, member, setting.er(), Select::kLast, context.seed);
      });
      for (const Entry& entry : entries) figure.panels.push_back(panel_of(context, setting, entry));
      if (setting.dataset != "MNIST") continue;  // photographs have no strokes
      const Cells strokes = compute(context, setting.name() + ": strokes", entries, [&](const Member& member) {
        return Job{fmt::format("{}; strokes of {} samples, {}", member.trained.key, setting.samples, setting.top_k()),
                   [setting, member] { return stroke_shares(setting, member); }};
      });
      for (std::size_t i = 0; i < entries.size(); ++i) {
        Value share = plain_value(strokes[i], "values", context.seed);
        share.chance = strokes[i][0].at("chance").get<double>();
        table.add({setting.name(), entries[i].method->name}, {share, attacked_value(er[i], context.seed)});
      }
      result.verdicts.push_back(judge(strokes, setting.members));
    }
    result.tables.push_back(table);
    result.figures.push_back(figure);
    if (result.verdicts.empty())
      result.verdicts.push_back(
          make_verdict("R12", kSays, "not decided", "MNIST, whose strokes are counted, was left out.", {}, 0));
    return result;
  }

 private:
  static constexpr const char* kSays = "R2ET's top pixels show the digit or object, Vanilla's do not";

  static constexpr double kVisible = 0.1;  // above chance: less does not show the digit

  // Two parts: R2ET's top pixels are on the strokes more than Vanilla's, and Vanilla's hardly more than by chance.
  static Verdict judge(const Cells& strokes, std::int64_t seeds) {
    const auto above_chance = [&](std::size_t entry) {
      std::vector<double> means;
      for (const Json& cell : strokes[entry])
        means.push_back(defined_mean(numbers(cell.at("values"))) - cell.at("chance").get<double>());
      return means;
    };
    const std::vector<double> vanilla = above_chance(0), sp = above_chance(1), r2et = above_chance(3);
    const Value gain = difference_over_seeds(r2et, vanilla), plain = over_seeds(vanilla);
    return make_verdict(
        "R12", kSays, combined({judge_above(gain, 0), judge_below(plain, kVisible)}),
        fmt::format(
            "Number: share of the top 50 on the digits' strokes, R2ET (ReLU) minus Vanilla, paired by seed, MNIST pairs. "
            "Above chance, which is {:.3f}: Vanilla {}, R2ET {}, SP {}; Vanilla's are said not to show the digit below {}. "
            "A map that is only brighter in the middle of the image beats chance as well. Objects (CIFAR-10) are shown "
            "and not counted.",
            strokes[0][0].at("chance").get<double>(), words(plain), words(over_seeds(r2et)), words(over_seeds(sp)), kVisible),
        gain, seeds);
  }
};

}  // namespace

void add_fig4(Registry<Experiment>& registry) {
  registry.add<Fig4>(kFig4Info);
}

}  // namespace holdfast::r2et

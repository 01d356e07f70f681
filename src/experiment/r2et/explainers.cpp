// r2et/explainers: table 1 with SmoothGrad and Integrated Gradients in place of the plain gradient, under er. The networks are
// table 1's, chosen and trained on the gradient. Fewer steps than there: each costs as many passes as the explainer takes.
#include <cmath>

#include <fmt/format.h>

#include "experiments.h"
#include "orderings.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kExplainersInfo{
    .name = "r2et/explainers", .summary = "table 1 with smooth_grad and integrated_gradients", .citation = kPaper};

std::string explainer_call(const std::string& name, const Setting& setting, const ExperimentContext& context) {
  const int points = context.by_scale(5, 20, 50);
  const std::string project = setting.encoding == "one-hot" ? ",project=none" : "";
  return fmt::format("{}({}={}{})", name, name == "smooth_grad" ? "samples" : "steps", points, project);
}

class Explainers final : public Experiment {
 public:
  explicit Explainers(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "The same for SmoothGrad and Integrated Gradients", .paper = kPaper};
    result.settings["choice"] = kChoiceRule;
    ResultTable table{.name = "explainers",
                      .caption = "P@k under er, with the explainer's own maps attacked and compared.",
                      .keys = {"dataset", "method"},
                      .columns = {"saliency", "smooth_grad", "integrated_gradients", kCounts[0], kCounts[1]}};
    ResultTable orders{.name = "orderings",
                       .caption =
                           "Kendall's tau over the paper's methods with the ordering by saliency, interval by a bootstrap over "
                           "methods and seeds, and the best of these methods.",
                       .keys = {"dataset", "best, smooth_grad", "best, integrated_gradients"},
                       .columns = {"smooth_grad", "integrated_gradients"}};
    std::vector<Ordering> smooth_grad, integrated;
    std::vector<Case> taus;
    for (const Setting& setting : settings(context, Which::kAll)) {
      if (setting.encoding == "projected" || setting.dataset == "CIFAR-10" || setting.folds) continue;
      const std::vector<Entry> entries = zoo(context, setting, paper_methods(), Chooser::kEr);
      if (entries.empty()) continue;
      std::vector<Cells> cells{attack(context, setting, entries, setting.saliency())};
      for (const char* name : {"smooth_grad", "integrated_gradients"})
        cells.push_back(attack(context, setting, entries, explainer_call(name, setting, context)));
      std::vector<Ordering> orderings(3, Ordering{.setting = setting});
      for (std::size_t i = 0; i < entries.size(); ++i) {
        std::vector<Value> values;
        for (std::size_t j = 0; j < cells.size(); ++j) {
          values.push_back(attacked_value(cells[j][i], context.seed));
          orderings[j].add(entries[i], metric_values(cells[j][i]), "er");
        }
        add_counts(values, cells[0][i]);
        table.add({setting.name(), entries[i].method->name}, values);
      }
      const Value smooth = agreement(orderings[0], orderings[1], context.seed),
                  path = agreement(orderings[0], orderings[2], context.seed);
      orders.add({setting.name(), best(orderings[1])->name, best(orderings[2])->name}, {smooth, path});
      taus.push_back({setting.name() + ", smooth_grad", smooth});
      taus.push_back({setting.name() + ", integrated_gradients", path});
      smooth_grad.push_back(orderings[1]);
      integrated.push_back(orderings[2]);
    }
    result.tables = {table, orders};
    if (!taus.empty()) {
      Verdict verdict =
          judge_best("R10", "the same with SmoothGrad and Integrated Gradients: R2ET variants are best on most datasets",
                     {{"with smooth_grad", smooth_grad}, {"with integrated_gradients", integrated}}, context.seed);
      verdict.why += fmt::format(" Kendall's tau with the ordering by saliency: {}.", words(taus));
      result.verdicts = {verdict};
    }
    return result;
  }

 private:
  static Cells attack(ExperimentContext& context, const Setting& setting, const std::vector<Entry>& entries,
                      const std::string& explainer) {
    const std::string er = fmt::format("er(steps={})", context.by_scale(10, setting.tabular ? 100 : 20, 100));
    return compute(context, setting.name() + ": " + explainer, entries, [&](const Member& member) {
      CellSubject subject = subject_of(setting, member);
      subject.explainer = explainer;
      subject.samples = std::min<std::int64_t>(setting.samples, context.by_scale(12, setting.tabular ? 100 : 16, 200));
      return attack_job(subject,
                        {.attack = er, .metrics = {setting.top_k()}, .epsilon = setting.epsilon, .select = Select::kLast},
                        context.seed);
    });
  }
};

}  // namespace

void add_explainers(Registry<Experiment>& registry) {
  registry.add<Explainers>(kExplainersInfo);
}

}  // namespace holdfast::r2et

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
                      .columns = {"saliency", "smooth_grad", "integrated_gradients"}};
    ResultTable orders{.name = "orderings",
                       .caption = "Kendall's tau over methods with the ordering by saliency, and the best method.",
                       .keys = {"dataset", "best, smooth_grad", "best, integrated_gradients"},
                       .columns = {"smooth_grad", "integrated_gradients"}};
    std::vector<Ordering> all;
    std::vector<double> taus;
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
        table.add({setting.name(), entries[i].method->name}, values);
      }
      const auto any = [](const Method&) { return true; };
      const Value smooth = agreement(orderings[0], orderings[1], context.seed),
                  path = agreement(orderings[0], orderings[2], context.seed);
      orders.add({setting.name(), best(orderings[1], any)->name, best(orderings[2], any)->name}, {smooth, path});
      taus.insert(taus.end(), {smooth.value, path.value});
      all.insert(all.end(), {orderings[1], orderings[2]});
    }
    result.tables = {table, orders};
    if (!all.empty()) result.verdicts.push_back(judge(all, taus));
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

  static Verdict judge(const std::vector<Ordering>& all, const std::vector<double>& taus) {
    Verdict verdict = judge_best(all, "er on smooth_grad and integrated_gradients");
    verdict.claim = "R10";
    verdict.says = "the same with SmoothGrad and Integrated Gradients: R2ET variants are best";
    verdict.why += fmt::format("; Kendall's tau with the ordering by saliency is {:.2f} in the mean", defined_mean(taus));
    return verdict;
  }
};

}  // namespace

void add_explainers(Registry<Experiment>& registry) {
  registry.add<Explainers>(kExplainersInfo);
}

}  // namespace holdfast::r2et

// exact: the true minimum of a metric of the top k, or of Kendall's tau, over the ball, by branch and bound over the activation
// cells of a small ReLU network (exact/cell_search.h). Ours; no paper.
//
// Its point is judged on the model like any attack's. Beside it stands what is proven: no allowed point has a value below
// `proven`. The two meet where the search ends before its limit; else the truth lies between them. With `seconds` the limit is
// one of time, and results depend on the machine.
//
// For chains of linear layers with relu or leaky_relu, and maps that rank the gradient of one logit, or with two classes of the
// probability: inside a cell that ranking is constant. In deeper networks a cell is a pattern of all layers; the first layers
// are decided first.
#include "batch_reading.h"
#include "check.h"
#include "exact/read_chain.h"
#include "exact/search_sample.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "ledger.h"

namespace holdfast::attack::exact {

const MethodInfo kInfo{
    .name = "exact",
    .summary = "true minimum of a metric of the top k, or of kendall, over the ball, with proof: small ReLU networks",
    .options = {{"nodes", 200000, at_least(1), "parts of the ball that are looked at, for each sample, before the search ends"},
                {"seconds", 0.0, at_least(0), "the same as a time; 0: none. Results then depend on the machine"}},
    .needs = {"linear layers with relu or leaky_relu; two classes, or target=logit"},
    .notes =
        "The map must be saliency's. `proven` says below which value no point can be; it equals the value where the search was "
        "completed. For metrics top_k, lens_precision, lens_recall and kendall, norms l2 and linf."};

class Exact final : public Attack {
 public:
  explicit Exact(const Options& options)
      : Attack(options.canonical()), limits_{.nodes = options.integer("nodes"), .seconds = options.real("seconds")} {}

  Select selects(Select) const override { return Select::kWorst; }
  // Most searches end long before their limit.
  double expected_evaluations(const Explainer&, const Schema&) const override { return static_cast<double>(limits_.nodes); }

  void check(const AttackTask& task) const override {
    check_task(task);
    if (const auto why = why_not(task)) usage_error("{}: {}", name(), *why);
  }

  AttackResult run(const AttackTask& task) const override {
    check(task);
    const Explanation clean = task.explainer.attribute(explain_at(task, task.samples.inputs));
    Ledger ledger(task, clean, Select::kWorst);
    ledger.charge(task.explainer.evaluations(*task.samples.schema));
    look_at_start(task, ledger, name());
    search_samples(task, limits_, clean, ledger);
    return ledger.finish();
  }

 private:
  CellLimits limits_;
};

void add_to(Registry<Attack>& registry) {
  registry.add<Exact>(kInfo);
}

}  // namespace holdfast::attack::exact

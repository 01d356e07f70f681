// Seeds until decided: a claim is judged with a few seeds first, and with more where they leave it open.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/experiment/reproduce_statistics.h"
#include "run.h"

namespace holdfast::experiment::paper {
namespace {

constexpr double kError = 0.05;  // of all looks together

// The plan with so many networks of each method. Folds and published weights are as many as there are.
Plan with_seeds(Plan plan, std::int64_t seeds) {
  for (Setting& setting : plan.settings) {
    if (!setting.model.empty() || setting.members_are != "seeds") continue;
    setting.first_members = setting.members;
    setting.members = seeds;
  }
  return plan;
}

bool is_open(const Verdict& verdict) {
  return verdict.judgement == Judgement::kNotDecided;
}

// The verdicts of a look, with those that were decided before it in their places.
std::vector<Verdict> merged(const std::vector<Verdict>& before, std::vector<Verdict> now, const std::string& look) {
  for (Verdict& verdict : now) {
    const auto earlier = std::ranges::find(before, verdict.claim, &Verdict::claim);
    if (earlier != before.end() && !is_open(*earlier)) {
      verdict = *earlier;
    } else {
      verdict.why +=
          fmt::format("{}{} {}.", verdict.why.ends_with(' ') ? "" : " ", is_open(verdict) ? "Still open at" : "Decided at", look);
    }
  }
  return now;
}

}  // namespace

ExperimentResult run_looks(ExperimentContext& context, const Plan& plan, const Words& options) {
  const double level = 1 - kError / static_cast<double>(context.looks.size());
  const IntervalLevel of_this_run(level);
  const std::string percent = fmt::format("{:.4g} %", 100 * level);
  ExperimentResult result;
  for (const std::int64_t seeds : context.looks) {
    context.begin_look();
    const Plan own = with_seeds(plan, seeds);
    PaperRun run(context, own, options);
    run.run();
    const std::string look = fmt::format("{} seeds (looks: {}; intervals of {})", seeds, fmt::join(context.looks, ", "), percent);
    std::vector<Verdict> verdicts = merged(result.verdicts, std::move(run.result.verdicts), look);
    result = std::move(run.result);
    result.verdicts = std::move(verdicts);
    result.settings["seeds"] = {{"looks", context.looks}, {"reached", seeds}, {"level", level}};
    // Where nothing is judged there is nothing to decide. A plan does not know, and counts all looks.
    if (plan.claims.empty() || (!context.plans() && std::ranges::none_of(result.verdicts, is_open))) break;
  }
  if (context.looks.size() > 1)
    context.note(fmt::format("intervals over seeds are of {}, in tables too: claims may be judged {} times", percent,
                             context.looks.size()));
  return result;
}

}  // namespace holdfast::experiment::paper

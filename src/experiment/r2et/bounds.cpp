// r2et/bounds: is thickness between the bounds of Proposition 3.4? The relaxed thickness (mean gap on the way to points of the
// ball) is measured and held against the printed bounds, whose lower one takes the Hessian at the sample alone, and against the
// sound ones, which hold for smooth networks only. A violation is one beyond four standard errors of the measured thickness.
#include <cmath>

#include <fmt/format.h>

#include "experiments.h"
#include "holdfast/measure/proportion.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kBoundsInfo{.name = "r2et/bounds",
                             .summary = "how often thickness leaves the bounds of proposition 3.4, as printed and made sound",
                             .citation = kPaper};

constexpr double kErrors = 4;

struct Count {
  std::int64_t below = 0, above = 0, lower_known = 0, upper_known = 0;
  std::vector<double> widths;  // upper minus lower, over the gap

  void add(const Json& thickness, const Json& bounds) {
    if (thickness.at("parts").empty() || bounds.at("parts").empty()) return;  // a constant network
    const std::vector<double> values = numbers(thickness.at("values")), errors = numbers(thickness.at("parts").at("error"));
    const std::vector<double> lower = numbers(bounds.at("values")), upper = numbers(bounds.at("parts").at("upper")),
                              gaps = numbers(bounds.at("parts").at("gap"));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double slack = kErrors * errors[i] + 1e-9;
      if (!std::isnan(lower[i])) {
        ++lower_known;
        below += values[i] + slack < lower[i] ? 1 : 0;
      }
      if (!std::isnan(upper[i])) {
        ++upper_known;
        above += values[i] - slack > upper[i] ? 1 : 0;
        widths.push_back((upper[i] - lower[i]) / gaps[i]);
      }
    }
  }
  Value share(std::int64_t met, std::int64_t known) const {
    if (known == 0) return {};
    const Interval interval = proportion_interval(met, known);
    return {.value = interval.mean, .low = interval.low, .high = interval.high, .count = known};
  }
};

class Bounds final : public Experiment {
 public:
  explicit Bounds(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "Thickness between its bounds", .paper = kPaper};
    result.settings["choice"] = kChoiceRule;
    ResultTable table{.name = "violations",
                      .caption =
                          "Share of samples whose relaxed thickness lies below the lower or above the upper bound (exact "
                          "interval), by radius. Networks with "
                          "ReLU have no sound bound, and no printed upper one.",
                      .keys = {"dataset", "method", "radius"},
                      .columns = {"below, printed", "above, printed", "below, sound", "above, sound", "width / gap, sound"}};
    Count printed_relu, printed_smooth, sound;
    for (const Setting& setting : settings(context, Which::kTabularOneHot)) {
      const std::vector<Entry> entries = zoo(context, setting, some_methods(), Chooser::kEr);
      for (const double radius : {0.1, 1.0}) {
        for (const Entry& entry : entries) {
          const bool smooth = entry.method->is_softplus();
          Count as_printed, made_sound;
          measure(context, setting, entry, radius, as_printed, made_sound, smooth ? printed_smooth : printed_relu, sound);
          table.add({setting.name(), entry.method->name, fmt::format("{}", radius)},
                    {as_printed.share(as_printed.below, as_printed.lower_known),
                     as_printed.share(as_printed.above, as_printed.upper_known),
                     made_sound.share(made_sound.below, made_sound.lower_known),
                     made_sound.share(made_sound.above, made_sound.upper_known), over_seeds(made_sound.widths)});
        }
      }
    }
    result.tables.push_back(table);
    if (printed_relu.lower_known > 0)
      result.verdicts.push_back(judge(printed_relu, printed_smooth, sound, context.by_scale(2, 5, 5)));
    return result;
  }

 private:
  static const std::vector<Method>& some_methods() {
    static const std::vector<Method> methods{method("Vanilla"), method("SP"), method("R2ET\\H"), method("R2ET\\H, softplus"),
                                             method("R2ET, softplus")};
    return methods;
  }

  static void measure(ExperimentContext& context, const Setting& setting, const Entry& entry, double radius, Count& as_printed,
                      Count& made_sound, Count& all_printed, Count& all_sound) {
    std::vector<std::string> calls{"thickness(k={},form=relaxed)", "thickness_bounds(k={},by=printed,project=none)"};
    if (entry.method->is_softplus()) calls.emplace_back("thickness_bounds(k={},project=none)");
    std::vector<Job> jobs;
    for (const Member& member : entry.members) {
      CellSubject subject = subject_of(setting, member);
      subject.samples = std::min<std::int64_t>(subject.samples, 100);
      for (const std::string& call : calls)
        jobs.push_back(measure_job(subject, fmt::format(fmt::runtime(call), setting.k), radius, context.seed));
    }
    const std::vector<Json> cells =
        context.compute(fmt::format("{}: {}, radius {}", setting.name(), entry.method->name, radius), jobs);
    for (std::size_t i = 0; i < cells.size(); i += calls.size()) {
      for (Count* count : {&as_printed, &all_printed}) count->add(cells[i], cells[i + 1]);
      if (calls.size() < 3) continue;
      for (Count* count : {&made_sound, &all_sound}) count->add(cells[i], cells[i + 2]);
    }
  }

  static Verdict judge(const Count& relu, const Count& smooth, const Count& sound, std::int64_t seeds) {
    const std::int64_t below = relu.below + smooth.below, known = relu.lower_known + smooth.lower_known;
    const Interval share = proportion_interval(below, known);
    return {.claim = "R11",
            .says = "thickness lies between the bounds of Proposition 3.4",
            .verdict = share.mean == 0    ? "holds"
                       : share.mean < 0.5 ? "holds in part"
                                          : "does not hold",
            .why = fmt::format("share of {} samples whose thickness is below the printed lower bound (ReLU {} of {}, smooth {} "
                               "of {}); of the sound form {} of {} are outside",
                               known, relu.below, relu.lower_known, smooth.below, smooth.lower_known, sound.below + sound.above,
                               sound.lower_known),
            .number = share.mean,
            .low = share.low,
            .high = share.high,
            .seeds = seeds};
  }
};

}  // namespace

void add_bounds(Registry<Experiment>& registry) {
  registry.add<Bounds>(kBoundsInfo);
}

}  // namespace holdfast::r2et

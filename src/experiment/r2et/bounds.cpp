// r2et/bounds: is thickness between the bounds of Proposition 3.4? The relaxed thickness (mean gap on the way to points of the
// ball) is measured and held against the printed bounds, whose lower one takes the Hessian at the sample alone, and against the
// sound ones, which hold for smooth networks only. A violation is one beyond four standard errors of the measured thickness.
#include <cmath>

#include <fmt/format.h>

#include "../judging.h"
#include "experiments.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

const MethodInfo kBoundsInfo{.name = "r2et/bounds",
                             .summary = "how often thickness leaves the bounds of proposition 3.4, as printed and made sound",
                             .citation = kPaper};

constexpr double kErrors = 4;

// Of one network: shares of the samples, and their number.
struct Outside {
  double below = std::nan(""), above = std::nan("");  // NaN where the bound is not known for any sample
  double width = std::nan("");                        // upper minus lower, over the gap
  std::int64_t below_count = 0, above_count = 0, lower_known = 0, upper_known = 0;
};

Outside outside(const Json& thickness, const Json& bounds) {
  Outside found;
  if (thickness.at("parts").empty() || bounds.at("parts").empty()) return found;  // a constant network
  const std::vector<double> values = numbers(thickness.at("values")), errors = numbers(thickness.at("parts").at("error"));
  const std::vector<double> lower = numbers(bounds.at("values")), upper = numbers(bounds.at("parts").at("upper")),
                            gaps = numbers(bounds.at("parts").at("gap"));
  std::vector<double> widths;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double slack = kErrors * errors[i] + 1e-9;
    if (!std::isnan(lower[i])) {
      ++found.lower_known;
      found.below_count += values[i] + slack < lower[i] ? 1 : 0;
    }
    if (!std::isnan(upper[i])) {
      ++found.upper_known;
      found.above_count += values[i] - slack > upper[i] ? 1 : 0;
      widths.push_back((upper[i] - lower[i]) / gaps[i]);
    }
  }
  const auto share_of = [](std::int64_t count, std::int64_t known) {
    return known == 0 ? std::nan("") : static_cast<double>(count) / static_cast<double>(known);
  };
  found.below = share_of(found.below_count, found.lower_known);
  found.above = share_of(found.above_count, found.upper_known);
  found.width = defined_mean(widths);
  return found;
}

// Networks by seed, of one method or of all.
struct Networks {
  std::vector<std::vector<Outside>> members = {};

  void add(std::size_t member, const Outside& network) {
    if (members.size() <= member) members.resize(member + 1);
    members[member].push_back(network);
  }
  // Mean over a seed's networks, then over seeds.
  Value mean(double Outside::*which) const {
    std::vector<double> means;
    for (const std::vector<Outside>& networks : members) {
      std::vector<double> numbers;
      for (const Outside& network : networks) numbers.push_back(network.*which);
      means.push_back(defined_mean(numbers));
    }
    return over_seeds(means);
  }
  std::int64_t sum(std::int64_t Outside::*which) const {
    std::int64_t total = 0;
    for (const std::vector<Outside>& networks : members) {
      for (const Outside& network : networks) total += network.*which;
    }
    return total;
  }
};

// What the verdict is about.
struct AllNetworks {
  Networks printed_relu, printed_smooth, sound;
};

class Bounds final : public Experiment {
 public:
  explicit Bounds(const Options& options) : Experiment(options.canonical()) {}

  ExperimentResult run(ExperimentContext& context) const override {
    ExperimentResult result{.title = "Thickness between its bounds", .paper = kPaper};
    result.settings["choice"] = kChoiceRule;
    ResultTable table{
        .name = "violations",
        .caption =
            "Share of samples whose relaxed thickness lies below the lower or above the upper bound by more than four "
            "of its standard errors, by radius; mean and interval over seeds. Networks with ReLU have no sound bound, "
            "and no printed upper one.",
        .keys = {"dataset", "method", "radius"},
        .columns = {"below, printed", "above, printed", "below, sound", "above, sound", "width / gap, sound"}};
    AllNetworks all;
    for (const Setting& setting : settings(context, Which::kTabularOneHot)) {
      const std::vector<Entry> entries = zoo(context, setting, some_methods(), Chooser::kEr);
      for (const double radius : {0.1, 1.0}) {
        for (const Entry& entry : entries) {
          Networks printed, sound;
          measure(context, setting, entry, radius, printed, sound, all);
          table.add({setting.name(), entry.method->name, fmt::format("{}", radius)},
                    {share(printed.mean(&Outside::below)), share(printed.mean(&Outside::above)),
                     share(sound.mean(&Outside::below)), share(sound.mean(&Outside::above)), sound.mean(&Outside::width)});
        }
      }
    }
    result.tables.push_back(table);
    if (!all.printed_relu.members.empty()) result.verdicts = {judge(all)};
    return result;
  }

 private:
  static const std::vector<Method>& some_methods() {
    static const std::vector<Method> methods{method("Vanilla"), method("SP"), method("R2ET\\H"), method("R2ET\\H, softplus"),
                                             method("R2ET, softplus")};
    return methods;
  }

  static void measure(ExperimentContext& context, const Setting& setting, const Entry& entry, double radius, Networks& printed,
                      Networks& sound, AllNetworks& all) {
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
    const bool smooth = entry.method->is_softplus();
    for (std::size_t i = 0; i < cells.size(); i += calls.size()) {
      const std::size_t member = i / calls.size();
      const Outside as_printed = outside(cells[i], cells[i + 1]);
      printed.add(member, as_printed);
      (smooth ? all.printed_smooth : all.printed_relu).add(member, as_printed);
      if (!smooth) continue;
      const Outside made_sound = outside(cells[i], cells[i + 2]);
      sound.add(member, made_sound);
      all.sound.add(member, made_sound);
    }
  }

  // Beyond four standard errors a sample lies by chance less than once in ten thousand times.
  static constexpr double kChance = 0.001;

  // A proposition is about every sample: a share that is surely more than chance's refutes it. In parts: the lower bound with
  // ReLU and with smooth networks, and the upper bound.
  static Verdict judge(const AllNetworks& all) {
    const auto part = [](const Value& share) {
      return share.value == 0 || surely_below(share, kChance) ? std::string("holds") : judge_below(share, kChance);
    };
    const auto counted = [](const Networks& networks, std::int64_t Outside::*count, std::int64_t Outside::*known) {
      return fmt::format("{} of {}", networks.sum(count), networks.sum(known));
    };
    const Value relu = all.printed_relu.mean(&Outside::below), smooth = all.printed_smooth.mean(&Outside::below),
                above = all.printed_smooth.mean(&Outside::above);
    return make_verdict(
        "R11", "thickness lies between the bounds of Proposition 3.4", combined({part(relu), part(smooth), part(above)}),
        fmt::format(
            "Number: share of samples whose thickness is below the printed lower bound in networks with ReLU, mean over "
            "tables, Vanilla and R2ET\\H and radii .1 and 1, interval over seeds ({} samples). In smooth networks {} ({}); "
            "above the printed upper bound {} ({}). Outside the sound form, which smooth networks alone have: {} below, {} "
            "above. More than {} is called a violation.",
            counted(all.printed_relu, &Outside::below_count, &Outside::lower_known), words(share(smooth)),
            counted(all.printed_smooth, &Outside::below_count, &Outside::lower_known), words(share(above)),
            counted(all.printed_smooth, &Outside::above_count, &Outside::upper_known),
            counted(all.sound, &Outside::below_count, &Outside::lower_known),
            counted(all.sound, &Outside::above_count, &Outside::upper_known), kChance),
        share(relu), static_cast<std::int64_t>(all.printed_relu.members.size()));
  }
};

}  // namespace

void add_bounds(Registry<Experiment>& registry) {
  registry.add<Bounds>(kBoundsInfo);
}

}  // namespace holdfast::r2et

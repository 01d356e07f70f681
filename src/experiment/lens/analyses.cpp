// What the LENS experiments do beyond their declared tables and claims.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "claims.h"
#include "holdfast/metric/neighborhood.h"

namespace holdfast::experiment::paper::lens {
namespace {

bool has_digits(const MeasuredRow& row) {
  return row.setting->name == "mnist" || row.setting->name == "fashion_mnist";
}

// What a column says more than another of the same samples: as it is, and with the chance level of each taken out.
struct Gains {
  std::vector<Case> plain = {}, adjusted = {};

  void add(const std::string& name, const Numbers& more, const Numbers& less, std::uint64_t seed) {
    plain.push_back({name, bounded_difference(more, less, seed)});
    adjusted.push_back({name, difference(paper::adjusted(more), paper::adjusted(less), seed)});
  }
};

// L5 on ImageNet: beside the cases, averages over them for each image.
void analyse_fig2(PaperRun& run) {
  const MeasuredTable& table = run.measured("values");
  if (table.rows.empty()) return;
  std::vector<std::vector<double>> gains, adjusted_gains;  // by cell, of each image
  Gains cases;
  for (const MeasuredRow& row : table.rows) {
    const Numbers &diverse = table.numbers(row, "3-LENS-recall-div"), &plain = table.numbers(row, "3-LENS-recall");
    gains.push_back(minus(diverse, plain).values.front());
    adjusted_gains.push_back(minus(adjusted(diverse), adjusted(plain)).values.front());
    cases.add("", diverse, plain, run.seed);
  }
  run.judge_all_above(
      "L5", run.cases_of(run.claim("L5")),
      fmt::format("Averaged over the cases for each image, then over images, it is {}; with chance taken out {}, and of {}.",
                  words(mean_of_samples(gains, run.seed)), words(mean_of_samples(adjusted_gains, run.seed)),
                  outcome_above(cases.adjusted, 0)),
      0);
}

// L2: that locality says more is true by definition, so the ratio on the digits decides.
void judge_locality(PaperRun& run) {
  const MeasuredTable &table = run.measured("values"), &adjusted = run.measured("adjusted");
  std::string why = "That neither prec nor recall is below top-k is true by definition (Proposition 1) and decides nothing. ";
  std::vector<Case> ratios;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const MeasuredRow& row = table.rows[i];
    const Value ratio = paper::ratio(row.numbers[1], row.numbers[0]);
    if (std::isnan(ratio.value)) {
      why += fmt::format("{}: no ratio, nothing of the top k is left or no sample is classified rightly. ", row.setting->name);
      continue;
    }
    const std::vector<Value>&raw = row.values, &without_chance = adjusted.rows[i].values;
    why += fmt::format("{}: top-k {}, 1-LENS-prec {}, recall {}, ratio {}; with chance taken out {:.3f}, {:.3f} and {:.3f}. ",
                       row.setting->name, words(raw[0]), words(raw[1]), words(raw[2]), words(ratio), without_chance[0].value,
                       without_chance[1].value, without_chance[2].value);
    if (has_digits(row)) ratios.push_back({row.setting->name, ratio});
  }
  run.judge_all_above("L2", ratios, why, table.rows.empty() ? 0 : run.fewest_members());
}

void analyse_fig4(PaperRun& run) {
  judge_locality(run);
  const MeasuredTable& table = run.measured("shares");
  const std::vector<double>& limits = run.claim("L7").limits;
  std::vector<SharesBelow> readings;
  for (const double limit : {limits[1], limits[2]}) {
    readings.push_back({limit, {}});
    for (const MeasuredRow& row : table.rows)
      readings.back().datasets.push_back({row.setting->name, share_below(row.numbers.front(), limit)});
  }
  const Finding found = judge_small_share(readings, limits[0]);
  run.judge("L7", found, table.rows.empty() ? 0 : run.fewest_members());
}

// Whether the attack leaves surely more of the top k than chance would.
bool is_left(const MeasuredRow& row) {
  return surely_above(row.values[0], row.values[0].chance.value_or(1));
}

// L3: that it grows follows from the definition. Is the gain from w = 0 to 1 under top-t above that under each other attack?
void judge_growth(PaperRun& run) {
  const MeasuredTable& table = run.measured("precision");
  std::vector<Case> leads;
  Gains gains;
  std::vector<std::string> floor;
  for (const MeasuredRow& row : table.rows) {
    const std::string name = row.setting->name + ", " + row.words.at("attack");
    gains.add(name, row.numbers[1], row.numbers[0], run.seed);
    if (!is_left(row)) floor.push_back(name);
    if (row.words.at("attack") == "top_t") continue;
    const MeasuredRow& top = *table.like(row, {{"attack", "top_t"}});
    leads.push_back({row.setting->name + ", against " + row.words.at("attack"),
                     difference(minus(top.numbers[1], top.numbers[0]), minus(row.numbers[1], row.numbers[0]), run.seed)});
  }
  const std::string nothing_left =
      floor.empty()
          ? ""
          : fmt::format("Not surely more of the top k than by chance is left for a window to find: {}. ", fmt::join(floor, "; "));
  run.judge_all_above("L3", leads,
                      fmt::format("That it grows is true by definition (Proposition 1) and decides nothing. {}Gains: {}. With "
                                  "chance taken out: {}.",
                                  nothing_left, words(gains.plain), words(gains.adjusted)),
                      run.context.by_scale(1, 3, 3));
}

// L12: what locality adds with chance taken out, on MNIST minus on ImageNet, for each attack. A ratio would not do: where top-k
// is near 1 there is nothing left to add. Nor do attacks that leave no more of the top k than chance: nothing is left there that
// a window could find, and the gain is negative whatever the dataset.
void judge_shrinking(PaperRun& run) {
  const MeasuredTable& table = run.measured("precision");
  std::vector<Case> differences;
  std::vector<std::string> floor;
  std::string why;
  for (const MeasuredRow& large : table.rows) {
    const MeasuredRow* small = table.like(large, {{"name", "mnist"}});
    if (large.setting->name != "imagenet" || small == nullptr) continue;
    const auto gain = [&](const MeasuredRow& row) {
      return difference(adjusted(row.numbers[1]), adjusted(row.numbers[0]), run.seed);
    };
    const std::string& attack = large.words.at("attack");
    why += fmt::format("{}: {} on ImageNet, {} on MNIST. ", attack, words(gain(large)), words(gain(*small)));
    if (is_left(large) && is_left(*small)) {
      differences.push_back({attack, independent_difference(gain(*small), gain(large))});
    } else {
      floor.push_back(attack);
    }
  }
  const std::string not_judged =
      floor.empty()
          ? ""
          : fmt::format("Not judged, because top-k is not surely above its chance level on both: {}. ", fmt::join(floor, ", "));
  run.judge_all_above("L12", differences, not_judged + "Gains: " + (why.empty() ? "It takes both MNIST and ImageNet. " : why),
                      run.context.by_scale(1, 3, 3));
}

void analyse_fig5(PaperRun& run) {
  const MeasuredTable &plain = run.measured("precision"), &diverse = run.measured("precision_div");
  judge_growth(run);
  Gains gains;
  for (std::size_t i = 0; i < plain.rows.size(); ++i)
    gains.add(plain.rows[i].setting->name + ", " + plain.rows[i].words.at("attack"), diverse.rows[i].numbers[1],
              plain.rows[i].numbers[1], run.seed);
  run.judge_all_above("L5", gains.plain,
                      fmt::format("With chance taken out {}. On MNIST most of a diverse set are pixels whose attribution is "
                                  "zero, chosen by their position alone.",
                                  outcome_above(gains.adjusted, 0)),
                      run.context.by_scale(1, 3, 3));
  judge_shrinking(run);
}

void analyse_table2(PaperRun& run) {
  const MeasuredTable& table = run.measured("values");
  const bool is_the_papers = run.options.at("natural") != "none";
  if (!is_the_papers)
    run.context.note(
        "ResNet50 weights are not public to us: SqueezeNet stands for the natural network of ImageNet, and CIFAR-10's ResNet-20 "
        "(natural) and ResNet-4b (adversarial, l_inf 2/255) stand for the pair; they differ in more than their training.");
  std::vector<Value> gains;
  for (const MeasuredRow& row : table.rows) {
    if (row.setting->is_one_of({"the paper's"}) != is_the_papers) continue;
    const Value& diverse = row.values[table.column("3-LENS-recall-div")];
    const Value gain = bounded_difference(table.numbers(row, "3-LENS-recall-div"), table.numbers(row, "3-LENS-recall"), run.seed);
    gains.push_back(*diverse.published > *row.values[table.column("3-LENS-recall")].published ? gain : negative(gain));
  }
  const Finding found = judge_order(gains, is_the_papers);
  run.judge("L8", found, 0);
}

// L10: locality raises the measure for every explainer, and for both correlations; what could come out otherwise decides. That
// sets with windows are no smaller is true by definition; smoothing a map can raise a correlation or lower it.
void judge_other_explainers(PaperRun& run) {
  const MeasuredTable &sets = run.measured("sets"), &correlations = run.measured("correlations");
  Tally higher, more_specific, adjusted_sets, specific_sets;
  std::vector<Case> open;
  for (std::size_t i = 0; i < sets.rows.size(); ++i) {
    const MeasuredRow &row = correlations.rows[i], &set = sets.rows[i];
    const auto specific_gain = [&](const Numbers& local, const Numbers& plain) {
      return difference(specific(local), specific(plain), run.seed);
    };
    adjusted_sets.add_above(difference(adjusted(set.numbers[1]), adjusted(set.numbers[0]), run.seed), 0);
    specific_sets.add_above(specific_gain(set.numbers[1], set.numbers[0]), 0);
    for (const std::size_t plain : {0, 2}) {
      const Value gain = bounded_difference(row.numbers[plain + 1], row.numbers[plain], run.seed);
      higher.add_above(gain, 0);
      more_specific.add_above(specific_gain(row.numbers[plain + 1], row.numbers[plain]), 0);
      if (!surely_above(gain, 0))
        open.push_back({fmt::format("{}, {}, {}, {}", row.setting->name, row.words.at("explainer"), row.words.at("attack"),
                                    correlations.plan->columns[plain + 1].metric),
                        gain});
    }
  }
  std::vector<std::string> nudged;
  for (const NamedCall& explainer : run.plan.explainers) {
    if (!explainer.attacks.empty()) nudged.push_back(explainer.name);
  }
  const Words texts{{"correlations", higher.words()},
                    {"specific", more_specific.words()},
                    {"nudged", fmt::format("{}", fmt::join(nudged, ", "))},
                    {"sets", std::to_string(adjusted_sets.all)},
                    {"adjusted_sets", adjusted_sets.words()},
                    {"specific_sets", specific_sets.words()},
                    {"open", open.empty() ? "" : "Not surely higher: " + words(open) + "."}};
  run.judge("L10", {judge_all(higher), texts, higher.share()}, run.context.by_scale(1, 3, 3));
}

// The distance of two smoothed maps over that of the maps.
double smoothed_ratio(const MapView& first, const MapView& second, std::int64_t w) {
  const Neighborhood near(first.schema, w);
  std::vector<double> difference(first.values.size()), smoothed(first.values.size());
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] = first.values[i] - second.values[i];
  near.smooth(difference, smoothed);
  const auto norm = [](const std::vector<double>& values) {
    double squares = 0;
    for (const double value : values) squares += value * value;
    return std::sqrt(squares);
  };
  return norm(smoothed) / std::max(norm(difference), 1e-300);
}

void analyse_appendix(PaperRun& run) {
  judge_other_explainers(run);
  double largest = 0;
  std::int64_t pairs = 0;
  for (const Setting& setting : run.settings) {
    if (run.networks(setting).empty() || run.context.plans()) continue;
    StudiedNetwork subject = subject_of(setting, run.networks(setting).front().members.front());
    subject.explains_labels = false;
    const MapBatch maps = clean_maps(subject, 0, run.context.threads);
    for (std::int64_t i = 0; i + 1 < maps.count; ++i, ++pairs) {
      for (const std::int64_t w : {1, 2, 3}) largest = std::max(largest, smoothed_ratio(maps[i], maps[i + 1], w));
    }
  }
  run.judge("L11", {judge_contraction(largest, pairs), {{"pairs", std::to_string(pairs)}}, {.value = largest}}, 1);
}

// L2 again: is 1-LENS-prec of natural networks still above .9 when it is attacked itself?
void judge_strong_locality(PaperRun& run) {
  const MeasuredTable& table = run.measured("values");
  std::string why;
  std::vector<std::string> datasets;
  for (const MeasuredRow& row : table.rows) {
    if (row.method() != "natural") continue;
    const Value &paper = row.values[table.column("1-LENS-prec, paper's attacks")],
                &strong = row.values[table.column("1-LENS-prec, gauntlet")];
    why += fmt::format("{}, {}: {} under the paper's attacks, {} under gauntlet(effort={}), chance {:.3f}. ", row.setting->name,
                       row.words.at("explainer"), words(paper), words(strong), run.options.at("effort"),
                       strong.chance.value_or(kUndefined));
    if (row.words.at("explainer") == "integrated_gradients" && !std::isnan(strong.value))
      datasets.emplace_back(row.setting->name == "mnist" ? "MNIST" : "Fashion-MNIST");
  }
  run.judge_all_above("L2", run.cases_of(run.claim("L2")), why, run.fewest_members(),
                      {{"where", datasets.empty() ? "" : fmt::format(" on {}", fmt::join(datasets, " and "))}});
}

// Ours minus every rival, under top-k and 1-LENS-prec: a claim about all of these. It holds whole only where, surely, accuracy is
// within a point of IG-SUM-NORM's and the level between samples not far above natural training's.
void judge_ours(PaperRun& run) {
  const MeasuredTable &table = run.measured("values"), &networks = run.measured("networks");
  const std::vector<double>& limits = run.claim("ours").limits;
  std::vector<Case> differences;
  std::vector<Condition> conditions;
  std::string robust;
  for (const MeasuredRow& row : table.rows) {
    if (row.method() != "steady_map") continue;
    const auto numbers = [&](const char* method, const std::string& column) -> const Numbers& {
      return table.numbers(*table.like(row, {{"method", method}}), column);
    };
    const std::string &dataset = row.setting->name, &explainer = row.words.at("explainer");
    for (const std::string column : {"top-k, gauntlet", "1-LENS-prec, gauntlet"}) {
      const Numbers& own = table.numbers(row, column);
      const std::string metric = row.setting->fill(run.paper.call(table.plan->columns[table.column(column)].metric));
      conditions.push_back({{fmt::format("between level minus natural training's, {}, {}, {}", dataset, explainer, metric),
                             share_difference(own.between, numbers("natural", column).between)},
                            limits[0],
                            /*is_above=*/false});
      for (const MeasuredRow& rival : table.rows) {
        const bool is_beside = rival.setting == row.setting && rival.words.at("explainer") == explainer;
        if (!is_beside || rival.method() == "natural" || rival.method() == "steady_map") continue;
        differences.push_back({fmt::format("{}, {}, {}, against {}", dataset, explainer, metric, rival.method()),
                               bounded_difference(own, table.numbers(rival, column), run.seed)});
      }
    }
    if (explainer != "saliency") continue;  // the same networks
    const auto network = [&](const char* method) -> const MeasuredRow& {
      return *networks.like(row, {{"method", method}, {"explainer", ""}});
    };
    conditions.push_back({{fmt::format("test accuracy minus ig_sum_norm's, {}", dataset),
                           share_difference(network("steady_map").numbers[0].means(), network("ig_sum_norm").numbers[0].means())},
                          -limits[1],
                          /*is_above=*/true});
    robust += fmt::format("Robust accuracy on {}: {}, ig_sum_norm {}. ", dataset, words(network("steady_map").values[1]),
                          words(network("ig_sum_norm").values[1]));
  }
  run.judge_all_above("ours", differences, in_words(conditions) + robust, run.fewest_members());
  Judgement& judgement = run.verdict("ours").judgement;
  judgement = with_conditions(judgement, conditions);
}

void analyse_beyond(PaperRun& run) {
  judge_strong_locality(run);
  judge_ours(run);
}

// Every variant minus steady_map as shipped; and a dot for each, where up is a map that is the same for all samples.
void analyse_ablation(PaperRun& run) {
  const MeasuredTable& table = run.measured("values");
  if (table.rows.empty()) return;
  const MeasuredRow& shipped = *table.like(table.rows.front(), {{"method", "steady_map"}});
  Json dots = Json::array();
  for (const MeasuredRow& row : table.rows) {
    for (const auto& [explainer, first] : {std::pair<const char*, std::size_t>{"saliency", 2}, {"integrated gradients", 4}}) {
      const Value &top = row.values[first], &near = row.values[first + 1];
      dots.push_back({{"training", row.method()},
                      {"what differs", row.words.at("differs")},
                      {"explainer", explainer},
                      {"1-LENS-prec", number_json(near.value)},
                      {"low", number_json(near.low.value_or(near.value))},
                      {"high", number_json(near.high.value_or(near.value))},
                      {"top-k", number_json(top.value)},
                      {"between", number_json(top.between.value_or(kUndefined))},
                      {"accuracy", number_json(row.values[0].value)}});
    }
    if (&row == &shipped) continue;
    std::vector<Value> values;
    for (std::size_t i = 0; i < 6; ++i) {
      const Numbers &own = row.numbers[i], &other = shipped.numbers[i];
      values.push_back(i < 2 ? share_difference(own.means(), other.means()) : bounded_difference(own, other, run.seed));
      if (i >= 2) values.push_back(share_difference(own.between, other.between));
    }
    run.table("differences").add({row.method()}, values);
  }
  run.draw("ablation", dots);
}

}  // namespace
}  // namespace holdfast::experiment::paper::lens

namespace holdfast::experiment::paper {

const std::map<std::string, Analysis>& lens_analyses() {
  static const std::map<std::string, Analysis> all{
      {"fig2", lens::analyse_fig2},     {"fig4", lens::analyse_fig4},         {"fig5", lens::analyse_fig5},
      {"table2", lens::analyse_table2}, {"appendix", lens::analyse_appendix}, {"beyond", lens::analyse_beyond},
      {"survey", lens::score_survey},   {"ablation", lens::analyse_ablation}, {"pictures", lens::draw_pictures}};
  return all;
}

}  // namespace holdfast::experiment::paper

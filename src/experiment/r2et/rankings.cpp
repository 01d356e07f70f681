// Tables 1 and 2, the explainers' and the strong attack's: what their orderings of methods say.
#include <algorithm>
#include <cmath>

#include "claims.h"

namespace holdfast::experiment::paper::r2et {
namespace {

bool declares(const PaperRun& run, const std::string& claim) {
  return std::ranges::find(run.plan.claims, claim, &Claim::id) != run.plan.claims.end();
}

// Experiments that share a function need not judge the same claims.
void judge(PaperRun& run, const std::string& claim, const Finding& found, const std::vector<Ordering>& orderings) {
  if (declares(run, claim)) run.judge(claim, found, fewest_members(orderings));
}

// The tables that the experiment has, "tables" and "images and graphs".
std::vector<const TablePlan*> tables_of(const PaperRun& run) {
  std::vector<const TablePlan*> tables;
  for (const TablePlan& table : run.plan.tables) {
    if (!table.is_analysed) tables.push_back(&table);
  }
  return tables;
}

// All of them in one list.
std::vector<Ordering> all_orderings(PaperRun& run, const std::string& column, const std::string& published) {
  std::vector<Ordering> all;
  for (const TablePlan* table : tables_of(run)) {
    for (Ordering& one : orderings_of(run, table->name, column, published)) all.push_back(std::move(one));
  }
  return all;
}

// Of pairs of samples of one attacked network whose P@k differs, the share in which the map that moved less in l2 lost more of
// its top features.
double share_against_l2(const AttackedCell& cell) {
  const std::vector<double>&kept = cell.metrics[0].values, &moved = cell.of("l2").values;
  std::int64_t pairs = 0, against = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (std::isnan(kept[i] + kept[j] + moved[i] + moved[j]) || kept[i] == kept[j] || moved[i] == moved[j]) continue;
      ++pairs;
      against += (kept[i] < kept[j]) == (moved[i] < moved[j]) ? 1 : 0;
    }
  }
  return pairs > 0 ? static_cast<double>(against) / static_cast<double>(pairs) : kUndefined;
}

// A dataset's number is the mean over methods and both attacks, by seed.
std::vector<Case> shares_against_l2(const PaperRun& run) {
  std::vector<Case> datasets;
  for (const TablePlan* plan : tables_of(run)) {
    const MeasuredTable& table = run.measured(plan->name);
    for (const auto& rows : table.by_setting()) {
      if (!is_papers_encoding(*rows.front()->setting)) continue;
      std::vector<std::vector<double>> by_member(static_cast<std::size_t>(rows.front()->setting->members));
      for (const MeasuredRow* row : rows) {
        if (!is_of_paper(row->networks->method) || !row->networks->counts()) continue;
        for (const char* column : {"P@k, er", "P@k, mse"}) {
          const std::vector<AttackedCell>& cells = table.numbers(*row, column).cells;
          for (std::size_t i = 0; i < cells.size(); ++i) by_member[i].push_back(share_against_l2(cells[i]));
        }
      }
      std::vector<double> means;
      for (const std::vector<double>& shares : by_member) means.push_back(shares.empty() ? kUndefined : defined_mean(shares));
      datasets.push_back({rows.front()->setting->dataset, over_seeds(means)});
    }
  }
  return datasets;
}

// Ours beside the paper's, a dot each.
Json dots_of(const std::vector<Ordering>& orderings) {
  Json dots = Json::array();
  for (const Ordering& ordering : orderings) {
    for (std::size_t i = 0; i < ordering.methods.size(); ++i) {
      for (const auto& [who, value] : {std::pair("ours", ordering.means[i]), {"paper", ordering.published[i]}}) {
        if (std::string_view(who) == "paper" && std::isnan(value)) continue;
        dots.push_back(
            {{"dataset", ordering.setting.name}, {"method", ordering.methods[i].name}, {"who", who}, {"value", value}});
      }
    }
  }
  return dots;
}

}  // namespace

void analyse_table1(PaperRun& run) {
  const std::vector<Ordering> all_er = all_orderings(run, "P@k, er", "er"), all_mse = all_orderings(run, "P@k, mse", "mse");
  for (std::size_t i = 0; i < all_er.size(); ++i) {
    run.table("orderings")
        .add({all_er[i].setting.name, all_er[i].is_counted ? best(all_er[i]) : kNotCounted},
             {agreement(all_er[i], is_as_printed, run.seed), agreement(all_er[i], is_as_coded, run.seed),
              agreement(all_mse[i], is_as_printed, run.seed)});
  }
  run.draw("P@k under er", dots_of(all_er));
  const std::vector<Ordering> er = counted(all_er), mse = counted(all_mse);
  if (er.empty()) return;
  judge(run, "R1", judge_mse(er, mse, run.claim("R1").limits[0], run.seed), er);
  judge(run, "R2", judge_best({{"under er", er}}, run.seed), er);
  judge(run, "R3", judge_hessian_term(er), er);
  judge(run, "R4", judge_hessian_only({"under er", er}, run.claim("R4").limits[0], run.seed), er);
  judge(run, "R7", judge_unstable(er, run.seed), er);
  const std::vector<double>& limits = run.claim("R13").limits;
  judge(run, "R13", judge_l2(shares_against_l2(run), limits[0], limits[1]), er);
}

void analyse_table2(PaperRun& run) {
  const std::vector<Ordering> er = orderings_of(run, "thickness", "P@k, er", "er"),
                              strong = orderings_of(run, "thickness", "P@k, gauntlet", "er"),
                              thick = orderings_of(run, "thickness", "thickness", "thickness");
  std::vector<Ordering> robust, thickness;  // as the paper has them
  for (std::size_t i = 0; i < er.size(); ++i) {
    run.table("thickness and P@k")
        .add(
            {er[i].setting.name, best(er[i]), best(thick[i])},
            {agreement(thick[i], er[i], run.seed), strong[i].methods.empty() ? Value{} : agreement(thick[i], strong[i], run.seed),
             agreement(thick[i], is_as_printed, run.seed)});
    if (!is_papers_encoding(er[i].setting) || !er[i].is_counted) continue;
    robust.push_back(er[i]);
    thickness.push_back(thick[i]);
  }
  if (!robust.empty()) judge(run, "R5", judge_thickest(robust, thickness, run.claim("R5").limits[0], run.seed), robust);
}

void analyse_explainers(PaperRun& run) {
  const std::vector<Ordering> plain = orderings_of(run, "explainers", "saliency", "er"),
                              smooth = orderings_of(run, "explainers", "smooth_grad", "er"),
                              path = orderings_of(run, "explainers", "integrated_gradients", "er");
  std::vector<Case> taus;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::string& name = plain[i].setting.name;
    taus.push_back({name + ", smooth_grad", agreement(plain[i], smooth[i], run.seed)});
    taus.push_back({name + ", integrated_gradients", agreement(plain[i], path[i], run.seed)});
    run.table("orderings").add({name, best(smooth[i]), best(path[i])}, {taus[2 * i].value, taus[2 * i + 1].value});
  }
  if (taus.empty()) return;
  Finding found = judge_best({{"with smooth_grad", counted(smooth)}, {"with integrated_gradients", counted(path)}}, run.seed);
  found.words["taus"] = words(taus);
  judge(run, "R10", found, path);
}

void analyse_beyond(PaperRun& run) {
  const char* const column = "gauntlet, chosen by it";
  const std::vector<Ordering> weak = orderings_of(run, "P@k", "er", "er"),
                              hard = orderings_of(run, "P@k", column, "er", nullptr, /*strong_choice=*/true),
                              specific = orderings_of(run, "P@k", column, "er", specific_or_zero, /*strong_choice=*/true);
  for (std::size_t i = 0; i < weak.size(); ++i) {
    run.table("orderings")
        .add({weak[i].setting.name, best(weak[i]), best(hard[i]), best(specific[i])},
             {agreement(weak[i], hard[i], run.seed), agreement(hard[i], is_as_printed, run.seed),
              agreement(weak[i], specific[i], run.seed)});
  }
  const std::vector<Ordering> judged = counted(hard);
  if (judged.empty()) return;
  judge(run, "R2", judge_best({{"under gauntlet", judged}}, run.seed), judged);
  judge(run, "R4", judge_hessian_only({"under gauntlet", judged}, run.claim("R4").limits[0], run.seed), judged);
}

// Explanations that depend on valid rows alone: what is left of R2 and R4 where no gauge can help.
void analyse_valid_rows(PaperRun& run) {
  const std::vector<Ordering> plain = orderings_of(run, "P@k", "saliency, er", "er"),
                              valid = orderings_of(run, "P@k", "valid_effect, gauntlet", "er");
  for (std::size_t i = 0; i < plain.size(); ++i) {
    run.table("orderings")
        .add({plain[i].setting.name, best(plain[i]), best(valid[i])},
             {agreement(plain[i], valid[i], run.seed), agreement(valid[i], is_as_printed, run.seed)});
  }
  const std::vector<Ordering> judged = counted(valid);
  if (judged.empty()) return;
  const std::string under = "with valid_effect, under gauntlet";
  judge(run, "R2", judge_best({{under, judged}}, run.seed), judged);
  judge(run, "R4", judge_hessian_only({under, judged}, run.claim("R4").limits[0], run.seed), judged);
}

}  // namespace holdfast::experiment::paper::r2et

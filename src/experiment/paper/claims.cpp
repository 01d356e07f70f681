// What an experiment's file says about its tables: the claims that they decide and the figures that are drawn from them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/number.h"
#include "run.h"

namespace holdfast::experiment::paper {
namespace {

Json point_number(const std::string& text) {
  const std::optional<double> number = parse_quotient(text);
  if (!number) return text;
  return *number == std::floor(*number) ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
}

// A number with its interval under "value", "low" and "high".
void add_value(Json& point, const Value& value) {
  point["value"] = number_json(value.value);
  point["low"] = number_json(value.low.value_or(value.value));
  point["high"] = number_json(value.high.value_or(value.value));
}

}  // namespace

bool meets(const Words& words, const std::vector<std::string>& conditions) {
  return std::ranges::all_of(conditions, [&](const std::string& condition) {
    const std::size_t equals = condition.find('=');
    const std::vector<std::string> values = split(condition.substr(equals + 1), "|");
    return std::ranges::find(values, words.at(condition.substr(0, equals))) != values.end();
  });
}

std::vector<Case> PaperRun::cases_of(const Claim& claim) const {
  const MeasuredTable& table = measured(claim.table);
  std::vector<Case> cases;
  for (const MeasuredRow& row : table.rows) {
    if (!meets(row.words, claim.rows)) continue;
    for (const std::string& column : claim.columns) {
      Words words = row.words, changes;
      words["column"] = column;
      words["metric"] = row.setting->fill(paper.call(table.plan->columns[table.column(column)].metric));
      for (const std::string& change : claim.minus)
        changes[change.substr(0, change.find('='))] = change.substr(change.find('=') + 1);
      const MeasuredRow* other = changes.empty() ? &row : table.like(row, changes);
      if (other == nullptr) continue;
      const Numbers& numbers = table.numbers(row, column);
      const std::string& minus = claim.minus_column.empty() ? column : claim.minus_column;
      const bool is_difference = !claim.minus.empty() || !claim.minus_column.empty();
      cases.push_back({fill(claim.case_name, words), is_difference
                                                         ? bounded_difference(numbers, table.numbers(*other, minus), seed)
                                                         : paper::value_of(numbers, seed)});
    }
  }
  return cases;
}

void PaperRun::judge_all_above(const std::string& id, const std::vector<Case>& cases, const std::string& also, std::int64_t seeds,
                               Words words) {
  words.insert(options.begin(), options.end());
  const Claim& declared = claim(id);
  verdicts_[id] = all_above(declared.limit, id, fill(declared.says, words), fill(declared.what, words), cases, also, seeds);
}

std::string PaperRun::accuracies_in_words() {
  std::string text;
  for (const Setting& setting : settings) {
    const std::vector<MethodNetworks>& all = networks(setting);
    if (all.empty()) continue;
    std::vector<std::string> parts;
    for (const MethodNetworks& one : all)
      parts.push_back(fmt::format("{} {}", one.method.name, words(share(over_seeds(test_accuracies(one))))));
    text += fmt::format("Test accuracy on {}: {}. ", setting.name, fmt::join(parts, ", "));
  }
  return text;
}

void PaperRun::draw(const std::string& name, const Json& points) {
  const auto declared = std::ranges::find(plan.figures, name, &FigurePlan::name);
  const std::string file = plan.paper + "/" + declared->spec;
  figure(name).spec = parse_json(carried_file(file), file);
  figure(name).spec["data"]["values"] = points;
}

void PaperRun::judge_declared() {
  for (const Claim& one : plan.claims) {
    if (one.columns.empty() || verdicts_.contains(one.id)) continue;
    std::vector<std::string> names;
    for (const Setting& setting : settings) {
      if (!networks(setting).empty()) names.push_back(setting.name);
    }
    std::vector<std::string> by_column;
    for (const std::string& column : one.columns) {
      Claim part = one;
      part.columns = {column};
      by_column.push_back(fmt::format("{} alone {}", column, outcome_above(cases_of(part), one.limit)));
    }
    Words words{{"datasets", fmt::format("{}", fmt::join(names, ", "))},
                {"accuracies", one.also == "{accuracies}" ? accuracies_in_words() : ""},
                {"by_column", fmt::format("Of {}.", fmt::join(by_column, "; of "))}};
    words.insert(options.begin(), options.end());
    judge_all_above(one.id, cases_of(one), fill(one.also, words), fewest_members(), words);
  }
}

void PaperRun::draw_declared() {
  for (const FigurePlan& figure : plan.figures) {
    if (figure.is_analysed) continue;
    Json points = Json::array();
    for (const std::string& name : figure.tables) {
      const MeasuredTable& table = measured(name);
      for (const MeasuredRow& row : table.rows) {
        if (!meets(row.words, figure.rows)) continue;
        for (const std::string& column : figure.columns) {
          if (std::ranges::find(table.plan->columns, column, &ColumnPlan::name) == table.plan->columns.end()) continue;
          Words words = row.words;
          words.insert(
              {{"column", column}, {"table", table.plan->label}, {"column_number", column.substr(column.find('=') + 1)}});
          Json point = Json::object();
          for (const std::string& text : figure.fields) {
            const auto [field, word] = named(text);
            const bool is_number = field.ends_with('#');
            point[is_number ? field.substr(0, field.size() - 1) : field] =
                is_number ? point_number(fill(word, words)) : Json(fill(word, words));
          }
          add_value(point, row.values[table.column(column)]);
          points.push_back(std::move(point));
        }
      }
    }
    draw(figure.name, points);
  }
}

}  // namespace holdfast::experiment::paper

#include "holdfast/attack/threat.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "holdfast/core/error.h"
#include "holdfast/core/method.h"
#include "holdfast/core/number.h"
#include "holdfast/core/words.h"
#include "rows.h"

namespace holdfast::attack {
namespace {

// Elements that the schema freezes, those of a side that stays, and context; empty when there are none.
std::vector<bool> frozen_elements(const Schema& schema, Sides sides) {
  const auto inputs = static_cast<std::size_t>(schema.layout.inputs());
  std::vector<bool> frozen(inputs, false);
  for (std::size_t i = 0; i < schema.features.size(); ++i) frozen[i] = schema.features[i].frozen;
  for (std::size_t i = 0; sides != Sides::kBoth && i < inputs / 2; ++i)
    frozen[sides == Sides::kFirst ? inputs / 2 + i : i] = true;
  const std::vector<std::int64_t> features = schema.layout.element_features();
  for (std::size_t i = 0; schema.layout.context > 0 && i < inputs; ++i) frozen[i] = frozen[i] || features[i] < 0;
  const bool any = std::find(frozen.begin(), frozen.end(), true) != frozen.end();
  return any ? frozen : std::vector<bool>();
}

ValidRows valid_rows(const Schema& schema, const std::optional<std::pair<double, double>>& box) {
  if (schema.features.empty()) {
    usage_error("valid rows need a schema with features: their ranges, steps and one-hot groups (--schema FILE)");
  }
  if (box && !schema.groups.empty() && (box->first > 0 || box->second < 1)) {
    usage_error("box {},{}: valid rows have 0 and 1 in their one-hot groups; the box must hold both", box->first, box->second);
  }
  ValidRows rows;
  for (const Group& group : schema.groups) rows.groups.push_back(group.columns);
  for (const Feature& feature : schema.features) {
    rows.low.push_back(feature.low);
    rows.high.push_back(feature.high);
    rows.step.push_back(feature.step);
  }
  return rows;
}

Switches switches_of(std::int64_t most, const Schema& schema, const std::vector<bool>& frozen) {
  if (most < 0) usage_error("switches is {}; it must be 0 or more", most);
  if (schema.groups.empty())
    usage_error(
        "switches={}: the schema has no categories; list the one-hot columns of each, as in \"groups\": [{{\"name\": \"sex\", "
        "\"columns\": [5, 6]}}] (--schema FILE; `holdfast data schema NAME` shows how), or leave switches out for a table of "
        "numbers",
        most);
  if (most > std::ssize(schema.groups)) {
    usage_error("switches={}: the table has only {} of categories; choose switches <= {}", most,
                counted(std::ssize(schema.groups), "group"), schema.groups.size());
  }
  Switches switches{.most = most, .groups = {}, .held = frozen};
  for (const Group& group : schema.groups) switches.groups.push_back(group.columns);
  return switches;
}

// Groups are held by the ball; what switches is put into the rows that points are compared with.
void hold_groups(ThreatModel& model, std::int64_t elements) {
  model.frozen.resize(static_cast<std::size_t>(elements), false);
  for (const auto& columns : model.switches->groups) {
    for (const std::int64_t column : columns) model.frozen[static_cast<std::size_t>(column)] = true;
  }
  if (model.valid) model.valid->groups.clear();
}

bool keeps_weights_non_negative(const Schema& schema, bool negative_weights) {
  if (schema.layout.kind != Layout::Kind::kGraph || negative_weights) return false;
  return !schema.range || schema.range->first >= 0;
}

double parse_number(const std::string& text, const std::string& where) {
  const std::optional<double> value = parse_quotient(text);
  if (!value) usage_error("{}: '{}' is not a number", where, text);
  return *value;
}

void check_rising(const std::vector<double>& epsilons, const std::string& where) {
  if (epsilons.empty()) usage_error("{}: names no epsilon", where);
  for (std::size_t i = 1; i < epsilons.size(); ++i) {
    if (epsilons[i] <= epsilons[i - 1]) usage_error("{}: {} does not exceed the number before it", where, epsilons[i]);
  }
}

const std::vector<std::string> kNorms{"l2", "linf", "l1"}, kSides{"both", "first", "second"};

void check_word(const std::string& text, const std::vector<std::string>& known, const std::string& where) {
  if (std::find(known.begin(), known.end(), text) == known.end())
    usage_error("{}: '{}' must be {}, {} or {}", where, text, known[0], known[1], known[2]);
}

// How each kind of option is written behind a flag.
void parse_option(const std::string& text, Norm& norm, const std::string& where) {
  check_word(text, kNorms, where);
  norm = parse_norm(text);
}
void parse_option(const std::string& text, Sides& sides, const std::string& where) {
  check_word(text, kSides, where);
  sides = parse_sides(text);
}
void parse_option(const std::string& text, bool& flag, const std::string& where) {
  if (text != "true" && text != "false") usage_error("{}: '{}' must be true or false", where, text);
  flag = text == "true";
}
void parse_option(const std::string& text, std::optional<double>& number, const std::string& where) {
  number = parse_number(text, where);
}
void parse_option(const std::string& text, std::optional<std::int64_t>& count, const std::string& where) {
  std::int64_t number = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size() || number < 0)
    usage_error("{}: '{}' is not a whole number of at least 0", where, text);
  count = number;
}
void parse_option(const std::string& text, std::vector<double>& numbers, const std::string& where) {
  numbers.clear();
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    numbers.push_back(parse_number(text.substr(begin, end == std::string::npos ? end : end - begin), where));
  }
  check_rising(numbers, where + " " + text);
}
void parse_option(const std::string& text, std::optional<std::pair<double, double>>& box, const std::string& where) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) usage_error("{} {}: write LO,HI, for example 0,1", where, text);
  box = {parse_number(text.substr(0, comma), where), parse_number(text.substr(comma + 1), where)};
  if (box->first >= box->second) usage_error("{} {}: the first number must be below the second", where, text);
}

// How each kind of option is written as a key of a configuration.
void read_option(const ConfigTable& table, const char* key, Norm& norm) {
  norm = parse_norm(table.text(key, to_string(norm), one_of(kNorms)));
}
void read_option(const ConfigTable& table, const char* key, Sides& sides) {
  sides = parse_sides(table.text(key, to_string(sides), one_of(kSides)));
}
void read_option(const ConfigTable& table, const char* key, bool& flag) {
  flag = table.flag(key, flag);
}
void read_option(const ConfigTable& table, const char* key, std::optional<double>& number) {
  if (table.has(key)) number = table.real(key, std::nullopt, above(0));
}
void read_option(const ConfigTable& table, const char* key, std::optional<std::int64_t>& count) {
  if (table.has(key)) count = table.integer(key, std::nullopt, at_least(0));
}
void read_option(const ConfigTable& table, const char* key, std::vector<double>& numbers) {
  numbers = table.reals(key, numbers, at_least(0));
  check_rising(numbers, table.where(key));
}
void read_option(const ConfigTable& table, const char* key, std::optional<std::pair<double, double>>& box) {
  if (!table.has(key)) return;
  const std::vector<double> ends = table.reals(key, std::nullopt);
  if (ends.size() != 2 || ends[0] >= ends[1])
    usage_error("{}: must be two numbers, the first below the second", table.where(key));
  box = {ends[0], ends[1]};
}

Json option_json(Norm norm) {
  return to_string(norm);
}
Json option_json(Sides sides) {
  return to_string(sides);
}
Json option_json(bool flag) {
  return flag;
}
Json option_json(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}
Json option_json(const std::optional<std::int64_t>& count) {
  return count ? Json(*count) : Json();
}
Json option_json(const std::vector<double>& numbers) {
  return numbers.size() == 1 ? Json(numbers.front()) : Json(numbers);
}
Json option_json(const std::optional<std::pair<double, double>>& box) {
  return box ? Json{box->first, box->second} : Json();
}

}  // namespace

Norm parse_norm(const std::string& text) {
  if (text == "l2") return Norm::kL2;
  if (text == "linf") return Norm::kLinf;
  if (text == "l1") return Norm::kL1;
  usage_error("unknown norm '{}'{}", text, suggestion(text, {"l2", "linf", "l1"}));
}

std::string to_string(Norm norm) {
  switch (norm) {
    case Norm::kL2:
      return "l2";
    case Norm::kLinf:
      return "linf";
    case Norm::kL1:
      return "l1";
  }
  return {};
}

Sides parse_sides(const std::string& text) {
  if (text == "both") return Sides::kBoth;
  if (text == "first") return Sides::kFirst;
  if (text == "second") return Sides::kSecond;
  usage_error("unknown sides '{}'{}", text, suggestion(text, {"both", "first", "second"}));
}

std::string to_string(Sides sides) {
  return sides == Sides::kBoth ? "both" : sides == Sides::kFirst ? "first" : "second";
}

void set_option(Threat& threat, const std::string& name, const std::string& text, const std::string& where) {
  for_each_option([&](const char* own, auto member, const char*) {
    if (name == own) parse_option(text, threat.*member, where);
  });
}

Threat read_threat(const ConfigTable& table, const Threat& fallback) {
  Threat threat = fallback;
  for_each_option([&](const char* name, auto member, const char*) { read_option(table, name, threat.*member); });
  return threat;
}

Json to_json(const Threat& threat) {
  Json json = Json::object();
  for_each_option([&](const char* name, auto member, const char*) { json[name] = option_json(threat.*member); });
  return json;
}

ThreatModel ThreatModel::make(const Threat& threat, const Schema& schema, std::optional<double> epsilon) {
  const double radius = epsilon.value_or(threat.epsilons.front());
  if (!std::isfinite(radius) || radius < 0) usage_error("epsilon is {}; it must be a finite number >= 0", radius);
  if (threat.box && !(threat.box->first < threat.box->second))
    usage_error("box {},{}: the lower bound must be below the upper one", threat.box->first, threat.box->second);
  if (threat.sides != Sides::kBoth && schema.layout.sides != 2)
    usage_error("sides={}: the samples are no pairs", to_string(threat.sides));
  if (threat.negative_weights && schema.layout.kind != Layout::Kind::kGraph)
    usage_error("negative weights: the samples are no graphs");
  if (threat.tolerance && !(*threat.tolerance > 0 && std::isfinite(*threat.tolerance)))
    usage_error("tolerance is {}; it must be a finite number above 0", *threat.tolerance);
  ThreatModel model{.norm = threat.norm, .epsilon = radius, .box = threat.box, .frozen = frozen_elements(schema, threat.sides)};
  if (threat.valid) model.valid = valid_rows(schema, threat.box);
  model.non_negative = keeps_weights_non_negative(schema, threat.negative_weights);
  model.sides = threat.sides;
  if (schema.layout.kind == Layout::Kind::kTokens) model.blocks = schema.layout.length;
  model.tolerance = threat.tolerance;
  if (threat.switches) {
    model.switches = switches_of(*threat.switches, schema, model.frozen);
    hold_groups(model, schema.layout.inputs());
  }
  return model;
}

// Every set holds the clean row, so their order does not matter.
template <class Number>
bool confine(const ThreatModel& threat, std::int64_t n, const Number* clean, Number* point) {
  bool outside = false;
  const auto put = [&](std::int64_t i, Number value) {
    outside |= point[i] != value;
    point[i] = value;
  };
  if (threat.box) {
    const auto low = static_cast<Number>(threat.box->first), high = static_cast<Number>(threat.box->second);
    for (std::int64_t i = 0; i < n; ++i) put(i, std::clamp(point[i], low, high));
  }
  if (threat.valid) {
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto low = static_cast<Number>(threat.valid->low[at]), high = static_cast<Number>(threat.valid->high[at]);
      put(i, std::clamp(point[i], std::min(low, clean[i]), std::max(high, clean[i])));
    }
  }
  if (threat.non_negative && std::all_of(clean, clean + n, [](Number value) { return value >= 0; })) {
    for (std::int64_t i = 0; i < n; ++i) put(i, std::max(point[i], Number{0}));
  }
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(threat.frozen.size()); ++i) {
    if (threat.is_frozen(i)) put(i, clean[i]);
  }
  return outside;
}

template bool confine(const ThreatModel&, std::int64_t, const float*, float*);
template bool confine(const ThreatModel&, std::int64_t, const double*, double*);

Json to_json(const ThreatModel& threat) {
  Json json{{"norm", to_string(threat.norm)}, {"epsilon", threat.epsilon}, {"box", nullptr}};
  if (threat.box) json["box"] = {threat.box->first, threat.box->second};
  const std::vector<bool>& frozen = threat.switches ? threat.switches->held : threat.frozen;
  if (!frozen.empty()) json["frozen"] = std::count(frozen.begin(), frozen.end(), true);
  if (threat.valid) json["valid"] = true;
  if (threat.non_negative) json["non_negative"] = true;
  if (threat.sides != Sides::kBoth) json["sides"] = to_string(threat.sides);
  if (threat.blocks > 1) json["each"] = "token";
  if (threat.tolerance) json["tolerance"] = *threat.tolerance;
  if (threat.switches) json["switches"] = threat.switches->most;
  return json;
}

}  // namespace holdfast::attack

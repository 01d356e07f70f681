#include "holdfast/attack/outcome.h"

#include <cmath>
#include <cstdlib>
#include <type_traits>

#include <fmt/format.h>

#include "holdfast/metric/metric.h"

namespace holdfast::attack {
namespace {

template <class Value>
constexpr bool is_list = std::is_same_v<Value, std::vector<double>> || std::is_same_v<Value, std::vector<std::int64_t>>;

Json readable(double value) {
  return number_json(value);
}
Json readable(std::int64_t value) {
  return value;
}
Json readable(const std::string& word) {
  return word.empty() ? Json() : Json(word);
}
Json readable(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(readable(value));
  return list;
}
Json readable(const std::vector<std::int64_t>& values) {
  return values;
}

Json exact(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}
Json exact(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(exact(value));
  return list;
}
template <class Value>
Json exact(const Value& value) {
  return value;
}

void read(const Json& json, double& value) {
  value = json.is_string() ? std::strtod(json.get_ref<const std::string&>().c_str(), nullptr) : json.get<double>();
}
void read(const Json& json, std::vector<double>& values) {
  for (const Json& entry : json) read(entry, values.emplace_back());
}
template <class Value>
void read(const Json& json, Value& value) {
  json.get_to(value);
}

std::string text_of(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}
std::string text_of(std::int64_t value) {
  return fmt::format("{}", value);
}
std::string text_of(const std::string& word) {
  return word;
}

bool is_swap(const char* name) {
  return std::string_view(name) == "first_swap";
}

}  // namespace

bool restarts_agree(double gap, const Metric& metric, double value) {
  constexpr double kAgreed = 0.005;
  const double range = std::abs(metric.perfect() - metric.floor());
  return gap <= kAgreed * (std::isfinite(range) ? range : std::abs(value));
}

Json to_json(const SampleOutcome& outcome, bool trace) {
  Json json = Json::object();
  for_each_field([&]<class Value>(const char* name, Value SampleOutcome::*field) {
    if (is_list<Value> && !trace) return;
    json[name] = readable(outcome.*field);
  });
  if (outcome.first_swap < 0) json["first_swap"] = nullptr;
  return json;
}

Json to_exact_json(const SampleOutcome& outcome) {
  Json json = Json::object();
  for_each_field([&](const char* name, auto field) { json[name] = exact(outcome.*field); });
  return json;
}

SampleOutcome outcome_from_json(const Json& json) {
  SampleOutcome outcome;
  for_each_field([&](const char* name, auto field) { read(json.at(name), outcome.*field); });
  return outcome;
}

std::vector<std::string> outcome_columns() {
  std::vector<std::string> names;
  for_each_field([&]<class Value>(const char* name, Value SampleOutcome::*) {
    if constexpr (!is_list<Value>) names.emplace_back(name);
  });
  return names;
}

std::vector<std::string> outcome_texts(const SampleOutcome& outcome) {
  std::vector<std::string> texts;
  for_each_field([&]<class Value>(const char* name, Value SampleOutcome::*field) {
    if constexpr (!is_list<Value>) texts.push_back(is_swap(name) && outcome.first_swap < 0 ? "" : text_of(outcome.*field));
  });
  return texts;
}

}  // namespace holdfast::attack

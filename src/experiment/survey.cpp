#include "holdfast/experiment/survey.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json_error.h"
#include "holdfast/core/npy.h"
#include "holdfast/data/schema.h"
#include "holdfast/measure/proportion.h"
#include "holdfast/metric/metric.h"

namespace holdfast::experiment {
namespace {

constexpr double kSimilar = 0.5;

std::vector<std::string> metrics_at(std::int64_t k) {
  std::vector<std::string> calls{fmt::format("top_k(k={})", k)};
  for (const int w : {1, 2, 3}) calls.push_back(fmt::format("lens_precision(k={},w={})", k, w));
  for (const int w : {1, 2, 3}) calls.push_back(fmt::format("lens_spearman(w={})", w));
  return calls;
}

// Answers name metrics by kind and window: k differs between rows.
std::string without_k(const std::string& metric) {
  std::string text = metric;
  const std::size_t at = text.find("k=");
  if (at == std::string::npos) return text;
  std::size_t end = text.find_first_of(",)", at);
  if (text[end] == ',') ++end;
  text.erase(at, end - at);
  return text.ends_with("()") ? text.substr(0, text.size() - 2) : text;
}

std::vector<double> folded_map(const RawArray& maps, std::size_t place, const Layout& layout) {
  const auto size = static_cast<std::size_t>(layout.inputs());
  std::vector<double> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t at = place * size + i;
    if (maps.type == ElementType::kFloat32) {
      float value = 0;
      std::memcpy(&value, maps.bytes.data() + at * sizeof(float), sizeof(float));
      values[i] = static_cast<double>(value);
    } else {
      std::memcpy(&values[i], maps.bytes.data() + at * sizeof(double), sizeof(double));
    }
  }
  return fold(layout, std::span<const double>(values));
}

Json values_of_pair(const Schema& schema, const std::vector<double>& before, const std::vector<double>& after, std::int64_t k) {
  Json values = Json::object();
  for (const std::string& call : metrics_at(k)) {
    const std::unique_ptr<Metric> metric = metrics().make(call);
    const double value = metric->compare({before, schema}, {after, schema});
    values[without_k(call)] = number_json(value);
  }
  return values;
}

struct Answer {
  std::string pair;
  bool similar = false;
  Json metrics;
};

struct Answers {
  std::int64_t people = 0, unsure = 0;
  std::vector<Answer> given;
};

Answers read_answers(const std::vector<std::string>& files) {
  Answers answers;
  std::set<std::string> people;
  std::string survey;
  for (const std::string& path : files) {
    const Json file = read_json(path);
    try {
      if (survey.empty()) survey = file.at("survey");
      if (file.at("survey") != survey)
        input_error("{}: answers survey {}, the others {}", path, file.at("survey").get<std::string>(), survey);
      const std::string person = file.at("person");
      if (!people.insert(person).second) input_error("{}: the answers of person {} are there twice", path, person);
      for (const Json& answer : file.at("answers")) {
        const std::string similar = answer.at("similar");
        if (similar != "yes" && similar != "no" && similar != "unsure")
          input_error("{}: '{}' is no answer; expected yes, no or unsure", path, similar);
        if (similar == "unsure") {
          ++answers.unsure;
        } else {
          answers.given.push_back({answer.at("pair"), similar == "yes", answer.at("metrics")});
        }
      }
    } catch (const Json::exception&) {
      input_error("{}: this is no file of answers, as the page of `holdfast survey make` saves it", path);
    }
  }
  answers.people = static_cast<std::int64_t>(people.size());
  return answers;
}

std::optional<double> value_of(const Answer& answer, const std::string& metric) {
  const auto found = answer.metrics.find(metric);
  return found == answer.metrics.end() || !found->is_number() ? std::nullopt : std::optional(found->get<double>());
}

Json sides_with(const std::vector<Answer>& answers, const std::string& metric) {
  std::int64_t with = 0, count = 0;
  for (const Answer& answer : answers) {
    const std::optional<double> value = value_of(answer, metric), other = value_of(answer, "top_k");
    if (!value || !other || (*value >= kSimilar) == (*other >= kSimilar)) continue;
    ++count;
    with += (*value >= kSimilar) == answer.similar ? 1 : 0;
  }
  const Interval share = proportion_interval(with, count);
  return {{"metric", metric}, {"with", with}, {"share", share.mean}, {"low", share.low}, {"high", share.high}, {"count", count}};
}

// Fleiss 1971, for pairs with any number of answers of at least two.
Json agreement_of(const std::vector<Answer>& answers) {
  std::map<std::string, std::pair<double, double>> counts;  // yes, no
  for (const Answer& answer : answers) (answer.similar ? counts[answer.pair].first : counts[answer.pair].second) += 1;
  double agreeing = 0, yes = 0, total = 0;
  std::int64_t pairs = 0;
  for (const auto& [pair, count] : counts) {
    const double n = count.first + count.second;
    if (n < 2) continue;
    ++pairs;
    agreeing += (count.first * (count.first - 1) + count.second * (count.second - 1)) / (n * (n - 1));
    yes += count.first;
    total += n;
  }
  if (pairs == 0) return {{"kappa", Json()}, {"share", Json()}, {"pairs", 0}};
  const double observed = agreeing / static_cast<double>(pairs), share = yes / total;
  const double expected = share * share + (1 - share) * (1 - share);
  return {{"kappa", expected < 1 ? Json((observed - expected) / (1 - expected)) : Json()}, {"share", observed}, {"pairs", pairs}};
}

// The area under the curve with its interval: DeLong, DeLong and Clarke-Pearson, Biometrics 1988.
Json predicts(const std::vector<Answer>& answers, const std::string& metric) {
  std::vector<double> yes, no;
  for (const Answer& answer : answers) {
    if (const std::optional<double> value = value_of(answer, metric)) (answer.similar ? yes : no).push_back(*value);
  }
  Json result{{"metric", metric}, {"auc", Json()}, {"low", Json()}, {"high", Json()}, {"count", yes.size() + no.size()}};
  if (yes.empty() || no.empty()) return result;
  const auto placements = [](const std::vector<double>& of, const std::vector<double>& among, bool above) {
    std::vector<double> shares;
    for (const double value : of) {
      double count = 0;
      for (const double other : among) count += value == other ? 0.5 : (value > other) == above ? 1 : 0;
      shares.push_back(count / static_cast<double>(among.size()));
    }
    return shares;
  };
  const auto variance_of_mean = [](const std::vector<double>& values, double mean) {
    if (values.size() < 2) return 0.0;
    double sum = 0;
    for (const double value : values) sum += (value - mean) * (value - mean);
    return sum / static_cast<double>(values.size() - 1) / static_cast<double>(values.size());
  };
  const std::vector<double> of_yes = placements(yes, no, true), of_no = placements(no, yes, false);
  double auc = 0;
  for (const double share : of_yes) auc += share / static_cast<double>(of_yes.size());
  const double reach = 1.959964 * std::sqrt(variance_of_mean(of_yes, auc) + variance_of_mean(of_no, auc));
  result["auc"] = auc;
  result["low"] = std::max(0.0, auc - reach);
  result["high"] = std::min(1.0, auc + reach);
  return result;
}

}  // namespace

Json make_survey(const std::string& run) {
  if (!file_exists(run + "/results.json") || !file_exists(run + "/manifest.json"))
    input_error("{}: this folder holds no finished run of `holdfast audit`", run);
  const Json results = read_json(run + "/results.json"), manifest = read_json(run + "/manifest.json");
  Json pairs = Json::array();
  try {
    std::map<std::string, Schema> schemas;
    for (const Json& dataset : manifest.at("datasets"))
      schemas.emplace(dataset.at("name"), schema_from_json(dataset.at("schema"), run + "/manifest.json"));
    for (const Json& row : results.at("rows")) {
      const Schema& schema = schemas.at(row.at("dataset"));
      if (schema.layout.kind != Layout::Kind::kGrid) continue;
      const std::int64_t k = metrics()
                                 .make(row.at("metric").get<std::string>())
                                 ->top_count()
                                 .value_or(std::max<std::int64_t>(1, schema.layout.features() / 10));
      const std::string folder = run + "/" + row.at("arrays").get<std::string>();
      const RawArray before = read_npy(folder + "/original_maps.npy"), after = read_npy(folder + "/perturbed_maps.npy");
      const Json samples = read_json(folder + "/samples.json");
      for (std::size_t i = 0; i < samples.size(); ++i) {
        pairs.push_back(
            {{"id", fmt::format("{:04}", pairs.size())},
             {"arrays", row.at("arrays")},
             {"place", i},
             {"dataset", row.at("dataset")},
             {"metrics", values_of_pair(schema, folded_map(before, i, schema.layout), folded_map(after, i, schema.layout), k)}});
      }
    }
  } catch (const Json::exception& error) {
    input_error("{}: results.json or manifest.json is not of a run of this version: {}", run, json_reason(error));
  }
  if (pairs.empty()) input_error("{}: a survey shows maps of images, and this run has none", run);
  return {
      {"id", sha256_hex(as_bytes(pairs.dump())).substr(0, 12)}, {"title", results.value("title", "survey")}, {"pairs", pairs}};
}

Json score_survey(const std::vector<std::string>& files) {
  const Answers answers = read_answers(files);
  std::set<std::string> names;
  for (const Answer& answer : answers.given) {
    for (const auto& [name, value] : answer.metrics.items()) names.insert(name);
  }
  Json sides = Json::array();
  std::vector<Json> predictions;
  for (const std::string& name : names) {
    if (name != "top_k") sides.push_back(sides_with(answers.given, name));
    predictions.push_back(predicts(answers.given, name));
  }
  std::stable_sort(predictions.begin(), predictions.end(), [](const Json& a, const Json& b) {
    return (a.at("auc").is_number() ? a.at("auc").get<double>() : -1) >
           (b.at("auc").is_number() ? b.at("auc").get<double>() : -1);
  });
  return {{"people", answers.people}, {"answers", answers.given.size()},          {"unsure", answers.unsure},
          {"sides", sides},           {"agreement", agreement_of(answers.given)}, {"prediction", predictions}};
}

}  // namespace holdfast::experiment

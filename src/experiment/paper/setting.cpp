#include "setting.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "holdfast/core/error.h"

namespace holdfast::experiment::paper {
namespace {

using Field = std::variant<std::string Setting::*, std::int64_t Setting::*, double Setting::*>;

const std::vector<std::pair<std::string, Field>>& fields() {
  static const std::vector<std::pair<std::string, Field>> all{{"name", &Setting::name},
                                                              {"dataset", &Setting::dataset},
                                                              {"encoding", &Setting::encoding},
                                                              {"kind", &Setting::kind},
                                                              {"data", &Setting::data},
                                                              {"architecture", &Setting::architecture},
                                                              {"optimizer", &Setting::optimizer},
                                                              {"schedule", &Setting::schedule},
                                                              {"augmentation", &Setting::augmentation},
                                                              {"precision", &Setting::precision},
                                                              {"preset", &Setting::preset},
                                                              {"model", &Setting::model},
                                                              {"training", &Setting::training},
                                                              {"learning_rate", &Setting::learning_rate},
                                                              {"weight_decay", &Setting::weight_decay},
                                                              {"batch_size", &Setting::batch_size},
                                                              {"epochs", &Setting::epochs},
                                                              {"short_epochs", &Setting::short_epochs},
                                                              {"training_steps", &Setting::training_steps},
                                                              {"natural_steps", &Setting::natural_steps},
                                                              {"training_samples", &Setting::training_samples},
                                                              {"members", &Setting::members},
                                                              {"members_are", &Setting::members_are},
                                                              {"weights", &Setting::weights},
                                                              {"kept_epoch", &Setting::kept_epoch},
                                                              {"patience", &Setting::patience},
                                                              {"inner", &Setting::inner},
                                                              {"path", &Setting::path},
                                                              {"long_steps", &Setting::long_steps},
                                                              {"long_step_size", &Setting::long_step_size},
                                                              {"explainer", &Setting::explainer},
                                                              {"samples_are", &Setting::samples_are},
                                                              {"explained", &Setting::explained},
                                                              {"samples", &Setting::samples},
                                                              {"choice_samples", &Setting::choice_samples},
                                                              {"choice_seeds", &Setting::choice_seeds},
                                                              {"norm", &Setting::norm},
                                                              {"box", &Setting::box},
                                                              {"epsilon", &Setting::epsilon},
                                                              {"step_size", &Setting::step_size},
                                                              {"steps", &Setting::steps},
                                                              {"k", &Setting::k},
                                                              {"other_k", &Setting::other_k},
                                                              {"valid_k", &Setting::valid_k},
                                                              {"pairs", &Setting::pairs},
                                                              {"t", &Setting::t},
                                                              {"path_steps", &Setting::path_steps},
                                                              {"diversity", &Setting::diversity},
                                                              {"strong", &Setting::strong},
                                                              {"strong_choice", &Setting::strong_choice},
                                                              {"thickness", &Setting::thickness},
                                                              {"curvature", &Setting::curvature},
                                                              {"project", &Setting::project},
                                                              {"smoothing", &Setting::smoothing},
                                                              {"thickness_samples", &Setting::thickness_samples},
                                                              {"curvature_samples", &Setting::curvature_samples},
                                                              {"strong_samples", &Setting::strong_samples},
                                                              {"explainer_steps", &Setting::explainer_steps},
                                                              {"explainer_points", &Setting::explainer_points},
                                                              {"explainer_samples", &Setting::explainer_samples}};
  return all;
}

// One value, or the scale's of three.
template <class Type>
Type of_scale(const std::vector<Type>& values, Scale scale, const std::string& where) {
  if (values.size() != 1 && values.size() != 3) usage_error("{}: give one value, or three: quick, cpu and full", where);
  return values.size() == 1 ? values.front() : values[static_cast<std::size_t>(scale)];
}

std::string in_words(const Setting& setting, const Field& field) {
  return std::visit([&](auto member) { return fmt::format("{}", setting.*member); }, field);
}

}  // namespace

std::string fill(const std::string& text, const Words& words) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('{', at), close = open == std::string::npos ? open : text.find('}', open);
    filled += text.substr(at, open - at);
    if (close == std::string::npos) return open == std::string::npos ? filled : filled + text.substr(open);
    const std::string name = text.substr(open + 1, close - open - 1);
    const auto word = words.find(name);
    if (word == words.end()) {
      std::vector<std::string> known;
      for (const auto& [other, value] : words) known.push_back(other);
      usage_error("'{}': {{{}}} is not known here{}", text, name, suggestion(name, known));
    }
    filled += word->second;
    at = close + 1;
  }
  return filled;
}

bool Setting::is_one_of(const std::vector<std::string>& selectors) const {
  return std::ranges::any_of(selectors, [&](const std::string& one) {
    return one == name || one == dataset || one == encoding || one == kind || std::ranges::find(tags, one) != tags.end();
  });
}

Words Setting::words() const {
  Words words;
  for (const auto& [field, member] : fields()) words[field] = in_words(*this, member);
  return words;
}

Setting read_setting(const ConfigTable& table, Setting setting, Scale scale) {
  for (const auto& [name, member] : fields()) {
    if (!table.has(name)) continue;
    if (const auto* text = std::get_if<std::string Setting::*>(&member)) {
      setting.** text = of_scale(table.texts(name, std::nullopt), scale, table.where(name));
    } else if (const auto* real = std::get_if<double Setting::*>(&member)) {
      setting.** real = of_scale(table.reals(name, std::nullopt), scale, table.where(name));
    } else {
      const double number = of_scale(table.reals(name, std::nullopt), scale, table.where(name));
      if (number != std::floor(number)) usage_error("{}: {} must be a whole number", table.where(name), number);
      setting.*std::get<std::int64_t Setting::*>(member) = static_cast<std::int64_t>(number);
    }
  }
  setting.tags = table.texts("tags", setting.tags);
  return setting;
}

Json settings_json(const Setting& setting) {
  Json json{{"dataset", setting.data},
            {"architecture", setting.architecture},
            {"epsilon", setting.epsilon},
            {"step size", setting.step_size},
            {"iterations", setting.steps},
            {"t", setting.t},
            {"k", setting.k},
            {"path steps", setting.path_steps},
            {"images", setting.samples},
            {"diversity", setting.diversity}};
  if (setting.training_steps == 0) return json;
  json["training"] = {{"steps, about", setting.training_steps}, {"samples, at most", setting.training_samples},
                      {"batch size", setting.batch_size},       {"optimizer", setting.optimizer},
                      {"learning rate", setting.learning_rate}, {"schedule", setting.schedule},
                      {"weight decay", setting.weight_decay}};
  if (setting.natural_steps > 0 && setting.natural_steps != setting.training_steps)
    json["training"]["steps of natural training, about"] = setting.natural_steps;
  return json;
}

std::string text_by_scale(const ConfigTable& table, const std::string& key, Scale scale, const std::string& fallback) {
  return of_scale(table.texts(key, std::vector{fallback}), scale, table.where(key));
}

}  // namespace holdfast::experiment::paper

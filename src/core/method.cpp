#include "holdfast/core/method.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace holdfast {
namespace {

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_';
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_name_letter);
}

// Names of experiments have two parts: r2et/table1.
bool is_method_name(std::string_view text) {
  const std::size_t slash = text.find('/');
  return slash == std::string_view::npos ? is_name(text) : is_name(text.substr(0, slash)) && is_name(text.substr(slash + 1));
}

const char* type_name(const OptionValue& value) {
  static constexpr const char* kNames[] = {"true or false", "a whole number", "a number", "a word"};
  return kNames[value.index()];
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// `text` read as the type of `like`; nothing when it is not one.
std::optional<OptionValue> parse_value(std::string_view text, const OptionValue& like) {
  if (std::holds_alternative<bool>(like)) {
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    return std::nullopt;
  }
  if (std::holds_alternative<std::int64_t>(like)) {
    if (const auto number = parse_number<std::int64_t>(text)) return *number;
    return std::nullopt;
  }
  if (std::holds_alternative<double>(like)) {
    const auto number = parse_number<double>(text);
    if (number && std::isfinite(*number)) return *number;
    return std::nullopt;
  }
  return std::string(text);
}

const OptionSpec* find_spec(const MethodInfo& info, std::string_view name) {
  for (const OptionSpec& spec : info.options) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

// Finds the first comma that is not inside parentheses.
std::size_t find_comma(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (text[i] == ',' && depth <= 0) return i;
  }
  return std::string_view::npos;
}

// Whether it has the shape of a call with options: name(...).
bool looks_like_call(std::string_view text) {
  const std::size_t open = text.find('(');
  return open != std::string_view::npos && is_method_name(trim(text.substr(0, open))) && text.back() == ')' &&
         text.find_first_of("()", open + 1) == text.size() - 1;
}

std::string written(const MethodCall& call) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : call.options) parts.push_back(name + "=" + value);
  return parts.empty() ? call.name : fmt::format("{}({})", call.name, fmt::join(parts, ","));
}

// Computes the Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string to_string(const OptionValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return std::get<std::string>(value);
}

OptionRange anything() {
  return {};
}
OptionRange at_least(double low) {
  return {.low = low};
}
OptionRange above(double low) {
  return {.low = low, .low_open = true};
}
OptionRange between(double low, double high) {
  return {.low = low, .high = high};
}
OptionRange one_of(std::vector<std::string> words) {
  return {.words = std::move(words)};
}

bool in_range(const OptionValue& value, const OptionRange& range) {
  if (const auto* word = std::get_if<std::string>(&value)) {
    return range.words.empty() || std::find(range.words.begin(), range.words.end(), *word) != range.words.end();
  }
  double number = 0;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    number = static_cast<double>(*whole);
  } else if (const auto* real = std::get_if<double>(&value)) {
    number = *real;
  } else {
    return true;
  }
  if (range.low && (range.low_open ? number <= *range.low : number < *range.low)) return false;
  return !range.high || number <= *range.high;
}

std::string to_string(const OptionRange& range) {
  if (!range.words.empty()) return fmt::format("{}", fmt::join(range.words, " | "));
  if (range.low && range.high) return fmt::format("{} to {}", *range.low, *range.high);
  if (range.low) return fmt::format("{} {}", range.low_open ? ">" : ">=", *range.low);
  if (range.high) return fmt::format("<= {}", *range.high);
  return "";
}

OptionSpec::OptionSpec(std::string n, bool v, OptionRange r, std::string h)
    : name(std::move(n)), value(v), range(std::move(r)), help(std::move(h)) {}
OptionSpec::OptionSpec(std::string n, int v, OptionRange r, std::string h)
    : OptionSpec(std::move(n), std::int64_t{v}, std::move(r), std::move(h)) {}
OptionSpec::OptionSpec(std::string n, std::int64_t v, OptionRange r, std::string h)
    : name(std::move(n)), value(v), range(std::move(r)), help(std::move(h)) {}
OptionSpec::OptionSpec(std::string n, double v, OptionRange r, std::string h)
    : name(std::move(n)), value(v), range(std::move(r)), help(std::move(h)) {}
OptionSpec::OptionSpec(std::string n, const char* v, OptionRange r, std::string h)
    : name(std::move(n)), value(std::string(v)), range(std::move(r)), help(std::move(h)) {}

bool MethodCall::gives(std::string_view option) const {
  return std::ranges::any_of(options, [&](const auto& written) { return written.first == option; });
}

MethodCall parse_method_call(std::string_view text) {
  const std::string_view whole = text;
  text = trim(text);
  const std::size_t open = text.find('(');
  MethodCall call;
  call.name = trim(text.substr(0, open));
  if (!is_method_name(call.name)) usage_error("'{}' does not start with a name; write name or name(option=value,...)", whole);
  if (open == std::string_view::npos) return call;
  if (text.back() != ')') usage_error("'{}': the options are not closed with ')'", whole);
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  if (trim(rest).empty()) return call;
  while (true) {
    const std::size_t comma = find_comma(rest);
    const std::string_view part = trim(rest.substr(0, comma));
    const std::size_t equals = part.find('=');
    const std::string_view name = trim(part.substr(0, equals));
    if (equals == std::string_view::npos || !is_name(name))
      usage_error("'{}': '{}' is not of the form option=value", whole, part);
    const std::string_view value = trim(part.substr(equals + 1));
    if (value.empty()) usage_error("'{}': option {} has no value", whole, name);
    const bool call_inside = looks_like_call(value);
    if (!call_inside && value.find_first_of("()=") != std::string_view::npos)
      usage_error("'{}': value '{}' of option {} has one of ( ) =", whole, value, name);
    for (const auto& [other, unused] : call.options) {
      if (other == name) usage_error("'{}': option {} is given twice", whole, name);
    }
    call.options.emplace_back(name, call_inside ? written(parse_method_call(value)) : std::string(value));
    if (comma == std::string_view::npos) return call;
    rest.remove_prefix(comma + 1);
  }
}

Options::Options(const MethodInfo& info, const MethodCall& call) : method_(info.name) {
  for (const OptionSpec& spec : info.options) entries_.push_back({spec.name, spec.value, spec.value});
  const auto set = [&](const std::string& name, OptionValue value) {
    for (Entry& entry : entries_) {
      if (entry.name != name) continue;
      entry.value = std::move(value);
      entry.given = true;
      return;
    }
  };

  std::vector<std::string> known;
  for (const OptionSpec& spec : info.options) known.push_back(spec.name);
  if (!info.presets.empty()) known.push_back("preset");

  for (const auto& [name, text] : call.options) {
    if (name != "preset" || info.presets.empty()) continue;
    std::vector<std::string> names;
    const Preset* chosen = nullptr;
    for (const Preset& preset : info.presets) {
      names.push_back(preset.name);
      if (preset.name == text) chosen = &preset;
    }
    if (chosen == nullptr) usage_error("{}: unknown preset '{}'{}", info.name, text, suggestion(text, names));
    for (const auto& [option, value] : chosen->values) set(option, value);
  }
  for (const auto& [name, text] : call.options) {
    if (name == "preset" && !info.presets.empty()) continue;
    const OptionSpec* spec = find_spec(info, name);
    if (spec == nullptr) {
      if (known.empty()) usage_error("{}: takes no options, got '{}'", info.name, name);
      usage_error("{}: unknown option '{}'{}", info.name, name, suggestion(name, known));
    }
    const auto value = parse_value(text, spec->value);
    if (!value) usage_error("{}({}={}): {} must be {}", info.name, name, text, name, type_name(spec->value));
    if (!in_range(*value, spec->range)) {
      usage_error("{}({}={}): {} must be {}{}", info.name, name, text, name, spec->range.words.empty() ? "" : "one of ",
                  to_string(spec->range));
    }
    set(name, *value);
  }
}

const Options::Entry& Options::entry(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.name == name; });
  HOLDFAST_CHECK(found != entries_.end());
  return *found;
}

bool Options::flag(std::string_view name) const {
  return std::get<bool>(entry(name).value);
}
std::int64_t Options::integer(std::string_view name) const {
  return std::get<std::int64_t>(entry(name).value);
}
double Options::real(std::string_view name) const {
  return std::get<double>(entry(name).value);
}
const std::string& Options::word(std::string_view name) const {
  return std::get<std::string>(entry(name).value);
}
bool Options::given(std::string_view name) const {
  return entry(name).given;
}

std::string Options::canonical() const {
  std::vector<std::string> parts;
  for (const Entry& entry : entries_) {
    if (entry.value != entry.fallback) parts.push_back(entry.name + "=" + to_string(entry.value));
  }
  return parts.empty() ? method_ : fmt::format("{}({})", method_, fmt::join(parts, ","));
}

std::string Options::complete() const {
  std::vector<std::string> parts;
  for (const Entry& entry : entries_) parts.push_back(entry.name + "=" + to_string(entry.value));
  return parts.empty() ? method_ : fmt::format("{}({})", method_, fmt::join(parts, ","));
}

std::vector<std::int64_t> parse_sizes(std::string_view text, std::string_view what) {
  std::vector<std::int64_t> sizes;
  while (!text.empty()) {
    const std::size_t cross = text.find('x');
    const auto number = parse_number<std::int64_t>(text.substr(0, cross));
    if (!number || *number < 1)
      usage_error("{}: '{}' is not a size; write whole numbers from 1 on with x between them, such as 64x32", what,
                  text.substr(0, cross));
    sizes.push_back(*number);
    if (cross == std::string_view::npos) break;
    text.remove_prefix(cross + 1);
    if (text.empty()) usage_error("{}: a size is missing after the last x", what);
  }
  return sizes;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

// What people type for names that are too far away for a slip of the finger.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {{"ig", "integrated_gradients"},
                                                                      {"shap", "gradient_shap"},
                                                                      {"gradient", "saliency"},
                                                                      {"grad", "saliency"},
                                                                      {"smoothgrad", "smooth_grad"},
                                                                      {"ixg", "input_x_gradient"},
                                                                      {"topk", "top_k"},
                                                                      {"--eps", "--epsilon"},
                                                                      {"eps", "epsilon"},
                                                                      {"--output", "--out"},
                                                                      {"-o", "--out"}};

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  for (const auto& [alias, name] : kAliases) {
    if (word == alias && std::find(known.begin(), known.end(), name) != known.end())
      return fmt::format(" (did you mean '{}'?)", name);
  }
  const std::string near = nearest(word, known);
  return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  if (const std::string hint = did_you_mean(word, known); !hint.empty() || known.empty()) return hint;
  return fmt::format(" (known: {})", fmt::join(known, ", "));
}

}  // namespace holdfast

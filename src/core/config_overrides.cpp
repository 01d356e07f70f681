#include "config_overrides.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "holdfast/core/error.h"

namespace holdfast {
namespace {

void merge(toml::table& target, toml::table&& changes, const std::string& text);

// `models.0.epochs=3`: the keys of `changes` are places in the array.
void merge_entries(toml::array& target, toml::table&& changes, const std::string& text) {
  for (auto&& [key, change] : changes) {
    const std::string_view digits = key.str();
    std::size_t place = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), place);
    if (status != std::errc() || end != digits.data() + digits.size() || place >= target.size()) {
      usage_error("--set {}: '{}' is not the place of an entry; the array has {}", text, digits, target.size());
    }
    if (!target[place].is_table() || !change.is_table())
      usage_error("--set {}: entry {} of an array is replaced only key by key", text, place);
    merge(*target[place].as_table(), std::move(*change.as_table()), text);
  }
}

// Tables are merged, anything else is replaced.
void merge(toml::table& target, toml::table&& changes, const std::string& text) {
  for (auto&& [key, change] : changes) {
    toml::node* present = target.get(key.str());
    if (present != nullptr && present->is_table() && change.is_table()) {
      merge(*present->as_table(), std::move(*change.as_table()), text);
    } else if (present != nullptr && present->is_array() && change.is_table()) {
      merge_entries(*present->as_array(), std::move(*change.as_table()), text);
    } else {
      target.insert_or_assign(key, std::move(change));
    }
  }
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char letter) { return letter < ' '; }, ' ');
  return text;
}

// toml++'s messages read "Error while parsing value: could not determine value type".
std::string toml_reason(const std::string& message) {
  static const std::string kOpening = "Error while ";
  return one_line(message.starts_with(kOpening) ? message.substr(kOpening.size()) : message);
}

std::optional<toml::table> try_parse(const std::string& text, const std::string& source) {
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

// Whether the value opens a string, an array or a table: then it is TOML or a mistake, never a bare word.
bool opens_toml(std::string_view value) {
  return !value.empty() && std::string_view("\"'[{").find(value.front()) != std::string_view::npos;
}

// The parser and all who walk through its tables recurse. Dots that belong to one key, or brackets within brackets, count.
void check_toml_depth(std::string_view text, const std::string& where) {
  constexpr int kDeepest = 100;
  int dots = 0, brackets = 0;
  std::int64_t line = 1;
  char quote = '\0';
  bool comment = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '\n') {
      ++line;
      comment = false;
    }
    if (comment) continue;
    if (quote != '\0') {
      if (letter == '\\' && quote == '"') ++i;
      if (letter == quote || letter == '\n') quote = '\0';
    } else if (letter == '"' || letter == '\'') {
      quote = letter;
    } else if (letter == '#') {
      comment = true;
    } else if (letter == '[' || letter == '{') {
      ++brackets;
    } else if (letter == ']' || letter == '}') {
      --brackets;
    } else if (letter == '.') {
      ++dots;
    }
    if (std::string_view("=,[]{}\n").find(letter) != std::string_view::npos) dots = 0;
    if (dots > kDeepest || brackets > kDeepest) usage_error("{}:{}: the TOML is nested more than {} deep", where, line, kDeepest);
  }
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& where) {
  check_toml_depth(text, where);
  try {
    return toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    usage_error("{}:{}: not valid TOML: {}", where, error.source().begin.line, toml_reason(std::string(error.description())));
  }
}

void apply_override(toml::table& document, const std::string& text) {
  const std::string source = "--set " + text;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) usage_error("{}: not of the form section.key=value", source);
  check_toml_depth(text, "--set");
  if (text.find_first_of("\r\n") != std::string::npos) usage_error("{}: an override is one line", one_line(source));
  const std::string key = text.substr(0, equals);
  std::string value = text.substr(equals + 1);
  value.erase(0, value.find_first_not_of(" \t"));

  std::optional<toml::table> changes = try_parse(text, source);
  if (!changes && !opens_toml(value) && value.find('\'') == std::string::npos)
    changes = try_parse(key + "='" + value + "'", source);
  if (!changes) usage_error("{}: neither the key nor a quoted value may break TOML's rules; write section.key=value", source);
  merge(document, std::move(*changes), text);
}

}  // namespace holdfast

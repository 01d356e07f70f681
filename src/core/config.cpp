#include "holdfast/core/config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "config_overrides.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/number.h"

namespace holdfast {

// A table as the program asked for it: the keys it named, what it got, and the file's table beside it.
struct ConfigNode {
  struct KeyRequest {
    std::string key;
    enum As { kOnlyWhether, kValue, kTable, kTables };
    As as;
    Json value = {};                                         // kValue
    std::vector<std::unique_ptr<ConfigNode>> children = {};  // kTable, kTables
  };

  std::string path_of(const std::string& key) const { return path.empty() ? key : path + "." + key; }

  const toml::node* find(const std::string& key) const { return table == nullptr ? nullptr : table->get(key); }

  const KeyRequest* asked_for(const std::string& key) const {
    const auto found = std::find_if(asked.begin(), asked.end(), [&](const KeyRequest& entry) { return entry.key == key; });
    return found == asked.end() ? nullptr : &*found;
  }

  // The entry of a key, made when it is asked for the first time. A key has one type in a program.
  KeyRequest& ask(const std::string& key, KeyRequest::As as) {
    if (auto* known = const_cast<KeyRequest*>(asked_for(key))) {
      HOLDFAST_CHECK(known->as == as || known->as == KeyRequest::kOnlyWhether || as == KeyRequest::kOnlyWhether);
      if (known->as == KeyRequest::kOnlyWhether) known->as = as;
      return *known;
    }
    return asked.emplace_back(KeyRequest{key, as});
  }

  std::vector<std::string> known_keys() const {
    std::vector<std::string> keys;
    for (const KeyRequest& entry : asked) keys.push_back(entry.key);
    return keys;
  }

  std::string path;                    // "attack", "models.1"; empty for the root
  const toml::table* table = nullptr;  // null when the file has no such table
  std::vector<KeyRequest> asked;       // in the order of asking
};

struct Config::State {
  std::string file;
  std::string folder;
  toml::table document;
  ConfigNode root;
};

namespace {

// A key as TOML writes it: bare when it may be, else quoted on one line.
std::string written_key(std::string_view key) {
  const auto is_bare = [](unsigned char letter) { return std::isalnum(letter) || letter == '_' || letter == '-'; };
  if (!key.empty() && std::all_of(key.begin(), key.end(), is_bare)) return std::string(key);
  return Json(std::string(key)).dump(-1, ' ', true, Json::error_handler_t::replace);
}

// "audit.toml:12", or the override that brought the node.
std::string place_of(const toml::node* node, const std::string& file) {
  if (node == nullptr || !node->source().path) return file;
  const std::string& source = *node->source().path;
  return source == file ? fmt::format("{}:{}", file, node->source().begin.line) : source;
}

// Says what the node holds, for messages: 'abc', 7, an array.
std::string shown(const toml::node& node) {
  if (const auto* text = node.as_string()) return fmt::format("'{}'", text->get());
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (node.is_table()) return "a table";
  if (node.is_array()) return "an array";
  return "a date or time";
}

template <class Value>
std::optional<Value> convert(const toml::node& node);

template <>
std::optional<std::int64_t> convert(const toml::node& node) {
  if (const auto* whole = node.as_integer()) return whole->get();
  return std::nullopt;
}

template <>
std::optional<double> convert(const toml::node& node) {
  if (const auto* whole = node.as_integer()) return static_cast<double>(whole->get());
  if (const auto* real = node.as_floating_point(); real != nullptr && std::isfinite(real->get())) return real->get();
  if (const auto* text = node.as_string(); text != nullptr && text->get().find('/') != std::string::npos)
    return parse_quotient(text->get());
  return std::nullopt;
}

template <>
std::optional<bool> convert(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return flag->get();
  return std::nullopt;
}

template <>
std::optional<std::string> convert(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  return std::nullopt;
}

template <class Value>
Value checked(const toml::node& node, const char* type, const OptionRange& range, const std::string& where) {
  const std::optional<Value> value = convert<Value>(node);
  if (!value) usage_error("{} must be {}, not {}", where, type, shown(node));
  if (!in_range(OptionValue(*value), range)) {
    usage_error("{} must be {}{}, not {}", where, range.words.empty() ? "" : "one of ", to_string(range), shown(node));
  }
  return *value;
}

// A required key that is absent. A key nobody asked for and with nearly its name is the likely reason.
[[noreturn]] void missing(const ConfigNode& node, const std::string& key, const std::string& file) {
  std::vector<std::string> unread;
  if (node.table != nullptr) {
    for (const auto& [other, unused] : *node.table) {
      if (node.asked_for(std::string(other.str())) == nullptr) unread.emplace_back(other.str());
    }
  }
  const std::string near = nearest(key, unread);
  const std::string hint =
      near.empty() ? "" : fmt::format(" (is it the unknown key {} at {}?)", written_key(near), place_of(node.find(near), file));
  usage_error("{}: {} is missing{}", place_of(node.table, file), node.path_of(key), hint);
}

template <class Value>
Value get_one(ConfigNode& node, const std::string& key, const std::optional<Value>& fallback, const char* type,
              const OptionRange& range, const std::string& where, const std::string& file) {
  const toml::node* found = node.find(key);
  auto& asked = node.ask(key, ConfigNode::KeyRequest::kValue);
  if (found == nullptr && !fallback) missing(node, key, file);
  Value value = found == nullptr ? *fallback : checked<Value>(*found, type, range, where);
  asked.value = value;
  return value;
}

// A lone value stands for an array of one.
template <class Value>
std::vector<Value> get_many(ConfigNode& node, const std::string& key, const std::optional<std::vector<Value>>& fallback,
                            const char* type, const OptionRange& range, const std::string& where, const std::string& file) {
  const toml::node* found = node.find(key);
  auto& asked = node.ask(key, ConfigNode::KeyRequest::kValue);
  if (found == nullptr && !fallback) missing(node, key, file);
  std::vector<Value> values;
  if (found == nullptr) {
    values = *fallback;
  } else if (const toml::array* array = found->as_array()) {
    for (const toml::node& element : *array) {
      values.push_back(checked<Value>(element, type, range, fmt::format("{}[{}]", where, values.size())));
    }
  } else {
    values.push_back(checked<Value>(*found, type, range, where));
  }
  asked.value = values;
  return values;
}

struct UnknownKey {
  const toml::node* node;
  std::string path;
  std::string hint;
};

void collect_unknown(const ConfigNode& node, std::vector<UnknownKey>& unknown) {
  if (node.table == nullptr) return;
  for (const auto& [key, value] : *node.table) {
    const std::string name(key.str());
    const auto* asked = node.asked_for(name);
    if (asked == nullptr) {
      unknown.push_back({&value, node.path_of(written_key(name)), suggestion(name, node.known_keys())});
    } else {
      for (const auto& child : asked->children) collect_unknown(*child, unknown);
    }
  }
}

Json resolve(const ConfigNode& node) {
  Json result = Json::object();
  for (const auto& entry : node.asked) {
    if (entry.as == ConfigNode::KeyRequest::kValue) result[entry.key] = entry.value;
    if (entry.as == ConfigNode::KeyRequest::kTable) result[entry.key] = resolve(*entry.children.front());
    if (entry.as == ConfigNode::KeyRequest::kTables) {
      result[entry.key] = Json::array();
      for (const auto& child : entry.children) result[entry.key].push_back(resolve(*child));
    }
  }
  return result;
}

}  // namespace

Config::Config(std::shared_ptr<State> state) : state_(std::move(state)) {}
Config::~Config() = default;
Config::Config(Config&&) noexcept = default;
Config& Config::operator=(Config&&) noexcept = default;

Config Config::load(const std::string& path, const std::vector<std::string>& overrides) {
  return parse(read_text(path), path, overrides);
}

Config Config::parse(const std::string& text, const std::string& where, const std::vector<std::string>& overrides) {
  auto state = std::make_shared<State>();
  state->file = where;
  const std::filesystem::path folder = std::filesystem::path(where).parent_path();
  state->folder = folder.empty() ? std::string(".") : folder.string();
  state->document = parse_toml(text, where);
  for (const std::string& override_text : overrides) apply_override(state->document, override_text);
  state->root.table = &state->document;
  return Config(std::move(state));
}

ConfigTable Config::root() const {
  return ConfigTable(state_, &state_->root);
}

void Config::finish() const {
  std::vector<UnknownKey> unknown;
  collect_unknown(state_->root, unknown);
  if (unknown.empty()) return;
  const auto line = [](const UnknownKey& entry) { return entry.node->source().begin.line; };
  const UnknownKey& first =
      *std::min_element(unknown.begin(), unknown.end(), [&](const auto& a, const auto& b) { return line(a) < line(b); });
  usage_error("{}: unknown key {}{}", place_of(first.node, state_->file), first.path, first.hint);
}

Json Config::resolved() const {
  return resolve(state_->root);
}

const std::string& Config::folder() const {
  return state_->folder;
}

ConfigTable::ConfigTable(std::shared_ptr<Config::State> state, ConfigNode* node) : state_(std::move(state)), node_(node) {}

void ConfigTable::only(const std::vector<std::string>& keys) const {
  if (node_->table == nullptr) return;
  const toml::node* first = nullptr;
  std::string name;
  for (const auto& [key, value] : *node_->table) {
    if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
    if (first != nullptr && first->source().begin.line <= value.source().begin.line) continue;
    first = &value;
    name = key.str();
  }
  if (first == nullptr) return;
  usage_error("{}: unknown key {}{}", place_of(first, state_->file), node_->path_of(written_key(name)), suggestion(name, keys));
}

bool ConfigTable::has(const std::string& key) const {
  node_->ask(key, ConfigNode::KeyRequest::kOnlyWhether);
  return node_->find(key) != nullptr;
}

std::int64_t ConfigTable::integer(const std::string& key, std::optional<std::int64_t> fallback, const OptionRange& range) const {
  return get_one(*node_, key, fallback, "a whole number", range, where(key), state_->file);
}

double ConfigTable::real(const std::string& key, std::optional<double> fallback, const OptionRange& range) const {
  return get_one(*node_, key, fallback, "a finite number", range, where(key), state_->file);
}

bool ConfigTable::flag(const std::string& key, std::optional<bool> fallback) const {
  return get_one(*node_, key, fallback, "true or false", anything(), where(key), state_->file);
}

std::string ConfigTable::text(const std::string& key, const std::optional<std::string>& fallback,
                              const OptionRange& range) const {
  return get_one(*node_, key, fallback, "a string", range, where(key), state_->file);
}

std::vector<std::string> ConfigTable::texts(const std::string& key,
                                            const std::optional<std::vector<std::string>>& fallback) const {
  return get_many(*node_, key, fallback, "a string", anything(), where(key), state_->file);
}

std::vector<double> ConfigTable::reals(const std::string& key, const std::optional<std::vector<double>>& fallback,
                                       const OptionRange& range) const {
  return get_many(*node_, key, fallback, "a finite number", range, where(key), state_->file);
}

ConfigTable ConfigTable::table(const std::string& key) const {
  const toml::node* found = node_->find(key);
  if (found != nullptr && !found->is_table()) usage_error("{} must be a table, not {}", where(key), shown(*found));
  auto& asked = node_->ask(key, ConfigNode::KeyRequest::kTable);
  if (asked.children.empty()) {
    asked.children.push_back(std::make_unique<ConfigNode>());
    asked.children.front()->path = node_->path_of(key);
    asked.children.front()->table = found == nullptr ? nullptr : found->as_table();
  }
  return ConfigTable(state_, asked.children.front().get());
}

std::vector<ConfigTable> ConfigTable::tables(const std::string& key) const {
  const toml::node* found = node_->find(key);
  if (found != nullptr && !found->is_array())
    usage_error("{} must be an array of tables, [[{}]], not {}", where(key), node_->path_of(key), shown(*found));
  auto& asked = node_->ask(key, ConfigNode::KeyRequest::kTables);
  if (asked.children.empty() && found != nullptr) {
    for (const toml::node& element : *found->as_array()) {
      const std::string path = fmt::format("{}.{}", node_->path_of(key), asked.children.size());
      if (!element.is_table())
        usage_error("{}: {} must be a table, not {}", place_of(&element, state_->file), path, shown(element));
      asked.children.push_back(std::make_unique<ConfigNode>());
      asked.children.back()->path = path;
      asked.children.back()->table = element.as_table();
    }
  }
  std::vector<ConfigTable> tables;
  for (const auto& child : asked.children) tables.push_back(ConfigTable(state_, child.get()));
  return tables;
}

std::string ConfigTable::where(const std::string& key) const {
  return fmt::format("{}: {}", place_of(node_->find(key), state_->file), node_->path_of(key));
}

}  // namespace holdfast

// Strict TOML configuration. A key nobody asked for, a wrong type or a value out of range is an error that names file,
// line, key and the nearest valid key.
//
//     Config config = Config::load("audit.toml", {"attack.epsilon=0.5"});
//     ConfigTable run = config.root();
//     run.integer("seed", 0, at_least(0));
//     ConfigTable attack = run.table("attack");
//     ...
//     config.finish();                      // anything left unread is an error
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/method.h"

namespace holdfast {

class ConfigTable;
struct ConfigNode;

class Config {
 public:
  // `overrides` are `section.key=value` with the value in TOML (a bare word is taken as a string); a number names an
  // entry of an array of tables, `models.0.epochs=3`.
  static Config load(const std::string& path, const std::vector<std::string>& overrides = {});
  static Config parse(const std::string& text, const std::string& where, const std::vector<std::string>& overrides = {});
  ~Config();
  Config(Config&&) noexcept;
  Config& operator=(Config&&) noexcept;

  ConfigTable root() const;
  // Throws kUsage for the first key that was never asked for.
  void finish() const;
  // What was asked for and what was found or defaulted, for the manifest.
  Json resolved() const;
  // Folder of the file, to which relative paths in it refer.
  const std::string& folder() const;

 private:
  friend class ConfigTable;
  struct State;
  explicit Config(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// A table of the configuration. A number may be a quotient in quotes, "8/255". Getters with a default return it when the key is
// absent; getters without one throw.
class ConfigTable {
 public:
  bool has(const std::string& key) const;
  // Throws for the first key of the table that is not one of these: for tables in which one key decides what others may be.
  void only(const std::vector<std::string>& keys) const;
  std::int64_t integer(const std::string& key, std::optional<std::int64_t> fallback, const OptionRange& range = anything()) const;
  double real(const std::string& key, std::optional<double> fallback, const OptionRange& range = anything()) const;
  bool flag(const std::string& key, std::optional<bool> fallback) const;
  std::string text(const std::string& key, const std::optional<std::string>& fallback,
                   const OptionRange& range = anything()) const;
  std::vector<std::string> texts(const std::string& key,
                                 const std::optional<std::vector<std::string>>& fallback) const;  // a string or an array
  std::vector<double> reals(const std::string& key, const std::optional<std::vector<double>>& fallback,
                            const OptionRange& range = anything()) const;  // a number or an array
  // An absent table is empty: every getter then gives its default.
  ConfigTable table(const std::string& key) const;
  std::vector<ConfigTable> tables(const std::string& key) const;  // [[key]]
  // "audit.toml:12: attack.epsilon" for messages of the caller's own.
  std::string where(const std::string& key) const;

 private:
  friend class Config;
  ConfigTable(std::shared_ptr<Config::State> state, ConfigNode* node);
  std::shared_ptr<Config::State> state_;
  ConfigNode* node_;  // owned by the state
};

}  // namespace holdfast

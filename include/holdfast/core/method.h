// Methods and their options.
//
// Every explainer, attack, metric, objective, recipe, architecture and dataset is a method: it opens with a MethodInfo
// that declares its name, what it does, whom to cite and which options it takes with default, range and meaning. The
// command line (`list`, `describe`), the documentation and the Python signatures are made from it.
//
// A method is asked for by a call: a name with options, `er(steps=100,step_size=0.01)`; values are words, numbers,
// lists with `x` or spaces inside quotes, or a call in its turn, whose own values are none: `pairs(of=csv(path=t.csv))`. A preset
// is an option too: `er(preset=tabular)` sets the preset's values; options written beside it win.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "holdfast/core/error.h"

namespace holdfast {

// An option's value. A number without a point where a real one is expected is taken; the reverse is an error.
using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

// Writes the value as in a call: true, 8, 0.01, probability.
std::string to_string(const OptionValue& value);

// What values an option may take. Made by the functions below.
struct OptionRange {
  std::optional<double> low;
  std::optional<double> high;
  bool low_open = false;
  std::vector<std::string> words;  // for words: one of these; empty = any
};

OptionRange anything();
OptionRange at_least(double low);
OptionRange above(double low);
OptionRange between(double low, double high);
OptionRange one_of(std::vector<std::string> words);

std::string to_string(const OptionRange& range);  // ">= 1", "0 to 1", "all | next-k"
bool in_range(const OptionValue& value, const OptionRange& range);

struct OptionSpec {
  // A literal such as 100 or "probability" would otherwise become a bool; these keep its kind.
  OptionSpec(std::string name, bool value, OptionRange range, std::string help);
  OptionSpec(std::string name, int value, OptionRange range, std::string help);
  OptionSpec(std::string name, std::int64_t value, OptionRange range, std::string help);
  OptionSpec(std::string name, double value, OptionRange range, std::string help);
  OptionSpec(std::string name, const char* value, OptionRange range, std::string help);

  std::string name;
  OptionValue value;  // the default; its alternative fixes the option's type
  OptionRange range;
  std::string help;
};

struct Preset {
  std::string name;
  std::vector<std::pair<std::string, OptionValue>> values;
  std::string help;
};

struct MethodInfo {
  std::string name;
  std::string summary;        // one line, no full stop
  std::string citation = {};  // empty when there is nobody to cite
  std::vector<OptionSpec> options = {};
  std::vector<Preset> presets = {};
  std::vector<std::string> needs = {};  // what a model must offer, in words: "gradients of gradients"
  std::string notes = {};               // where it departs from the paper, when to use it; may be several lines
};

// A call as it was written, not yet held against a MethodInfo.
struct MethodCall {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;

  bool gives(std::string_view option) const;  // whether it was written
};

// Parses `name` or `name(option=value,...)`. Throws kUsage naming the text and the place.
MethodCall parse_method_call(std::string_view text);

// The values a method runs with: defaults, preset and call put together and checked. Getters are for the method itself:
// asking for an option that its MethodInfo lacks, or for another type, is a bug.
class Options {
 public:
  Options(const MethodInfo& info, const MethodCall& call);

  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& word(std::string_view name) const;

  // Whether the call or its preset named the option, as opposed to its default.
  bool given(std::string_view name) const;

  // The call with every option that differs from its default, in declared order: a method's name in results.
  // Two calls that mean the same have the same canonical form.
  std::string canonical() const;
  // Every option, defaults too: for manifests.
  std::string complete() const;

 private:
  struct Entry {
    std::string name;
    OptionValue value;
    OptionValue fallback;
    bool given = false;
  };
  const Entry& entry(std::string_view name) const;

  std::string method_;
  std::vector<Entry> entries_;
};

// A list of whole numbers written with x: "64x64x64" -> {64, 64, 64}; "" -> {}. Throws kUsage naming `what`.
std::vector<std::int64_t> parse_sizes(std::string_view text, std::string_view what);

// The word of `known` that is closest to `word` by edit distance, or empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// " (did you mean 'steps'?)" for a slip of the finger or another word for the same thing ("ig"); empty when none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// " (did you mean 'steps'?)" or " (known: a, b, c)": the tail of every message about an unknown name.
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace holdfast

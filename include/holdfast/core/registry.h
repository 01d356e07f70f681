// Methods by name. Registration is explicit: each stage has one function that adds its methods, one line each.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/method.h"

namespace holdfast {

template <class Product>
class Registry {
 public:
  using Factory = std::function<std::unique_ptr<Product>(const Options&)>;

  // `kind` is the word used in messages: "metric", "attack".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  void add(MethodInfo info, Factory factory) {
    for (const Entry& entry : entries_) HOLDFAST_CHECK(entry.info.name != info.name);
    entries_.push_back({std::move(info), std::move(factory)});
  }

  // For the usual class: constructible from its Options.
  template <class Method>
  void add(MethodInfo info) {
    add(std::move(info), [](const Options& options) { return std::make_unique<Method>(options); });
  }

  // Throws kUsage with the nearest known name.
  std::unique_ptr<Product> make(std::string_view text) const {
    const MethodCall call = parse_method_call(text);
    const Entry& entry = find(call.name);
    return entry.factory(Options(entry.info, call));
  }

  // The resolved options of a call, without making the product.
  Options options(std::string_view text) const {
    const MethodCall call = parse_method_call(text);
    return Options(find(call.name).info, call);
  }

  const MethodInfo& info(std::string_view name) const { return find(name).info; }

  bool contains(std::string_view name) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.info.name == name; });
  }

  // In the order of registration.
  std::vector<const MethodInfo*> infos() const {
    std::vector<const MethodInfo*> result;
    for (const Entry& entry : entries_) result.push_back(&entry.info);
    return result;
  }

  const std::string& kind() const { return kind_; }

 private:
  struct Entry {
    MethodInfo info;
    Factory factory;
  };

  const Entry& find(std::string_view name) const {
    std::vector<std::string> known;
    for (const Entry& entry : entries_) {
      if (entry.info.name == name) return entry;
      known.push_back(entry.info.name);
    }
    usage_error("unknown {} '{}'{}", kind_, name, suggestion(name, known));
  }

  std::string kind_;
  std::vector<Entry> entries_;
};

}  // namespace holdfast

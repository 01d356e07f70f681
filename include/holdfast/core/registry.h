// Methods by name. Registration is explicit: each stage has one function that adds its methods, one line each. Programs may add
// methods of their own while others use the registry (extend); Python does.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
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
    const std::unique_lock lock(guard_);
    HOLDFAST_CHECK(position(info.name) == entries_.size());
    entries_.push_back(std::make_shared<const Entry>(Entry{std::move(info), std::move(factory), /*is_built_in=*/true}));
  }

  // For the usual class: constructible from its Options.
  template <class Method>
  void add(MethodInfo info) {
    add(std::move(info), [](const Options& options) { return std::make_unique<Method>(options); });
  }

  // Adds a method that is not built in, or puts it in the place of the one that was added under its name. Products that were made
  // before stay as they are. Throws kUsage for the name of a built-in one.
  void extend(MethodInfo info, Factory factory) {
    const std::unique_lock lock(guard_);
    const std::size_t place = position(info.name);
    if (place < entries_.size() && entries_[place]->is_built_in)
      usage_error("{} '{}' is built in; choose another name", kind_, info.name);
    if (place == entries_.size()) entries_.emplace_back();
    entries_[place] = std::make_shared<const Entry>(Entry{std::move(info), std::move(factory), /*is_built_in=*/false});
  }

  // Forgets a method that extend() added; nothing happens where there is none.
  void forget(std::string_view name) {
    const std::unique_lock lock(guard_);
    const std::size_t place = position(name);
    if (place < entries_.size() && !entries_[place]->is_built_in)
      entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(place));
  }

  // Throws kUsage with the nearest known name.
  std::unique_ptr<Product> make(std::string_view text) const {
    const MethodCall call = parse_method_call(text);
    const std::shared_ptr<const Entry> entry = find(call.name);
    return entry->factory(Options(entry->info, call));
  }

  // The resolved options of a call, without making the product.
  Options options(std::string_view text) const {
    const MethodCall call = parse_method_call(text);
    return Options(find(call.name)->info, call);
  }

  // What was added by extend() may go: hold on to no reference of it.
  const MethodInfo& info(std::string_view name) const { return find(name)->info; }

  bool contains(std::string_view name) const {
    const std::shared_lock lock(guard_);
    return position(name) < entries_.size();
  }

  // In the order of registration.
  std::vector<const MethodInfo*> infos() const {
    const std::shared_lock lock(guard_);
    std::vector<const MethodInfo*> result;
    for (const auto& entry : entries_) result.push_back(&entry->info);
    return result;
  }

  const std::string& kind() const { return kind_; }

 private:
  struct Entry {
    MethodInfo info;
    Factory factory;
    bool is_built_in = true;
  };

  // The number of entries where there is none. With the lock.
  std::size_t position(std::string_view name) const {
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry->info.name == name; });
    return static_cast<std::size_t>(found - entries_.begin());
  }

  std::shared_ptr<const Entry> find(std::string_view name) const {
    const std::shared_lock lock(guard_);
    if (const std::size_t place = position(name); place < entries_.size()) return entries_[place];
    std::vector<std::string> known;
    for (const auto& entry : entries_) known.push_back(entry->info.name);
    usage_error("unknown {} '{}'{}", kind_, name, suggestion(name, known));
  }

  static inline std::shared_mutex guard_;  // of all registries of a product; they are copied, and seldom written to
  std::string kind_;
  std::vector<std::shared_ptr<const Entry>> entries_;
};

}  // namespace holdfast

// One ONNX graph on its way to calls of torch's operators, node by node.
//
//     translator.cpp   the nodes in order, and what the operators below share
//     operators.cpp    which operators are read
//     layers.cpp, recurrent.cpp, shapes.cpp, sizes.cpp   what each of them becomes
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "holdfast/core/error.h"
#include "node.h"
#include "numbers.h"

namespace holdfast::model::onnx {

using program::Argument;
using program::NamedArgument;
using program::Reference;
using Items = std::vector<Argument>;

constexpr std::int64_t kMostDimensions = 64;

// Whole numbers that may be known or computed from sizes.
struct Sizes {
  Items items;
  bool is_scalar = false;
  std::optional<Argument> all_of = {};  // all sizes of this tensor, where the file does not tell how many it has; then no items
};

Argument list(const Integers& integers);

class Translator {
 public:
  explicit Translator(Graph graph);

  program::Program translate();

 private:
  using Operator = std::function<void(Translator&)>;
  static const std::unordered_map<std::string, Operator>& operators();
  // How many dimensions the node's first result has, where that follows from what it reads. Files need not tell it.
  std::optional<std::int64_t> rank_after() const;

  // The node at hand and its parts.
  [[noreturn]] void refuse(const std::string& why) const;
  bool has(std::size_t input) const { return input < node_->inputs.size() && !node_->inputs[input].empty(); }
  const std::string& input_name(std::size_t input) const;
  template <class Kind>
  Kind attribute(const char* name, Kind fallback) const {
    const auto found = node_->attributes.find(name);
    if (found == node_->attributes.end()) return fallback;
    const Kind* value = std::get_if<Kind>(&found->second);
    if (value == nullptr) refuse(fmt::format("has an attribute {} of another kind", name));
    return *value;
  }
  std::int64_t integer(const char* name, std::int64_t fallback) const { return attribute<std::int64_t>(name, fallback); }
  double real(const char* name, double fallback) const { return attribute<double>(name, fallback); }
  Integers integers(const char* name, const Integers& fallback) const { return attribute<Integers>(name, fallback); }

  const RawArray* constant(std::size_t input) const;
  // Known whole numbers of an input, or of an attribute in older files.
  std::optional<Integers> known(std::size_t input, const char* older) const;
  Integers needed(std::size_t input, const char* older) const;
  // Whole numbers, known or computed; nothing where the input is an ordinary tensor.
  std::optional<Sizes> sizes(std::size_t input) const;
  const Items& items_of(const Sizes& sizes) const;
  std::optional<std::int64_t> rank(std::size_t input) const;

  // Calls.
  std::string fresh() { return fmt::format("holdfast.{}", ++made_); }
  std::string where() const;
  Argument call(const std::string& operation, std::vector<NamedArgument> arguments);
  Argument call(const std::string& operation, const Items& arguments);
  // A constant becomes one of the program's when something reads it as a tensor.
  Argument use_constant(const std::string& name, const RawArray& array);
  Argument make_constant(RawArray array);
  Argument tensor(std::size_t input);
  Argument optional_tensor(std::size_t input) { return has(input) ? tensor(input) : Argument{}; }
  Argument as_list(const Sizes& sizes) { return sizes.all_of ? call("aten::size", Items{*sizes.all_of}) : Argument{sizes.items}; }
  Argument as_tensor(const Sizes& sizes);
  Argument size_of_input(const Argument& tensor, std::int64_t dim) { return call("aten::size", {tensor, {dim}}); }

  // What the node gives.
  void give(const Argument& value, std::size_t output = 0) {
    if (output < node_->outputs.size() && !node_->outputs[output].empty()) aliases_[node_->outputs[output]] = value;
  }
  void give(Sizes sizes) { sizes_[node_->outputs.at(0)] = std::move(sizes); }

  // operators.cpp: the few that need more than a name.
  void plain(const char* operation) { give(call(operation, Items{tensor(0)})); }
  void variadic(const char* operation);
  void reduce(const char* operation);
  void clip();
  void hard_sigmoid();
  void identity();

  // layers.cpp
  Argument padded(const Argument& x, Integers& pads, double value);
  Integers window_pads(std::size_t dims, const Integers& kernel, const Integers& strides, const Integers& dilations);
  void conv();
  void pool(bool maximum);
  void global_pool(const char* operation);
  void gemm();
  void batch_norm();
  void layer_norm();
  void softmax(const char* operation);
  void prelu();

  // recurrent.cpp
  void lstm();
  void gru();
  void rnn();
  void check_recurrent(const std::vector<std::string>& activations) const;
  RawArray gates_of(const RawArray& from, const Integers& order, std::int64_t way, std::int64_t first, std::int64_t width) const;
  void recurrent(const char* operation, const Integers& order);

  // shapes.cpp
  void reshape();
  void flatten();
  void transpose();
  void squeeze();
  void unsqueeze();
  void concat();
  void split();
  void slice();
  void gather();
  void expand();
  void pad();

  // sizes.cpp
  void binary(const char* operation, const char* on_sizes);
  void where_node();
  Sizes part_of(const Sizes& whole, const Argument& first, const Argument& last);
  void shape();
  void range();
  void constant_of_shape();
  void constant_node();
  void cast();

  Graph graph_;
  program::Program program_;
  const Node* node_ = nullptr;
  std::unordered_map<std::string, Sizes> sizes_;
  std::unordered_map<std::string, Argument> aliases_;  // of an ONNX value: the value in the program
  std::unordered_set<std::string> used_;               // constants that the program has already
  int made_ = 0;
};

}  // namespace holdfast::model::onnx

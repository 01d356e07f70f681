// ONNX operators as calls of torch's. Sizes of tensors are computed in ONNX with tensors of integers (Shape, Gather, Concat);
// here they are lists of plain numbers, known ones or values of the program, because torch's operators take sizes so.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "node.h"

namespace holdfast::model::onnx {
namespace {

using namespace program;
using Integers = std::vector<std::int64_t>;
using Items = std::vector<Argument>;

constexpr std::int64_t kMostDimensions = 64;

// Whole numbers that may be known or computed from sizes.
struct Sizes {
  Items items;
  bool is_scalar = false;
  std::optional<Argument> all_of = {};  // all sizes of this tensor, where the file does not tell how many it has; then no items
};

bool is_floating(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBfloat16 || type == ElementType::kFloat32 ||
         type == ElementType::kFloat64;
}

std::optional<Integers> integers_in(const RawArray& array) {
  Integers result;
  for (std::int64_t i = 0; i < array.count(); ++i) {
    const std::byte* at = array.bytes.data() + static_cast<std::size_t>(i) * size_of(array.type);
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    if (array.type == ElementType::kInt64) {
      std::memcpy(&wide, at, sizeof wide);
    } else if (array.type == ElementType::kInt32) {
      std::memcpy(&narrow, at, sizeof narrow);
      wide = narrow;
    } else {
      return std::nullopt;
    }
    result.push_back(wide);
  }
  return result;
}

std::optional<double> only_number(const RawArray& array) {
  if (array.count() != 1) return std::nullopt;
  if (array.type == ElementType::kFloat32) {
    float number = 0;
    std::memcpy(&number, array.bytes.data(), sizeof number);
    return number;
  }
  if (array.type == ElementType::kFloat64) {
    double number = 0;
    std::memcpy(&number, array.bytes.data(), sizeof number);
    return number;
  }
  const auto integers = integers_in(array);
  return integers ? std::optional(static_cast<double>((*integers)[0])) : std::nullopt;
}

bool all_finite_floats(const RawArray& array) {
  if (array.type != ElementType::kFloat32) return true;
  for (std::size_t i = 0; i < array.bytes.size(); i += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, array.bytes.data() + i, sizeof number);
    if (!std::isfinite(number)) return false;
  }
  return true;
}

Argument list(const Integers& integers) {
  return {Items(integers.begin(), integers.end())};
}

class Translator {
 public:
  explicit Translator(Graph graph) : graph_(std::move(graph)) {
    program_.path = graph_.path;
    program_.kind = "an ONNX file";
    program_.inputs = graph_.inputs;
  }

  Program translate();

 private:
  std::optional<std::int64_t> rank_after() const;
  using Operator = std::function<void(Translator&)>;
  static const std::unordered_map<std::string, Operator>& operators();

  // The node at hand and its parts.
  [[noreturn]] void refuse(const std::string& why) const {
    input_error("{}: operator {}{} {}", graph_.path, node_->type, node_->name.empty() ? "" : fmt::format(" ({})", node_->name),
                why);
  }
  bool has(std::size_t input) const { return input < node_->inputs.size() && !node_->inputs[input].empty(); }
  const std::string& input_name(std::size_t input) const {
    if (!has(input)) refuse(fmt::format("lacks input {}", input));
    return node_->inputs[input];
  }
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

  const RawArray* constant(std::size_t input) const {
    if (!has(input)) return nullptr;
    const auto found = graph_.constants.find(node_->inputs[input]);
    return found == graph_.constants.end() ? nullptr : &found->second;
  }
  // Known whole numbers of an input, or of an attribute in older files.
  std::optional<Integers> known(std::size_t input, const char* older) const {
    if (const auto* value = node_->attributes.contains(older) ? &node_->attributes.at(older) : nullptr) {
      if (const auto* many = std::get_if<Integers>(value)) return *many;
    }
    if (const RawArray* array = constant(input)) return integers_in(*array);
    if (!has(input)) return std::nullopt;
    const auto sizes = sizes_.find(node_->inputs[input]);
    if (sizes == sizes_.end()) return std::nullopt;
    Integers result;
    if (sizes->second.all_of) return std::nullopt;
    for (const Argument& item : sizes->second.items) {
      if (!std::holds_alternative<std::int64_t>(item.value)) return std::nullopt;
      result.push_back(std::get<std::int64_t>(item.value));
    }
    return result;
  }
  Integers needed(std::size_t input, const char* older) const {
    const auto found = known(input, older);
    if (!found || found->empty()) refuse(fmt::format("has {} that are not constant", older));
    return *found;
  }
  // Whole numbers, known or computed; nothing where the input is an ordinary tensor.
  std::optional<Sizes> sizes(std::size_t input) const {
    if (!has(input)) return std::nullopt;
    if (const auto found = sizes_.find(node_->inputs[input]); found != sizes_.end()) return found->second;
    const RawArray* array = constant(input);
    if (array == nullptr || array->shape.size() > 1) return std::nullopt;
    const auto integers = integers_in(*array);
    if (!integers) return std::nullopt;
    return Sizes{Items(integers->begin(), integers->end()), array->shape.empty()};
  }
  std::optional<std::int64_t> rank(std::size_t input) const {
    if (const RawArray* array = constant(input)) return static_cast<std::int64_t>(array->shape.size());
    const auto found = graph_.ranks.find(input_name(input));
    return found == graph_.ranks.end() ? std::nullopt : std::optional(found->second);
  }

  // Calls.
  std::string fresh() { return fmt::format("holdfast.{}", ++made_); }
  Argument call(const std::string& operation, std::vector<NamedArgument> arguments) {
    const std::string name = fresh();
    program_.calls.push_back({operation, std::nullopt, std::move(arguments), {{{name}}}, where()});
    return {Reference{name}};
  }
  Argument call(const std::string& operation, const Items& arguments) {
    std::vector<NamedArgument> positional;
    for (const Argument& argument : arguments) positional.push_back({"", argument});
    return call(operation, std::move(positional));
  }
  std::string where() const {
    return node_ == nullptr ? "its result"
                            : fmt::format("{}{}", node_->type, node_->name.empty() ? "" : " (" + node_->name + ")");
  }
  // A constant becomes one of the program's when something reads it as a tensor.
  Argument use_constant(const std::string& name, const RawArray& array) {
    if (used_.insert(name).second) {
      const bool parameter = is_floating(array.type) && array.count() > 1 && all_finite_floats(array);
      program_.constants.push_back({name, name, parameter, array});
    }
    return {Reference{name}};
  }
  Argument make_constant(RawArray array) {
    const std::string name = fresh();
    program_.constants.push_back({name, name, is_floating(array.type) && all_finite_floats(array), std::move(array)});
    return {Reference{name}};
  }
  Argument tensor(std::size_t input) {
    const std::string& name = input_name(input);
    if (const auto found = graph_.constants.find(name); found != graph_.constants.end()) return use_constant(name, found->second);
    if (const auto found = sizes_.find(name); found != sizes_.end()) return as_tensor(found->second);
    const auto alias = aliases_.find(name);
    return alias == aliases_.end() ? Argument{Reference{name}} : alias->second;
  }
  Argument optional_tensor(std::size_t input) { return has(input) ? tensor(input) : Argument{}; }
  Argument as_list(const Sizes& sizes) { return sizes.all_of ? call("aten::size", Items{*sizes.all_of}) : Argument{sizes.items}; }
  const Items& items_of(const Sizes& sizes) const {
    if (sizes.all_of) refuse("computes with all sizes of a tensor whose rank the file does not tell");
    return sizes.items;
  }
  Argument as_tensor(const Sizes& sizes) {
    if (sizes.all_of) return call("aten::_shape_as_tensor", Items{*sizes.all_of});
    Items parts;
    for (const Argument& item : sizes.items) {
      parts.push_back(call("aten::scalar_tensor", {{"s", item}, {"dtype", {ElementType::kInt64}}, {"device", {OwnDevice{}}}}));
    }
    return sizes.is_scalar ? parts.at(0) : call("aten::stack", {{parts}, {std::int64_t{0}}});
  }
  Argument size_of_input(const Argument& tensor, std::int64_t dim) { return call("aten::size", {tensor, {dim}}); }

  // What the node gives.
  void give(const Argument& value, std::size_t output = 0) {
    if (output < node_->outputs.size() && !node_->outputs[output].empty()) aliases_[node_->outputs[output]] = value;
  }
  void give(Sizes sizes) { sizes_[node_->outputs.at(0)] = std::move(sizes); }

  void plain(const char* operation) { give(call(operation, Items{tensor(0)})); }
  void binary(const char* operation, const char* on_sizes);
  void reduce(const char* operation);
  Argument padded(const Argument& x, Integers& pads, double value);
  Integers window_pads(std::size_t dims, const Integers& kernel, const Integers& strides, const Integers& dilations);
  void pool(bool maximum);

  // One for each operator that needs more than a name.
  void conv();
  void gemm();
  void batch_norm();
  void layer_norm();
  void softmax(const char* operation);
  void reshape();
  void flatten();
  void transpose();
  void squeeze();
  void unsqueeze();
  void concat();
  void split();
  void slice();
  Sizes part_of(const Sizes& whole, const Argument& first, const Argument& last);
  void gather();
  void shape();
  void expand();
  void range();
  void constant_of_shape();
  void constant_node();
  void cast();
  void clip();
  void pad();
  void global_pool(const char* operation);
  void hard_sigmoid();
  void variadic(const char* operation);
  void prelu();
  void where_node();
  void identity();
  void recurrent(const char* operation, const Integers& order);

  Graph graph_;
  Program program_;
  const Node* node_ = nullptr;
  std::unordered_map<std::string, Sizes> sizes_;
  std::unordered_map<std::string, Argument> aliases_;  // of an ONNX value: the value in the program
  std::unordered_set<std::string> used_;               // constants that the program has already
  int made_ = 0;
};

// What arithmetic gives for two numbers that are known; nothing where it overflows or divides by zero.
std::optional<std::int64_t> computed(std::string_view operation, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  if (operation == "aten::add") return __builtin_add_overflow(left, right, &result) ? std::nullopt : std::optional(result);
  if (operation == "aten::sub") return __builtin_sub_overflow(left, right, &result) ? std::nullopt : std::optional(result);
  if (operation == "aten::mul") return __builtin_mul_overflow(left, right, &result) ? std::nullopt : std::optional(result);
  if (operation == "aten::eq") return left == right ? 1 : 0;
  if (left < 0 || right < 1) return std::nullopt;
  return operation == "aten::floordiv" ? left / right : left % right;
}

// Arithmetic on two inputs, on sizes where both are.
void Translator::binary(const char* operation, const char* on_sizes) {
  const auto left = sizes(0), right = sizes(1);
  if (on_sizes == nullptr || !left || !right) return give(call(operation, {tensor(0), tensor(1)}));
  Sizes result{.is_scalar = left->is_scalar && right->is_scalar};
  const std::size_t length = std::max(items_of(*left).size(), items_of(*right).size());
  for (const auto* side : {&*left, &*right}) {
    if (side->items.size() != length && side->items.size() != 1) refuse("combines lists of sizes of other lengths");
  }
  for (std::size_t i = 0; i < length; ++i) {
    const Argument& a = left->items[left->items.size() == 1 ? 0 : i];
    const Argument& b = right->items[right->items.size() == 1 ? 0 : i];
    const auto *first = std::get_if<std::int64_t>(&a.value), *second = std::get_if<std::int64_t>(&b.value);
    const auto known = first != nullptr && second != nullptr ? computed(on_sizes, *first, *second) : std::nullopt;
    // A size is never negative: that is how a graph asks whether one was left open.
    const bool negative = (first != nullptr && *first < 0) || (second != nullptr && *second < 0);
    if (known)
      result.items.push_back({*known});
    else if (std::string_view(on_sizes) == "aten::eq")
      result.items.push_back(negative ? Argument{std::int64_t{0}} : call("aten::Int", Items{call(on_sizes, {a, b})}));
    else
      result.items.push_back(call(on_sizes, {a, b}));
  }
  give(std::move(result));
}

// Among sizes, the condition must be known.
void Translator::where_node() {
  const auto condition = sizes(0), yes = sizes(1), no = sizes(2);
  if (!condition || !yes || !no) return give(call("aten::where", {tensor(0), tensor(1), tensor(2)}));
  Sizes result;
  const std::size_t length = items_of(*condition).size();
  if (items_of(*yes).size() != length || items_of(*no).size() != length) refuse("chooses among lists of other lengths");
  for (std::size_t i = 0; i < length; ++i) {
    const auto* chosen = std::get_if<std::int64_t>(&condition->items[i].value);
    if (chosen == nullptr) refuse("chooses a size by another size");
    result.items.push_back(*chosen != 0 ? yes->items[i] : no->items[i]);
  }
  give(std::move(result));
}

void Translator::reduce(const char* operation) {
  const bool keep = integer("keepdims", 1) != 0;
  std::optional<Integers> axes = known(1, "axes");
  if (!axes || axes->empty()) {
    if (integer("noop_with_empty_axes", 0) != 0) return give(tensor(0));
    const auto dims = rank(0);
    if (!dims) refuse("reduces all dimensions of a tensor whose shape the file does not tell");
    axes.emplace();
    for (std::int64_t i = 0; i < *dims; ++i) axes->push_back(i);
  }
  give(call(operation, {tensor(0), list(*axes), {keep}}));
}

// Amounts before and after each of the last dimensions, as ONNX writes them: all beginnings, then all ends. What torch cannot do
// beside the operation itself is done here, and `pads` becomes one number for each dimension.
Argument Translator::padded(const Argument& x, Integers& pads, double value) {
  const std::size_t dims = pads.size() / 2;
  bool even = true;
  for (std::size_t i = 0; i < dims; ++i) even = even && pads[i] == pads[dims + i];
  if (even) {
    pads.resize(dims);
    return x;
  }
  Integers amounts;
  for (std::size_t i = dims; i-- > 0;) amounts.insert(amounts.end(), {pads[i], pads[dims + i]});
  pads.assign(dims, 0);
  return call("aten::constant_pad_nd", {x, list(amounts), {value}});
}

Integers Translator::window_pads(std::size_t dims, const Integers& kernel, const Integers& strides, const Integers& dilations) {
  const std::string automatic = attribute<std::string>("auto_pad", "NOTSET");
  if (automatic == "NOTSET") return integers("pads", Integers(2 * dims, 0));
  if (automatic == "VALID") return Integers(2 * dims, 0);
  Integers pads(2 * dims, 0);
  for (std::size_t i = 0; i < dims; ++i) {
    if (strides[i] != 1) refuse("pads by auto_pad with a stride; write its pads");
    const std::int64_t total = dilations[i] * (kernel[i] - 1);
    const bool upper = automatic == "SAME_UPPER";
    pads[i] = upper ? total / 2 : total - total / 2;
    pads[dims + i] = total - pads[i];
  }
  return pads;
}

void Translator::conv() {
  const RawArray* weight = constant(1);
  if (weight == nullptr || weight->shape.size() < 3 || weight->shape.size() > 5) refuse("has weights that are not constant");
  const std::size_t dims = weight->shape.size() - 2;
  const Integers strides = integers("strides", Integers(dims, 1)), dilations = integers("dilations", Integers(dims, 1));
  if (strides.size() != dims || dilations.size() != dims) refuse("has strides or dilations of another length");
  Integers pads = window_pads(dims, {weight->shape.begin() + 2, weight->shape.end()}, strides, dilations);
  if (pads.size() != 2 * dims) refuse("has pads of another length");
  const Argument x = padded(tensor(0), pads, 0);
  give(call(fmt::format("aten::conv{}d", dims),
            {x, tensor(1), optional_tensor(2), list(strides), list(pads), list(dilations), {integer("group", 1)}}));
}

void Translator::pool(bool maximum) {
  const Integers kernel = integers("kernel_shape", {});
  const std::size_t dims = kernel.size();
  if (dims < 1 || dims > 3) refuse("has a window in more dimensions than 3");
  const Integers strides = integers("strides", Integers(dims, 1)), dilations = integers("dilations", Integers(dims, 1));
  if (strides.size() != dims || dilations.size() != dims) refuse("has strides or dilations of another length");
  if (node_->outputs.size() > 1 && !node_->outputs[1].empty()) refuse("gives positions, which is not read");
  Integers pads = window_pads(dims, kernel, strides, dilations);
  if (pads.size() != 2 * dims) refuse("has pads of another length");
  const bool ceil = integer("ceil_mode", 0) != 0, counts = integer("count_include_pad", 0) != 0;
  const bool even = std::equal(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(dims),
                               pads.begin() + static_cast<std::ptrdiff_t>(dims));
  if (!maximum && !even && !counts) refuse("averages windows that reach further over one border than over the other");
  const Argument x = padded(tensor(0), pads, maximum ? -std::numeric_limits<double>::infinity() : 0);
  if (maximum)
    give(call(fmt::format("aten::max_pool{}d", dims), {x, list(kernel), list(strides), list(pads), list(dilations), {ceil}}));
  else
    give(call(fmt::format("aten::avg_pool{}d", dims), {x, list(kernel), list(strides), list(pads), {ceil}, {counts}}));
}

void Translator::global_pool(const char* operation) {
  const std::int64_t dims = rank(0).value_or(4);
  Integers axes;
  for (std::int64_t i = 2; i < dims; ++i) axes.push_back(i);
  give(call(operation, {tensor(0), list(axes), {true}}));
}

// alpha A' B' + beta C
void Translator::gemm() {
  const double alpha = real("alpha", 1), beta = real("beta", 1);
  const bool flipped = integer("transA", 0) != 0, stored = integer("transB", 0) != 0;
  const Argument a = flipped ? call("aten::t", Items{tensor(0)}) : tensor(0);
  const Argument weight = stored ? tensor(1) : call("aten::t", Items{tensor(1)});
  const RawArray* bias = constant(2);
  const bool vector = bias != nullptr && !bias->shape.empty() && bias->shape.back() == bias->count() && bias->count() > 1;
  if (alpha == 1 && beta == 1 && vector && bias->shape.size() == 1) return give(call("aten::linear", {a, weight, tensor(2)}));
  if (alpha == 1 && !has(2)) return give(call("aten::linear", {a, weight}));
  Argument product = call("aten::linear", {a, weight});
  if (alpha != 1) product = call("aten::mul", {product, {alpha}});
  if (!has(2)) return give(product);
  const Argument shift = beta == 1 ? tensor(2) : call("aten::mul", {tensor(2), {beta}});
  give(call("aten::add", {product, shift}));
}

void Translator::batch_norm() {
  if (integer("training_mode", 0) != 0) refuse("is in training mode; export the model in evaluation mode, model.eval()");
  give(call("aten::batch_norm", {tensor(0),
                                 tensor(1),
                                 tensor(2),
                                 tensor(3),
                                 tensor(4),
                                 {false},
                                 {1 - real("momentum", 0.9)},
                                 {real("epsilon", 1e-5)},
                                 {false}}));
}

void Translator::layer_norm() {
  const RawArray* scale = constant(1);
  if (scale == nullptr) refuse("has a scale that is not constant");
  if (node_->outputs.size() > 1) refuse("gives its statistics, which is not read");
  const std::int64_t axis = integer("axis", -1);
  if (axis >= 0 && rank(0) && *rank(0) - axis != static_cast<std::int64_t>(scale->shape.size()))
    refuse("has a scale of another shape");
  give(call("aten::layer_norm", {tensor(0), list(scale->shape), tensor(1), optional_tensor(2), {real("epsilon", 1e-5)}}));
}

// Before opset 13 all dimensions from `axis` on were one.
void Translator::softmax(const char* operation) {
  const std::int64_t axis = integer("axis", graph_.opset >= 13 ? -1 : 1);
  const auto dims = rank(0);
  if (graph_.opset < 13 && axis != -1 && axis + 1 != dims.value_or(axis + 1)) refuse("works over several dimensions at once");
  give(call(operation, {tensor(0), {axis}}));
}

// 0 means: as it is.
void Translator::reshape() {
  const auto wanted = sizes(1);
  if (!wanted) refuse("has a shape that is computed from values");
  if (const auto list = sizes(0)) {
    if (wanted->all_of || wanted->items.size() > 1) refuse("gives a list of sizes more dimensions");
    return give(Sizes{items_of(*list), wanted->items.empty()});
  }
  const Argument x = tensor(0);
  if (wanted->all_of) return give(call("aten::reshape", {x, as_list(*wanted)}));
  Items items = wanted->items;
  for (std::size_t i = 0; i < items.size() && integer("allowzero", 0) == 0; ++i) {
    const auto* size = std::get_if<std::int64_t>(&items[i].value);
    if (size != nullptr && *size == 0) items[i] = size_of_input(x, static_cast<std::int64_t>(i));
  }
  give(call("aten::reshape", {x, {items}}));
}

void Translator::flatten() {
  if (integer("axis", 1) != 1) refuse("does not keep the samples apart");
  give(call("aten::flatten", {tensor(0), {std::int64_t{1}}, {std::int64_t{-1}}}));
}

void Translator::transpose() {
  Integers order = integers("perm", {});
  if (order.empty()) {
    const auto dims = rank(0);
    if (!dims) refuse("turns round a tensor whose shape the file does not tell");
    for (std::int64_t i = *dims; i-- > 0;) order.push_back(i);
  }
  give(call("aten::permute", {tensor(0), list(order)}));
}

void Translator::squeeze() {
  Integers axes = needed(1, "axes");
  if (auto list = sizes(0); list && sizes_.contains(input_name(0))) {
    if (items_of(*list).size() != 1) refuse("takes the dimension of a list away");
    return give(Sizes{list->items, true});
  }
  std::sort(axes.begin(), axes.end(), std::greater<>());  // the last first, so that the others keep their place
  if (axes.size() > 1 && axes.back() < 0 && axes.front() >= 0) refuse("counts dimensions from both ends");
  Argument x = tensor(0);
  if (axes.front() < 0) std::reverse(axes.begin(), axes.end());
  for (const std::int64_t axis : axes) x = call("aten::squeeze", {x, {axis}});
  give(x);
}

void Translator::unsqueeze() {
  Integers axes = needed(1, "axes");
  if (sizes_.contains(input_name(0))) {
    const Sizes list = *sizes(0);
    if (!list.is_scalar || axes != Integers{axes[0]}) refuse("adds a dimension to a list");
    return give(Sizes{list.items, false});
  }
  std::sort(axes.begin(), axes.end());
  if (axes.size() > 1 && axes.front() < 0) refuse("counts several dimensions from the end");
  Argument x = tensor(0);
  for (const std::int64_t axis : axes) x = call("aten::unsqueeze", {x, {axis}});
  give(x);
}

void Translator::concat() {
  bool computed = false, all = true;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    computed = computed || sizes_.contains(input_name(i));
    all = all && sizes(i).has_value();
  }
  if (computed && all) {
    Sizes joined;
    for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
      const Items items = items_of(*sizes(i));
      joined.items.insert(joined.items.end(), items.begin(), items.end());
    }
    return give(std::move(joined));
  }
  Items parts;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) parts.push_back(tensor(i));
  give(call("aten::cat", {{parts}, {integer("axis", 0)}}));
}

void Translator::split() {
  const std::int64_t axis = integer("axis", 0);
  const auto lengths = known(1, "split");
  const auto count = static_cast<std::int64_t>(node_->outputs.size());
  if (lengths && static_cast<std::int64_t>(lengths->size()) != count) refuse("has as many lengths as no results");
  Call part{.operation = lengths ? "aten::split_with_sizes" : "aten::chunk", .where = where()};
  part.arguments = {{"", tensor(0)}, {"", lengths ? list(*lengths) : Argument{count}}, {"", {axis}}};
  Result result{.is_list = true};
  for (std::int64_t i = 0; i < count; ++i) result.names.push_back(fresh());
  for (std::size_t i = 0; i < result.names.size(); ++i) give({Reference{result.names[i]}}, i);
  part.results = {result};
  program_.calls.push_back(std::move(part));
}

// Sizes first to last of a tensor whose rank is not known: both are counted from the same end.
Sizes Translator::part_of(const Sizes& whole, const Argument& first, const Argument& last) {
  const auto *begin = std::get_if<std::int64_t>(&first.value), *end = std::get_if<std::int64_t>(&last.value);
  if (begin == nullptr || end == nullptr) refuse("takes a part of a list that depends on a size");
  const bool to_the_end = *end > kMostDimensions;
  if (*begin < -kMostDimensions || *begin > kMostDimensions || *end < -kMostDimensions ||
      (*begin < 0) != (*end < 0 || to_the_end) || (*begin >= 0 && to_the_end)) {
    refuse("takes a part of the sizes of a tensor whose rank the file does not tell");
  }
  Sizes part;
  for (std::int64_t i = *begin; i < (to_the_end ? 0 : *end); ++i) part.items.push_back(size_of_input(*whole.all_of, i));
  return part;
}

void Translator::slice() {
  const bool older = graph_.opset < 10;
  const auto starts = sizes(1), ends = sizes(2);
  Items first, last;
  if (older) {
    for (const std::int64_t start : needed(1, "starts")) first.push_back({start});
    for (const std::int64_t end : needed(2, "ends")) last.push_back({end});
  } else {
    if (!starts || !ends) refuse("has limits that are computed from values");
    first = starts->items;
    last = ends->items;
  }
  Integers axes = known(3, "axes").value_or(Integers());
  if (axes.empty()) {
    for (std::size_t i = 0; i < first.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  const Integers steps = older ? Integers(first.size(), 1) : known(4, "steps").value_or(Integers(first.size(), 1));
  if (last.size() != first.size() || axes.size() != first.size() || steps.size() != first.size())
    refuse("has limits of different lengths");
  if (sizes_.contains(input_name(0))) {
    const Sizes whole = *sizes(0);
    if (axes != Integers{0} || steps[0] != 1) refuse("takes every so many of a list");
    if (whole.all_of) return give(part_of(whole, first[0], last[0]));
    const Items& items = whole.items;
    const auto length = static_cast<std::int64_t>(items.size());
    const auto limit = [&](const Argument& item) {
      const auto* number = std::get_if<std::int64_t>(&item.value);
      if (number == nullptr) refuse("takes a part of a list that depends on a size");
      return std::clamp<std::int64_t>(*number < 0 ? *number + length : *number, 0, length);
    };
    const std::int64_t begin = limit(first[0]), end = std::max(begin, limit(last[0]));
    return give(Sizes{Items(items.begin() + begin, items.begin() + end)});
  }
  Argument x = tensor(0);
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (steps[i] < 1) refuse("goes backwards");
    x = call("aten::slice", {x, {axes[i]}, first[i], last[i], {steps[i]}});
  }
  give(x);
}

void Translator::gather() {
  const auto index = known(1, "");
  const std::int64_t axis = integer("axis", 0);
  const bool scalar = (constant(1) != nullptr && constant(1)->shape.empty()) || (sizes(1) && sizes(1)->is_scalar);
  if (!index && sizes_.contains(input_name(0))) refuse("takes a size by a position that is computed");
  if (sizes_.contains(input_name(0))) {
    const Sizes whole = *sizes(0);
    const Items& items = whole.items;
    Sizes chosen{.is_scalar = scalar};
    for (const std::int64_t i : *index) {
      if (whole.all_of) {
        chosen.items.push_back(size_of_input(*whole.all_of, i));
        continue;
      }
      const std::int64_t at = i < 0 ? i + static_cast<std::int64_t>(items.size()) : i;
      if (at < 0 || at >= static_cast<std::int64_t>(items.size())) refuse("reads past the end of a list");
      chosen.items.push_back(items[static_cast<std::size_t>(at)]);
    }
    return give(std::move(chosen));
  }
  if (index && scalar) return give(call("aten::select", {tensor(0), {axis}, {(*index)[0]}}));
  if (constant(0) != nullptr && axis == 0 && constant(0)->shape.size() == 2)
    return give(call("aten::embedding", {tensor(0), tensor(1)}));
  if (constant(1) == nullptr || constant(1)->shape.size() != 1) refuse("takes positions that are not a constant list");
  give(call("aten::index_select", {tensor(0), {axis}, tensor(1)}));
}

void Translator::shape() {
  if (const auto list = sizes(0)) {
    Sizes length;
    if (!list->is_scalar) length.items.push_back({static_cast<std::int64_t>(items_of(*list).size())});
    return give(std::move(length));
  }
  const auto dims = rank(0);
  const Argument x = tensor(0);
  if (!dims) {
    Sizes all{.all_of = x};
    const Argument start{integer("start", 0)}, end{integer("end", std::numeric_limits<std::int64_t>::max())};
    const bool whole = !node_->attributes.contains("start") && !node_->attributes.contains("end");
    return give(whole ? std::move(all) : part_of(all, start, end));
  }
  const auto limit = [&](const char* name, std::int64_t fallback) {
    const std::int64_t at = integer(name, fallback);
    return std::clamp<std::int64_t>(at < 0 ? at + *dims : at, 0, *dims);
  };
  Sizes sizes;
  for (std::int64_t i = limit("start", 0); i < limit("end", *dims); ++i) sizes.items.push_back(size_of_input(x, i));
  give(std::move(sizes));
}

// A size of 1 keeps what is there, as -1 does for torch.
void Translator::expand() {
  const auto wanted = sizes(1);
  if (!wanted) refuse("has a shape that is computed from values");
  if (wanted->all_of) return give(call("aten::expand", {tensor(0), as_list(*wanted)}));
  Items items = wanted->items;
  for (Argument& item : items) {
    const auto* size = std::get_if<std::int64_t>(&item.value);
    if (size != nullptr && *size == 1 && rank(0) && *rank(0) == static_cast<std::int64_t>(items.size()))
      item = {std::int64_t{-1}};
  }
  give(call("aten::expand", {tensor(0), {items}}));
}

// Numbers from a start up to a limit, which is a size.
void Translator::range() {
  Items ends;
  for (const std::size_t input : {0U, 1U, 2U}) {
    const auto number = sizes(input);
    if (!number || items_of(*number).size() != 1) refuse("counts to a number that is no size");
    ends.push_back(number->items[0]);
  }
  give(call("aten::arange", {{"start", ends[0]},
                             {"end", ends[1]},
                             {"step", ends[2]},
                             {"dtype", {ElementType::kInt64}},
                             {"device", {OwnDevice{}}}}));
}

void Translator::constant_of_shape() {
  const auto wanted = sizes(0);
  if (!wanted) refuse("has a shape that is computed from values");
  const RawArray value = attribute<RawArray>("value", RawArray{ElementType::kFloat32, {1}, Bytes(4)});
  const auto number = only_number(value);
  if (!number) refuse("has a value that is not one number");
  const auto* length = wanted->items.size() == 1 ? std::get_if<std::int64_t>(&wanted->items[0].value) : nullptr;
  if (length != nullptr && *length >= 0 && *length <= kMostDimensions && value.type == ElementType::kInt64)
    return give(Sizes{Items(static_cast<std::size_t>(*length), Argument{static_cast<std::int64_t>(*number)})});
  give(call("aten::full",
            {{"size", as_list(*wanted)}, {"fill_value", {*number}}, {"dtype", {value.type}}, {"device", {OwnDevice{}}}}));
}

void Translator::constant_node() {
  const std::string& name = node_->outputs.at(0);
  const auto& attributes = node_->attributes;
  RawArray array{ElementType::kInt64, {}, {}};
  const auto fill = [&](ElementType type, const auto& numbers) {
    using Number = typename std::decay_t<decltype(numbers)>::value_type;
    array = {type, {static_cast<std::int64_t>(numbers.size())}, Bytes(numbers.size() * sizeof(Number))};
    std::memcpy(array.bytes.data(), numbers.data(), array.bytes.size());
  };
  if (attributes.contains("value")) {
    array = attribute<RawArray>("value", {});
  } else if (attributes.contains("value_int")) {
    fill(ElementType::kInt64, Integers{integer("value_int", 0)});
    array.shape.clear();
  } else if (attributes.contains("value_ints")) {
    fill(ElementType::kInt64, integers("value_ints", {}));
  } else if (attributes.contains("value_float")) {
    fill(ElementType::kFloat32, std::vector<float>{static_cast<float>(real("value_float", 0))});
    array.shape.clear();
  } else if (attributes.contains("value_floats")) {
    const auto wide = attribute<std::vector<double>>("value_floats", {});
    fill(ElementType::kFloat32, std::vector<float>(wide.begin(), wide.end()));
  } else {
    refuse("holds no numbers");
  }
  if (!graph_.constants.emplace(name, std::move(array)).second) refuse("gives a name that a weight has");
}

void Translator::cast() {
  static const std::map<std::int64_t, ElementType> kTypes{
      {1, ElementType::kFloat32},  {2, ElementType::kUint8},    {3, ElementType::kInt8}, {5, ElementType::kInt16},
      {6, ElementType::kInt32},    {7, ElementType::kInt64},    {9, ElementType::kBool}, {10, ElementType::kFloat16},
      {11, ElementType::kFloat64}, {16, ElementType::kBfloat16}};
  const auto type = kTypes.find(integer("to", 0));
  if (type == kTypes.end()) refuse("gives elements of a type that is not read");
  if (sizes_.contains(input_name(0)) && (type->second == ElementType::kInt64 || type->second == ElementType::kInt32))
    return give(*sizes(0));
  give(call("aten::to", {tensor(0), {type->second}}));
}

void Translator::clip() {
  const auto limit = [&](std::size_t input, const char* older) -> Argument {
    if (node_->attributes.contains(older)) return {real(older, 0)};
    if (!has(input)) return {};
    const auto number = constant(input) == nullptr ? std::nullopt : only_number(*constant(input));
    if (!number) refuse("has limits that are not constant");
    return {*number};
  };
  give(call("aten::clamp", {tensor(0), limit(1, "min"), limit(2, "max")}));
}

void Translator::pad() {
  const Integers pads = needed(1, "pads");
  const std::string mode = attribute<std::string>("mode", "constant");
  const std::size_t dims = pads.size() / 2;
  if (has(3)) refuse("pads chosen dimensions");
  Integers amounts;
  for (std::size_t i = dims; i-- > 0;) amounts.insert(amounts.end(), {pads[i], pads[dims + i]});
  while (amounts.size() >= 2 && amounts.back() == 0 && amounts[amounts.size() - 2] == 0) amounts.resize(amounts.size() - 2);
  double value = real("value", 0);
  if (has(2)) {
    const auto number = constant(2) == nullptr ? std::nullopt : only_number(*constant(2));
    if (!number) refuse("has a value that is not constant");
    value = *number;
  }
  if (mode == "constant") return give(call("aten::constant_pad_nd", {tensor(0), list(amounts), {value}}));
  if (mode != "reflect" && mode != "edge") refuse("pads by " + mode);
  give(call("aten::pad", {tensor(0), list(amounts), {std::string(mode == "edge" ? "replicate" : "reflect")}}));
}

// clip(alpha x + beta, 0, 1)
void Translator::hard_sigmoid() {
  const double alpha = real("alpha", 0.2), beta = real("beta", 0.5);
  if (std::abs(alpha - 1.0 / 6) < 1e-6 && beta == 0.5) return give(call("aten::hardsigmoid", Items{tensor(0)}));
  const Argument line = call("aten::add", {call("aten::mul", {tensor(0), {alpha}}), {beta}});
  give(call("aten::clamp", {line, {0.0}, {1.0}}));
}

void Translator::variadic(const char* operation) {
  Argument result = tensor(0);
  for (std::size_t i = 1; i < node_->inputs.size(); ++i) result = call(operation, {result, tensor(i)});
  give(result);
}

// The slope is one number, or one for each channel.
void Translator::prelu() {
  const RawArray* slope = constant(1);
  if (slope == nullptr) refuse("has slopes that are not constant");
  RawArray flat = *slope;
  flat.shape = {flat.count()};
  give(call("aten::prelu", {tensor(0), make_constant(std::move(flat))}));
}

void Translator::identity() {
  if (node_->outputs.size() > 1 && !node_->outputs[1].empty()) refuse("gives its mask, which is not read");
  if (sizes_.contains(input_name(0))) return give(*sizes(0));
  // Equal weights are often kept once; each of their names is then a weight.
  if (const RawArray* array = constant(0)) {
    graph_.constants.emplace(node_->outputs[0], RawArray(*array));
    return;
  }
  give(tensor(0));
}

// One layer, in one direction or both. ONNX keeps the gates in another order than torch: `order` says where torch's are.
void Translator::recurrent(const char* operation, const Integers& order) {
  const RawArray *input_weights = constant(1), *own_weights = constant(2), *biases = constant(3);
  if (input_weights == nullptr || own_weights == nullptr || input_weights->shape.size() != 3 || own_weights->shape.size() != 3 ||
      (has(3) && biases == nullptr)) {
    refuse("has weights that are not constant");
  }
  const std::string direction = attribute<std::string>("direction", "forward");
  const std::int64_t ways = direction == "bidirectional" ? 2 : 1, hidden = own_weights->shape[2];
  const auto gates = static_cast<std::int64_t>(order.size());
  if (direction == "reverse") refuse("runs backwards only");
  if (has(4) || has(7) || integer("layout", 0) != 0 || node_->attributes.contains("clip") ||
      node_->attributes.contains("activations") || integer("input_forget", 0) != 0) {
    refuse("has lengths, peepholes or activations of its own");
  }
  if (gates == 3 && integer("linear_before_reset", 0) == 0)
    refuse("resets before the matrix (linear_before_reset=0), which torch's layer does not");
  const auto part = [&](const RawArray& from, std::int64_t way, std::int64_t first, std::int64_t width) {
    // Rows [first, first + gates * hidden) of one way, gates in torch's order.
    RawArray result{from.type, {gates * hidden}, {}};
    if (width > 0) result.shape.push_back(width);
    const auto row = static_cast<std::size_t>(std::max<std::int64_t>(width, 1)) * size_of(from.type);
    const std::size_t rows = from.bytes.size() / row / static_cast<std::size_t>(ways),
                      block = static_cast<std::size_t>(hidden) * row;
    const std::size_t start = (static_cast<std::size_t>(way) * rows + static_cast<std::size_t>(first)) * row;
    if (start + static_cast<std::size_t>(gates) * block > from.bytes.size()) refuse("has weights of other shapes");
    for (const std::int64_t gate : order) {
      const auto at = from.bytes.begin() + static_cast<std::ptrdiff_t>(start + static_cast<std::size_t>(gate) * block);
      result.bytes.insert(result.bytes.end(), at, at + static_cast<std::ptrdiff_t>(block));
    }
    return make_constant(std::move(result));
  };
  if (input_weights->shape != Integers{ways, gates * hidden, input_weights->shape[2]} ||
      own_weights->shape != Integers{ways, gates * hidden, hidden} ||
      (biases != nullptr && biases->shape != Integers{ways, 2 * gates * hidden}) || hidden < 1 || input_weights->shape[2] < 1) {
    refuse("has weights of other shapes");
  }
  Items weights;
  for (std::int64_t way = 0; way < ways; ++way) {
    weights.push_back(part(*input_weights, way, 0, input_weights->shape[2]));
    weights.push_back(part(*own_weights, way, 0, hidden));
    if (biases == nullptr) continue;
    weights.push_back(part(*biases, way, 0, 0));
    weights.push_back(part(*biases, way, gates * hidden, 0));
  }
  const Argument x = tensor(0);
  const auto state = [&](std::size_t input) {
    if (has(input)) return tensor(input);
    const Items shape{{ways}, size_of_input(x, 1), {hidden}};
    return call("aten::zeros", {{"size", {shape}}, {"dtype", {input_weights->type}}, {"device", {OwnDevice{}}}});
  };
  const Argument start = gates == 4 ? Argument{Items{state(5), state(6)}} : state(5);
  Call layer{.operation = operation, .overload = "input", .where = where()};
  layer.arguments = {{"input", x},
                     {"hx", start},
                     {"params", {weights}},
                     {"has_biases", {biases != nullptr}},
                     {"num_layers", {std::int64_t{1}}},
                     {"dropout", {0.0}},
                     {"train", {false}},
                     {"bidirectional", {ways == 2}},
                     {"batch_first", {false}}};
  const std::string all = fresh(), last = fresh(), cell = fresh();
  layer.results = {{{all}}, {{last}}};
  if (gates == 4) layer.results.push_back({{cell}});
  program_.calls.push_back(std::move(layer));
  // [steps, samples, ways * hidden] -> [steps, ways, samples, hidden]
  const Argument apart = call("aten::unflatten", {{Reference{all}}, {std::int64_t{2}}, {Items{{ways}, {hidden}}}});
  give(call("aten::transpose", {apart, {std::int64_t{1}}, {std::int64_t{2}}}));
  give({Reference{last}}, 1);
  if (gates == 4) give({Reference{cell}}, 2);
}

const std::unordered_map<std::string, Translator::Operator>& Translator::operators() {
  using T = Translator;
  static const std::unordered_map<std::string, Operator> table = {
      {"Conv", [](T& t) { t.conv(); }},
      {"Gemm", [](T& t) { t.gemm(); }},
      {"BatchNormalization", [](T& t) { t.batch_norm(); }},
      {"LayerNormalization", [](T& t) { t.layer_norm(); }},
      {"Reshape", [](T& t) { t.reshape(); }},
      {"Flatten", [](T& t) { t.flatten(); }},
      {"Transpose", [](T& t) { t.transpose(); }},
      {"Squeeze", [](T& t) { t.squeeze(); }},
      {"Unsqueeze", [](T& t) { t.unsqueeze(); }},
      {"Concat", [](T& t) { t.concat(); }},
      {"Split", [](T& t) { t.split(); }},
      {"Slice", [](T& t) { t.slice(); }},
      {"Gather", [](T& t) { t.gather(); }},
      {"Shape", [](T& t) { t.shape(); }},
      {"Expand", [](T& t) { t.expand(); }},
      {"Range", [](T& t) { t.range(); }},
      {"ConstantOfShape", [](T& t) { t.constant_of_shape(); }},
      {"Constant", [](T& t) { t.constant_node(); }},
      {"Cast", [](T& t) { t.cast(); }},
      {"Clip", [](T& t) { t.clip(); }},
      {"Pad", [](T& t) { t.pad(); }},
      {"HardSigmoid", [](T& t) { t.hard_sigmoid(); }},
      {"Relu", [](T& t) { t.plain("aten::relu"); }},
      {"Sigmoid", [](T& t) { t.plain("aten::sigmoid"); }},
      {"Tanh", [](T& t) { t.plain("aten::tanh"); }},
      {"Softplus", [](T& t) { t.plain("aten::softplus"); }},
      {"HardSwish", [](T& t) { t.plain("aten::hardswish"); }},
      {"Mish", [](T& t) { t.plain("aten::mish"); }},
      {"Erf", [](T& t) { t.plain("aten::erf"); }},
      {"Exp", [](T& t) { t.plain("aten::exp"); }},
      {"Log", [](T& t) { t.plain("aten::log"); }},
      {"Sqrt", [](T& t) { t.plain("aten::sqrt"); }},
      {"Neg", [](T& t) { t.plain("aten::neg"); }},
      {"Abs", [](T& t) { t.plain("aten::abs"); }},
      {"Reciprocal", [](T& t) { t.plain("aten::reciprocal"); }},
      {"Sin", [](T& t) { t.plain("aten::sin"); }},
      {"Cos", [](T& t) { t.plain("aten::cos"); }},
      {"Floor", [](T& t) { t.plain("aten::floor"); }},
      {"Ceil", [](T& t) { t.plain("aten::ceil"); }},
      {"Round", [](T& t) { t.plain("aten::round"); }},
      {"Sign", [](T& t) { t.plain("aten::sign"); }},
      {"Not", [](T& t) { t.plain("aten::logical_not"); }},
      {"Selu", [](T& t) { t.plain("aten::selu"); }},
      {"Add", [](T& t) { t.binary("aten::add", "aten::add"); }},
      {"Sub", [](T& t) { t.binary("aten::sub", "aten::sub"); }},
      {"Mul", [](T& t) { t.binary("aten::mul", "aten::mul"); }},
      {"Div", [](T& t) { t.binary("aten::div", "aten::floordiv"); }},
      {"Mod", [](T& t) { t.binary("aten::remainder", "aten::remainder"); }},
      {"Pow", [](T& t) { t.binary("aten::pow", nullptr); }},
      {"MatMul", [](T& t) { t.binary("aten::matmul", nullptr); }},
      {"Equal", [](T& t) { t.binary("aten::eq", "aten::eq"); }},
      {"Less", [](T& t) { t.binary("aten::lt", nullptr); }},
      {"LessOrEqual", [](T& t) { t.binary("aten::le", nullptr); }},
      {"Greater", [](T& t) { t.binary("aten::gt", nullptr); }},
      {"GreaterOrEqual", [](T& t) { t.binary("aten::ge", nullptr); }},
      {"And", [](T& t) { t.binary("aten::logical_and", nullptr); }},
      {"Or", [](T& t) { t.binary("aten::logical_or", nullptr); }},
      {"Softmax", [](T& t) { t.softmax("aten::softmax"); }},
      {"LogSoftmax", [](T& t) { t.softmax("aten::log_softmax"); }},
      {"MaxPool", [](T& t) { t.pool(true); }},
      {"AveragePool", [](T& t) { t.pool(false); }},
      {"GlobalAveragePool", [](T& t) { t.global_pool("aten::mean"); }},
      {"GlobalMaxPool", [](T& t) { t.global_pool("aten::amax"); }},
      {"ReduceMean", [](T& t) { t.reduce("aten::mean"); }},
      {"ReduceSum", [](T& t) { t.reduce("aten::sum"); }},
      {"ReduceMax", [](T& t) { t.reduce("aten::amax"); }},
      {"ReduceMin", [](T& t) { t.reduce("aten::amin"); }},
      {"Max", [](T& t) { t.variadic("aten::maximum"); }},
      {"Min", [](T& t) { t.variadic("aten::minimum"); }},
      {"Sum", [](T& t) { t.variadic("aten::add"); }},
      {"Identity", [](T& t) { t.identity(); }},
      {"Dropout", [](T& t) { t.identity(); }},
      {"Where", [](T& t) { t.where_node(); }},
      {"PRelu", [](T& t) { t.prelu(); }},
      {"LeakyRelu",
       [](T& t) {
         t.give(t.call("aten::leaky_relu", {t.tensor(0), {t.real("alpha", 0.01)}}));
       }},
      {"Elu",
       [](T& t) {
         t.give(t.call("aten::elu", {t.tensor(0), {t.real("alpha", 1)}}));
       }},
      {"Gelu",
       [](T& t) {
         t.give(
             t.call("aten::gelu", {{"self", t.tensor(0)}, {"approximate", {t.attribute<std::string>("approximate", "none")}}}));
       }},
      {"LSTM",
       [](T& t) {
         t.recurrent("aten::lstm", {0, 2, 3, 1});
       }},
      {"GRU",
       [](T& t) {
         t.recurrent("aten::gru", {1, 0, 2});
       }},
  };
  return table;
}

// How many dimensions the node's first result has, where that follows from what it reads. Files need not tell it.
std::optional<std::int64_t> Translator::rank_after() const {
  const auto changed = [&](std::int64_t by) { return rank(0) ? std::optional(*rank(0) + by) : std::nullopt; };
  const std::string& type = node_->type;
  if (type == "Constant" || type == "LSTM" || type == "GRU") return std::nullopt;
  if (type == "Gemm" || type == "Flatten") return 2;
  if (type == "Reshape" || type == "Expand" || type == "ConstantOfShape") {
    const auto wanted = sizes(type == "ConstantOfShape" ? 0 : 1);
    if (!wanted || wanted->all_of) return std::nullopt;
    const auto length = static_cast<std::int64_t>(wanted->items.size());
    return type == "Expand" ? std::optional(std::max(length, rank(0).value_or(0))) : std::optional(length);
  }
  if (type == "Unsqueeze") return changed(static_cast<std::int64_t>(needed(1, "axes").size()));
  if (type == "Squeeze") return changed(-static_cast<std::int64_t>(needed(1, "axes").size()));
  if (type == "Gather") return rank(1) ? changed(*rank(1) - 1) : std::nullopt;
  if (type == "Shape" || type == "Range") return 1;
  if (type.starts_with("Reduce")) {
    const auto axes = known(1, "axes");
    if (integer("keepdims", 1) != 0) return rank(0);
    return axes ? changed(-static_cast<std::int64_t>(axes->size())) : std::optional<std::int64_t>(0);
  }
  // All others keep what they read; of several the longest counts, because sizes are stretched.
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    const bool option = i > 0 && (type == "Slice" || type == "Clip" || type == "Pad" || type == "Split" || type == "Dropout");
    if (!has(i) || option) continue;
    const auto dims = rank(i);
    if (!dims) return std::nullopt;
    longest = std::max(longest, *dims);
  }
  return longest;
}

Program Translator::translate() {
  for (const Node& node : graph_.nodes) {
    node_ = &node;
    const auto found = operators().find(node.type);
    if (found == operators().end()) refuse("is not read; export the model as a torch.export program (.pt2) instead");
    if (node.outputs.empty()) refuse("gives nothing");
    found->second(*this);
    for (const std::string& output : node.outputs) {
      if (const auto dims = rank_after(); dims && !output.empty()) graph_.ranks.emplace(output, *dims);
    }
  }
  node_ = nullptr;
  for (const std::string& output : graph_.outputs) {
    const auto found = aliases_.find(output);
    const auto* reference = found == aliases_.end() ? nullptr : std::get_if<Reference>(&found->second.value);
    if (reference == nullptr) input_error("{}: its result {} is not computed", graph_.path, output);
    program_.outputs.push_back({graph_.outputs.size() > 1 ? output : "", reference->name});
  }
  if (program_.outputs.empty()) input_error("{} gives nothing", graph_.path);
  return std::move(program_);
}

}  // namespace

Program to_program(Graph graph) {
  return Translator(std::move(graph)).translate();
}

}  // namespace holdfast::model::onnx

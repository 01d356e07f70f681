// Operators on sizes of tensors, and constants. ONNX computes sizes by tensors of integers; here they are lists of plain numbers,
// known ones or values of the program, because torch's operators take sizes so.
#include <algorithm>
#include <cstring>
#include <limits>

#include "holdfast/core/files.h"
#include "translator.h"

namespace holdfast::model::onnx {
namespace {

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

}  // namespace

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
                             {"device", {program::OwnDevice{}}}}));
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
  give(
      call("aten::full",
           {{"size", as_list(*wanted)}, {"fill_value", {*number}}, {"dtype", {value.type}}, {"device", {program::OwnDevice{}}}}));
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

}  // namespace holdfast::model::onnx

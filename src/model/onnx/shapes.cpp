// Operators that move elements: reshaping, joining, cutting, padding.
#include <algorithm>
#include <functional>

#include "translator.h"

namespace holdfast::model::onnx {

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
  program::Call part{.operation = lengths ? "aten::split_with_sizes" : "aten::chunk", .where = where()};
  part.arguments = {{"", tensor(0)}, {"", lengths ? list(*lengths) : Argument{count}}, {"", {axis}}};
  program::Result result{.is_list = true};
  for (std::int64_t i = 0; i < count; ++i) result.names.push_back(fresh());
  for (std::size_t i = 0; i < result.names.size(); ++i) give({Reference{result.names[i]}}, i);
  part.results = {result};
  program_.calls.push_back(std::move(part));
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

}  // namespace holdfast::model::onnx

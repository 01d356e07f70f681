// Lists, tuples and sizes: what a graph computes beside tensors.
#include "holdfast/core/error.h"
#include "import.h"

namespace holdfast::model::torchscript {
namespace {

using JitNode = torch::jit::Node;

Symbol size_of(at::IntArrayRef shape, std::int64_t dim) {
  if (dim < 0) dim += static_cast<std::int64_t>(shape.size());
  if (dim < 0 || dim >= static_cast<std::int64_t>(shape.size())) throw DoesNotFit("it asks for a dimension that a tensor lacks");
  if (dim == 0) return {BatchSize{}};
  return {Known{shape[static_cast<std::size_t>(dim)], /*from_shape=*/true}};
}

Sequence sizes_of(at::IntArrayRef shape) {
  Sequence sizes;
  for (std::size_t i = 0; i < shape.size(); ++i) sizes.items.push_back(size_of(shape, static_cast<std::int64_t>(i)));
  return sizes;
}

std::size_t position_in(const Sequence& sequence, std::int64_t index, const OperatorCall& call) {
  const auto length = static_cast<std::int64_t>(sequence.items.size());
  if (index < 0) index += length;
  if (index < 0 || index >= length) call.misfit("reads past the end of a list");
  return static_cast<std::size_t>(index);
}

Sequence part_of(const Sequence& sequence, const OperatorCall& call) {
  const auto length = static_cast<std::int64_t>(sequence.items.size());
  const auto limit = [&](const char* argument, std::int64_t fallback) {
    if (call.is_none(argument)) return fallback;
    const std::int64_t value = call.integer(argument);
    return std::clamp<std::int64_t>(value < 0 ? value + length : value, 0, length);
  };
  Sequence part;
  for (std::int64_t i = limit("start", 0); i < limit("end", length); i += call.integer("step")) {
    part.items.push_back(sequence.items[static_cast<std::size_t>(i)]);
  }
  return part;
}

}  // namespace

bool Importer::read_structure(const JitNode* node) {
  const std::string name = node->kind().toQualString();
  const OperatorCall call(*this, node);
  if (name == "prim::ListConstruct" || name == "prim::TupleConstruct") {
    Sequence items;
    for (const torch::jit::Value* input : node->inputs()) items.items.push_back(symbol(input));
    bind(node->output(), {items});
    return true;
  }
  if (name == "aten::__is__" || name == "aten::__isnot__") {
    // A tensor is never None; what is known altogether is left to `fold`.
    const bool tensors =
        std::holds_alternative<Tracked>(symbol(node->input(0)).is) || std::holds_alternative<Tracked>(symbol(node->input(1)).is);
    if (tensors) bind(node->output(), {Known{name == "aten::__isnot__"}});
    return tensors;
  }
  if (node->inputs().empty()) return false;

  const Symbol read = symbol(node->input(0));
  if (const auto* tracked = std::get_if<Tracked>(&read.is)) {
    const at::IntArrayRef sizes = shape(tracked->slot->node);
    if ((name == "aten::size" || name == "aten::sym_size") && node->inputs().size() == 1)
      bind(node->output(), {sizes_of(sizes)});
    else if (name == "aten::size" || name == "aten::sym_size")
      bind(node->output(), size_of(sizes, call.integer("dim")));
    else if (name == "aten::dim")
      bind(node->output(), {Known{static_cast<std::int64_t>(sizes.size()), /*from_shape=*/true}});
    else if (name == "prim::dtype")
      bind(node->output(), {Known{static_cast<std::int64_t>(options_.dtype().toScalarType())}});
    else
      return false;
    return true;
  }
  if (const auto* sequence = std::get_if<Sequence>(&read.is)) {
    if (name == "prim::ListUnpack" || name == "prim::TupleUnpack") {
      if (sequence->items.size() != node->outputs().size()) call.misfit("unpacks a list of another length");
      for (std::size_t i = 0; i < node->outputs().size(); ++i) bind(node->outputs()[i], Symbol(sequence->items[i]));
    } else if (name == "aten::len") {
      bind(node->output(), {Known{static_cast<std::int64_t>(sequence->items.size()), /*from_shape=*/true}});
    } else if (name == "aten::__getitem__" || name == "prim::TupleIndex") {
      bind(node->output(), Symbol(sequence->items[position_in(*sequence, as_integer(symbol(node->input(1)), call), call)]));
    } else if (name == "aten::slice") {
      bind(node->output(), {part_of(*sequence, call)});
    } else {
      return false;
    }
    return true;
  }
  return false;
}

}  // namespace holdfast::model::torchscript

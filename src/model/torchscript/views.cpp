// Readers of operations that move, cut and join, and of those that do nothing in evaluation.
#include <limits>

#include "holdfast/core/error.h"
#include "import.h"

namespace holdfast::model::torchscript {
namespace {

Symbol view(const OperatorCall& call, Operation operation) {
  const Tracked& base = call.tracked("self");
  return call.importer().view_of(base, call.importer().add(std::move(operation), {base.slot->node}));
}

Symbol unchanged(const OperatorCall& call) {
  return {call.tracked("self")};
}

// Its first argument is called "input", in the in-place form "self".
Symbol dropout(const OperatorCall& call) {
  return {call.tracked(call.has("input") ? "input" : "self")};
}

Symbol clone(const OperatorCall& call) {
  return call.importer().fresh(call.tensor("self"));
}

// Conversions that convert nothing.
Symbol convert(const OperatorCall& call) {
  if (call.has("dtype") && !call.is_none("dtype") &&
      call.integer("dtype") != static_cast<std::int64_t>(call.importer().options().dtype().toScalarType())) {
    call.refuse("changes the precision");
  }
  return {call.tracked("self")};
}

// One dimension's size in the shape asked for: -1 where it follows from the others.
struct WantedSizes {
  std::vector<std::int64_t> sizes;  // of a sample
  bool free = false;                // one of them is -1
};

WantedSizes wanted_sizes(const OperatorCall& call, const std::vector<Symbol>& items) {
  WantedSizes wanted;
  std::vector<std::size_t> from_shape;
  for (std::size_t i = 1; i < items.size(); ++i) {
    const auto* known = std::get_if<Known>(&items[i].is);
    if (known != nullptr && known->from_shape) from_shape.push_back(i - 1);
    wanted.sizes.push_back(as_integer(items[i], call));
    wanted.free = wanted.free || wanted.sizes.back() == -1;
  }
  // A single size that was taken from a tensor can be left open; more of them tie the network to samples of one shape.
  if (!from_shape.empty() && (wanted.free || from_shape.size() > 1)) {
    call.importer().set_depends_on_shape();
  } else if (from_shape.size() == 1) {
    wanted.sizes[from_shape[0]] = -1;
  }
  return wanted;
}

// The list of sizes, known or not.
std::vector<Symbol> size_items(const OperatorCall& call, const char* argument) {
  const Symbol& list = call.symbol(argument);
  if (const auto* sequence = std::get_if<Sequence>(&list.is)) return sequence->items;
  std::vector<Symbol> items;
  for (const std::int64_t size : call.integers(argument)) items.push_back({Known{size}});
  return items;
}

std::int64_t product(at::IntArrayRef sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result *= size;
  return result;
}

// view(B, ...) and view(-1, ...) of all of a sample's elements.
Symbol reshape(const OperatorCall& call, const char* argument) {
  const std::vector<Symbol> items = size_items(call, argument);
  if (items.size() < 2) call.refuse("takes the batch dimension away");
  const std::int64_t elements = product(call.shape("self").slice(1));
  const bool keeps_batch = std::holds_alternative<BatchSize>(items[0].is);
  if (!keeps_batch) {
    if (as_integer(items[0], call) != -1) call.refuse("fixes the number of samples");
    std::int64_t sample = 1;
    for (std::size_t i = 1; i < items.size(); ++i) sample *= as_integer(items[i], call);
    if (sample != elements) call.misfit("mixes the samples of a batch");
  }
  // Two dimensions of the right sizes can only be the flat sample, whatever the sizes are.
  if (items.size() == 2) return view(call, op::Flatten{1});
  return view(call, op::Reshape{wanted_sizes(call, items).sizes});
}

std::vector<std::int64_t> sample_sizes(at::IntArrayRef shape) {
  return shape.slice(1).vec();
}

// A sample of these sizes: flat where it is a vector, and then of whatever length.
Symbol with_sizes(const OperatorCall& call, const std::vector<std::int64_t>& sizes) {
  if (sizes.size() == 1) return view(call, op::Flatten{1});
  if (sizes != sample_sizes(call.shape("self"))) call.importer().set_depends_on_shape();
  return view(call, op::Reshape{sizes});
}

Symbol flatten(const OperatorCall& call) {
  const auto rank = static_cast<std::int64_t>(call.shape("self").size());
  const std::int64_t start = call.dimension("start_dim", "self");
  const std::int64_t end = call.dimension("end_dim", "self");
  if (end == rank - 1) return view(call, op::Flatten{start});
  std::vector<std::int64_t> sizes = sample_sizes(call.shape("self"));
  const auto first = sizes.begin() + start - 1;
  *first = product({&*first, static_cast<std::size_t>(end - start + 1)});
  sizes.erase(first + 1, first + 1 + end - start);
  return with_sizes(call, sizes);
}

Symbol squeeze(const OperatorCall& call) {
  if (!call.has("dim")) call.refuse("may take the batch dimension away");
  const std::int64_t dim = call.dimension("dim", "self");
  if (call.shape("self")[static_cast<std::size_t>(dim)] != 1) return {call.tracked("self")};
  return view(call, op::SelectIndex{.dim = dim, .index = 0});
}

Symbol unsqueeze(const OperatorCall& call) {
  std::vector<std::int64_t> sizes = sample_sizes(call.shape("self"));
  const auto rank = static_cast<std::int64_t>(call.shape("self").size());
  std::int64_t dim = call.integer("dim");
  dim = dim < 0 ? dim + rank + 1 : dim;
  if (dim < 1 || dim > rank) call.refuse("adds a dimension before the batch's");
  const bool vector = sizes.size() == 1;
  sizes.insert(sizes.begin() + dim - 1, 1);
  if (!vector) return with_sizes(call, sizes);
  sizes[dim == 1 ? 1 : 0] = -1;
  return view(call, op::Reshape{sizes});
}

Symbol permute(const OperatorCall& call, std::vector<std::int64_t> dims) {
  const auto rank = static_cast<std::int64_t>(call.shape("self").size());
  for (std::int64_t& dim : dims) dim = dim < 0 ? dim + rank : dim;
  if (dims.empty() || dims[0] != 0) call.refuse("moves the batch dimension");
  return view(call, op::Permute{dims});
}

Symbol transpose(const OperatorCall& call) {
  std::vector<std::int64_t> dims(call.shape("self").size());
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<std::int64_t>(i);
  std::swap(dims[static_cast<std::size_t>(call.dimension("dim0", "self"))],
            dims[static_cast<std::size_t>(call.dimension("dim1", "self"))]);
  return permute(call, dims);
}

Symbol select(const OperatorCall& call) {
  return view(call, op::SelectIndex{.dim = call.dimension("dim", "self"), .index = call.integer("index")});
}

// op::Slice writes "to the end" as -1; ends counted from the back become plain positions.
Symbol slice(const OperatorCall& call) {
  const auto rank = static_cast<std::int64_t>(call.shape("self").size());
  const std::int64_t dim = call.integer("dim") < 0 ? call.integer("dim") + rank : call.integer("dim");
  std::int64_t start = call.is_none("start") ? 0 : call.integer("start");
  std::int64_t stop = call.is_none("end") ? std::numeric_limits<std::int64_t>::max() : call.integer("end");
  const bool whole = start == 0 && stop == std::numeric_limits<std::int64_t>::max() && call.integer("step") == 1;
  if (whole) return {call.tracked("self")};
  if (dim < 1 || dim >= rank) call.refuse("takes some samples of a batch");
  const std::int64_t size = call.shape("self")[static_cast<std::size_t>(dim)];
  if (start < 0 || (stop < 0)) call.importer().set_depends_on_shape();
  start = start < 0 ? std::max<std::int64_t>(start + size, 0) : start;
  stop = stop < 0 ? std::max<std::int64_t>(stop + size, 0) : stop;
  if (stop == std::numeric_limits<std::int64_t>::max()) stop = -1;
  return view(call, op::Slice{.dim = dim, .start = start, .stop = stop, .step = call.integer("step")});
}

Symbol chunk(const OperatorCall& call) {
  const std::int64_t dim = call.dimension("dim", "self");
  const std::int64_t size = call.shape("self")[static_cast<std::size_t>(dim)];
  const std::int64_t chunks = call.integer("chunks");
  const std::int64_t length = (size + chunks - 1) / chunks;
  Sequence parts;
  for (std::int64_t start = 0; start < size; start += length) {
    parts.items.push_back(view(call, op::Slice{.dim = dim, .start = start, .stop = std::min(start + length, size)}));
  }
  return {parts};
}

Symbol unbind(const OperatorCall& call) {
  const std::int64_t dim = call.dimension("dim", "self");
  Sequence parts;
  for (std::int64_t i = 0; i < call.shape("self")[static_cast<std::size_t>(dim)]; ++i) {
    parts.items.push_back(view(call, op::SelectIndex{.dim = dim, .index = i}));
  }
  return {parts};
}

Symbol cat(const OperatorCall& call) {
  const auto* list = std::get_if<Sequence>(&call.symbol("tensors").is);
  if (list == nullptr || list->items.empty()) call.refuse("joins a list that is not known");
  std::vector<int> parts;
  for (const Symbol& item : list->items) {
    const auto* tracked = std::get_if<Tracked>(&item.is);
    if (tracked == nullptr) call.refuse("joins a constant");
    parts.push_back(tracked->slot->node);
  }
  const auto rank = static_cast<std::int64_t>(call.importer().shape(parts[0]).size());
  const std::int64_t dim = call.integer("dim") < 0 ? call.integer("dim") + rank : call.integer("dim");
  if (dim == 0) call.refuse("mixes the samples of a batch");
  return call.add(op::Concat{dim}, parts);
}

Symbol pad(const OperatorCall& call) {
  if (call.has("mode") && call.text("mode") != "constant") call.refuse("pads by repeating");
  op::Pad pad{.amounts = call.integers("pad"), .value = call.is_none("value") ? 0 : call.real("value")};
  if (pad.amounts.size() >= 2 * call.shape("self").size()) call.refuse("pads the batch dimension");
  return call.add(pad, {call.tensor("self")});
}

Symbol flip(const OperatorCall& call) {
  if (call.integers("dims") != std::vector<std::int64_t>{1}) call.refuse("turns more than the channels round");
  return call.add(op::ReverseChannels{}, {call.tensor("self")});
}

}  // namespace

const ReaderTable& shape_readers() {
  static const ReaderTable table = {
      {"aten::contiguous", unchanged},
      {"aten::alias", unchanged},
      {"aten::dropout", dropout},
      {"aten::feature_dropout", dropout},
      {"aten::alpha_dropout", dropout},
      {"aten::feature_alpha_dropout", dropout},
      {"aten::to", convert},
      {"aten::type_as", convert},
      {"aten::clone", clone},
      {"aten::view", [](const OperatorCall& call) { return reshape(call, "size"); }},
      {"aten::reshape", [](const OperatorCall& call) { return reshape(call, "shape"); }},
      {"aten::flatten", flatten},
      {"aten::squeeze", squeeze},
      {"aten::unsqueeze", unsqueeze},
      {"aten::permute", [](const OperatorCall& call) { return permute(call, call.integers("dims")); }},
      {"aten::transpose", transpose},
      {"aten::select", select},
      {"aten::slice", slice},
      {"aten::chunk", chunk},
      {"aten::unbind", unbind},
      {"aten::cat", cat},
      {"aten::concat", cat},
      {"aten::pad", pad},
      {"aten::constant_pad_nd", pad},
      {"aten::flip", flip},
  };
  return table;
}

OperationReader find_reader(const std::string& name) {
  for (const ReaderTable* table : {&layer_readers(), &elementwise_readers(), &shape_readers()}) {
    if (const auto found = table->find(name); found != table->end()) return found->second;
  }
  return nullptr;
}

}  // namespace holdfast::model::torchscript

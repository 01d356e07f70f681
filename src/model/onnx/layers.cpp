// Layers with weights, and pooling.
#include <algorithm>
#include <limits>

#include "translator.h"

namespace holdfast::model::onnx {

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

// The slope is one number, or one for each channel.
void Translator::prelu() {
  const RawArray* slope = constant(1);
  if (slope == nullptr) refuse("has slopes that are not constant");
  RawArray flat = *slope;
  flat.shape = {flat.count()};
  give(call("aten::prelu", {tensor(0), make_constant(std::move(flat))}));
}

}  // namespace holdfast::model::onnx

#include "read.h"

#include <cstring>
#include <limits>

#include <onnx/onnx_pb.h>

#include "holdfast/core/error.h"
#include "node.h"

namespace holdfast::model::onnx {
namespace {

using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::TensorProto;
using ::onnx::ValueInfoProto;

constexpr std::int64_t kOldestOpset = 7;

ElementType element_type(int type, const std::string& where) {
  switch (type) {
    case TensorProto::FLOAT:
      return ElementType::kFloat32;
    case TensorProto::UINT8:
      return ElementType::kUint8;
    case TensorProto::INT8:
      return ElementType::kInt8;
    case TensorProto::UINT16:
      return ElementType::kUint16;
    case TensorProto::INT16:
      return ElementType::kInt16;
    case TensorProto::INT32:
      return ElementType::kInt32;
    case TensorProto::INT64:
      return ElementType::kInt64;
    case TensorProto::BOOL:
      return ElementType::kBool;
    case TensorProto::FLOAT16:
      return ElementType::kFloat16;
    case TensorProto::DOUBLE:
      return ElementType::kFloat64;
    case TensorProto::UINT32:
      return ElementType::kUint32;
    case TensorProto::UINT64:
      return ElementType::kUint64;
    case TensorProto::BFLOAT16:
      return ElementType::kBfloat16;
    default:
      input_error("{}: elements of ONNX's type {} are not read", where, type);
  }
}

// Elements of a repeated field, one by one, in the width that the array has.
template <class Element, class Field>
void copy_elements(const Field& field, RawArray& array) {
  for (int i = 0; i < field.size(); ++i) {
    const auto element = static_cast<Element>(field.Get(i));
    std::memcpy(array.bytes.data() + static_cast<std::size_t>(i) * sizeof(Element), &element, sizeof(Element));
  }
}

void copy_typed(const TensorProto& tensor, RawArray& array, const std::string& where) {
  const auto expect = [&](int found) {
    if (found != array.count()) input_error("{} has {} elements, its shape {}", where, found, array.count());
  };
  switch (array.type) {
    case ElementType::kFloat32:
      expect(tensor.float_data_size());
      return copy_elements<float>(tensor.float_data(), array);
    case ElementType::kFloat64:
      expect(tensor.double_data_size());
      return copy_elements<double>(tensor.double_data(), array);
    case ElementType::kInt64:
      expect(tensor.int64_data_size());
      return copy_elements<std::int64_t>(tensor.int64_data(), array);
    case ElementType::kUint32:
    case ElementType::kUint64:
      expect(tensor.uint64_data_size());
      if (array.type == ElementType::kUint64) return copy_elements<std::uint64_t>(tensor.uint64_data(), array);
      return copy_elements<std::uint32_t>(tensor.uint64_data(), array);
    default:
      break;
  }
  expect(tensor.int32_data_size());  // all narrower ones, halves as their bits
  if (size_of(array.type) == 4) return copy_elements<std::int32_t>(tensor.int32_data(), array);
  if (size_of(array.type) == 2) return copy_elements<std::uint16_t>(tensor.int32_data(), array);
  copy_elements<std::uint8_t>(tensor.int32_data(), array);
}

RawArray array_of(const TensorProto& tensor, const std::string& path, std::size_t file_size) {
  const std::string where = path + ": " + tensor.name();
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    input_error("{}: its weights lie in another file ({}); save them inside: torch.onnx.export(..., external_data=False)", path,
                tensor.name());
  }
  RawArray array{element_type(tensor.data_type(), where), {tensor.dims().begin(), tensor.dims().end()}, {}};
  // Numbers that are written one by one take a byte each at least, in the file, and eight here at most.
  array.bytes.resize(checked_bytes(array.shape, array.type, file_size * 8, where));
  if (!tensor.has_raw_data()) {
    copy_typed(tensor, array, where);
  } else {
    if (tensor.raw_data().size() != array.bytes.size())
      input_error("{} has {} bytes, its shape {}", where, tensor.raw_data().size(), array.bytes.size());
    std::memcpy(array.bytes.data(), tensor.raw_data().data(), array.bytes.size());
  }
  return array;
}

Attribute attribute_of(const AttributeProto& attribute, const std::string& path, std::size_t file_size) {
  switch (attribute.type()) {
    case AttributeProto::INT:
      return attribute.i();
    case AttributeProto::FLOAT:
      return static_cast<double>(attribute.f());
    case AttributeProto::STRING:
      return attribute.s();
    case AttributeProto::INTS:
      return std::vector<std::int64_t>(attribute.ints().begin(), attribute.ints().end());
    case AttributeProto::FLOATS:
      return std::vector<double>(attribute.floats().begin(), attribute.floats().end());
    case AttributeProto::STRINGS:
      return std::vector<std::string>(attribute.strings().begin(), attribute.strings().end());
    case AttributeProto::TENSOR:
      return array_of(attribute.t(), path, file_size);
    default:
      input_error("{}: the attribute {} holds a graph or the like, which is not read", path, attribute.name());
  }
}

program::Input input_of(const ValueInfoProto& value, const std::string& path) {
  const auto& type = value.type().tensor_type();
  program::Input input{.name = value.name(), .type = element_type(type.elem_type(), path + ": " + value.name())};
  for (const auto& size : type.shape().dim()) {
    const bool fixed = size.has_dim_value() && size.dim_value() > 0;
    input.sizes.push_back(fixed ? std::optional(size.dim_value()) : std::nullopt);
  }
  return input;
}

Graph graph_of(const ModelProto& model, const std::string& path, std::size_t file_size) {
  Graph graph{.path = path};
  for (const auto& opset : model.opset_import()) {
    if (opset.domain().empty() || opset.domain() == "ai.onnx") graph.opset = opset.version();
  }
  if (graph.opset < kOldestOpset) {
    input_error("{} uses opset {} of ONNX; {} and later ones are read: convert it with onnx.version_converter", path, graph.opset,
                kOldestOpset);
  }
  const GraphProto& proto = model.graph();
  if (proto.sparse_initializer_size() > 0) input_error("{}: sparse weights are not read", path);
  for (const TensorProto& tensor : proto.initializer()) {
    if (!graph.constants.emplace(tensor.name(), array_of(tensor, path, file_size)).second)
      input_error("{}: two weights are called {}", path, tensor.name());
  }
  const auto keep_rank = [&](const ValueInfoProto& value) {
    if (value.type().tensor_type().has_shape()) graph.ranks[value.name()] = value.type().tensor_type().shape().dim_size();
  };
  for (const ValueInfoProto& value : proto.value_info()) keep_rank(value);
  for (const ValueInfoProto& value : proto.input()) {
    keep_rank(value);
    if (!graph.constants.contains(value.name())) graph.inputs.push_back(input_of(value, path));
  }
  for (const ValueInfoProto& value : proto.output()) graph.outputs.push_back(value.name());
  for (const auto& node : proto.node()) {
    if (!node.domain().empty() && node.domain() != "ai.onnx") {
      input_error("{}: operator {} of {} is not read; only those of ONNX itself are", path, node.op_type(), node.domain());
    }
    Node read{.type = node.op_type(),
              .name = node.name(),
              .inputs = {node.input().begin(), node.input().end()},
              .outputs = {node.output().begin(), node.output().end()}};
    for (const AttributeProto& attribute : node.attribute())
      read.attributes[attribute.name()] = attribute_of(attribute, path, file_size);
    graph.nodes.push_back(std::move(read));
  }
  return graph;
}

}  // namespace

program::Program read_program(const Bytes& bytes, const std::string& path) {
  ModelProto model;
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    input_error("{} has more than 2 GiB, which a file of ONNX cannot have", path);
  }
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !model.has_graph())
    input_error("{} is not an ONNX file, or is damaged", path);
  return to_program(graph_of(model, path, bytes.size()));
}

}  // namespace holdfast::model::onnx

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>

#include "holdfast/core/error.h"
#include "refuse.h"
#include "script.h"

namespace holdfast::model::torchscript {
namespace operators {

using torch::jit::Function;
using torch::jit::Graph;
using torch::jit::Node;

constexpr std::uint64_t kMostNodes = 10'000'000;  // of a method with everything that it calls written out

// Of aten, all but these: files, texts on the standard output, and forms that leave out the check of indices and sizes that
// keeps a kernel inside its tensors.
constexpr std::array<std::string_view, 22> kRefusedAten{"from_file",
                                                        "save",
                                                        "load",
                                                        "_print",
                                                        "set_",
                                                        "set_data",
                                                        "_unsafe_index",
                                                        "_unsafe_index_put",
                                                        "_unsafe_masked_index",
                                                        "_unsafe_masked_index_put_accumulate",
                                                        "_sparse_coo_tensor_unsafe",
                                                        "_sparse_compressed_tensor_unsafe",
                                                        "_sparse_csr_tensor_unsafe",
                                                        "_sparse_csc_tensor_unsafe",
                                                        "_sparse_bsr_tensor_unsafe",
                                                        "_sparse_bsc_tensor_unsafe",
                                                        "_sparse_coo_tensor_with_dims_and_tensors",
                                                        "_nested_view_from_buffer",
                                                        "_nested_view_from_jagged",
                                                        "_embedding_bag_forward_only",
                                                        "_reshape_alias",
                                                        "_test_string_default"};

// Of prim, only these: values and their types, containers, control flow, calls.
constexpr std::array<std::string_view, 79> kAllowedPrim{"Constant",
                                                        "GetAttr",
                                                        "SetAttr",
                                                        "CallMethod",
                                                        "CallFunction",
                                                        "If",
                                                        "Loop",
                                                        "ListConstruct",
                                                        "ListUnpack",
                                                        "TupleConstruct",
                                                        "TupleUnpack",
                                                        "TupleIndex",
                                                        "TupleSlice",
                                                        "DictConstruct",
                                                        "CreateObject",
                                                        "RaiseException",
                                                        "Uninitialized",
                                                        "unchecked_cast",
                                                        "unchecked_unwrap_optional",
                                                        "NumToTensor",
                                                        "ImplicitTensorToNum",
                                                        "annotate",
                                                        "isinstance",
                                                        "Print",
                                                        "fork",
                                                        "awaitable",
                                                        "awaitable_nowait",
                                                        "awaitable_wait",
                                                        "Closure",
                                                        "Enter",
                                                        "Exit",
                                                        "ConstantChunk",
                                                        "ModuleContainerIndex",
                                                        "StringIndex",
                                                        "EnumName",
                                                        "EnumValue",
                                                        "hasattr",
                                                        "device",
                                                        "dtype",
                                                        "layout",
                                                        "shape",
                                                        "min",
                                                        "max",
                                                        "abs",
                                                        "data",
                                                        "grad",
                                                        "requires_grad",
                                                        "itemsize",
                                                        "nbytes",
                                                        "name",
                                                        "type",
                                                        "index",
                                                        "tolist",
                                                        "rangelist",
                                                        "range",
                                                        "is_cpu",
                                                        "is_cuda",
                                                        "is_ipu",
                                                        "is_maia",
                                                        "is_meta",
                                                        "is_mkldnn",
                                                        "is_mps",
                                                        "is_mtia",
                                                        "is_nested",
                                                        "is_quantized",
                                                        "is_sparse",
                                                        "is_sparse_csr",
                                                        "is_vulkan",
                                                        "is_xla",
                                                        "is_xpu",
                                                        "Load",
                                                        "Store",
                                                        "Guard",
                                                        "profile",
                                                        "unchecked_unwrap",
                                                        "TypeCheck",
                                                        "RequiresGradCheck",
                                                        "IfThenElse",
                                                        "VarStack"};

// Classes of torch itself, with methods that are no TorchScript.
bool is_class_of_torch(const c10::Type& type) {
  if (const auto* object = type.castRaw<c10::ClassType>())
    return object->name() && object->name()->qualifiedName().starts_with("__torch__.torch.classes.");
  const auto parts = type.containedTypes();
  return type.kind() == c10::TypeKind::CapsuleType || type.kind() == c10::TypeKind::RRefType ||
         (type.kind() != c10::TypeKind::InterfaceType &&
          std::any_of(parts.begin(), parts.end(), [](const auto& part) { return is_class_of_torch(*part); }));
}

std::string at_place(const Node* node) {
  const std::string place = place_of(node);
  return place.empty() ? "" : " at " + place;
}

class Check {
 public:
  explicit Check(const std::string& path) : path_(path) {}

  // How many nodes the function has with everything that it calls written out.
  std::uint64_t check(Function& function) {
    const auto [found, is_new] = nodes_.try_emplace(&function, 0);
    if (!is_new) return found->second;
    if (!function.isGraphFunction()) {
      input_error("{} calls {}, which is no TorchScript; a model here only computes", path_, function.qualname().qualifiedName());
    }
    const std::uint64_t nodes = check(*torch::jit::toGraphFunction(function).graph());
    if (nodes > kMostNodes) {
      input_error("{}: {} has more than {} operations with all that it calls", path_, function.qualname().qualifiedName(),
                  kMostNodes);
    }
    nodes_[&function] = nodes;
    return nodes;
  }

 private:
  std::uint64_t check(Graph& graph) {
    std::uint64_t nodes = 0;
    visit_nodes(graph.block(), [&](Node* node) {
      refuse_operator(node);
      nodes += 1 + nodes_called(node);
      for (const c10::Symbol attribute : node->attributeNames()) {
        if (node->kindOf(attribute) == torch::jit::AttributeKind::g) nodes += check(*node->g(attribute));
      }
    });
    return nodes;
  }

  void refuse_operator(const Node* node) const {
    const std::string name = node->kind().toQualString();
    if (!only_computes(name))
      input_error("{} uses {}{}, which does not only compute; such a model is not run", path_, name, at_place(node));
    for (const torch::jit::Value* value : node->outputs()) {
      if (is_class_of_torch(*value->type())) {
        input_error("{} uses an object of {}{}, which does not only compute; such a model is not run", path_,
                    value->type()->annotation_str(), at_place(node));
      }
    }
  }

  std::uint64_t nodes_called(const Node* node) {
    if (node->kind() == torch::jit::prim::CallFunction) {
      const auto type = node->input(0)->type()->cast<c10::FunctionType>();
      return type ? check(*type->function()) : 0;
    }
    if (node->kind() != torch::jit::prim::CallMethod) return 0;
    const auto type = node->input(0)->type()->cast<c10::ClassType>();
    Function* method = type ? type->findMethod(node->s(torch::jit::attr::name)) : nullptr;
    return method == nullptr ? 0 : check(*method);
  }

  const std::string& path_;
  std::unordered_map<const Function*, std::uint64_t> nodes_;
};

// Torch reads attributes by their place in the class, so that an object of another class would be read past its end.
bool is_of_type(const at::IValue& value, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return value.isTensor();
    case c10::TypeKind::IntType:
      return value.isInt();
    case c10::TypeKind::FloatType:
      return value.isDouble();
    case c10::TypeKind::BoolType:
      return value.isBool();
    case c10::TypeKind::StringType:
      return value.isString();
    case c10::TypeKind::ClassType:
      return value.isObject() && *value.toObjectRef().type() == type;
    case c10::TypeKind::ListType: {
      if (!value.isList()) return false;
      const auto items = value.toListRef();
      const c10::Type& inner = *type.containedType(0);
      return std::all_of(items.begin(), items.end(), [&](const at::IValue& item) { return is_of_type(item, inner); });
    }
    case c10::TypeKind::DictType:
      if (!value.isGenericDict()) return false;
      for (const auto& entry : value.toGenericDict()) {
        if (!is_of_type(entry.key(), *type.containedType(0)) || !is_of_type(entry.value(), *type.containedType(1))) return false;
      }
      return true;
    case c10::TypeKind::TupleType: {
      if (!value.isTuple() || value.toTupleRef().elements().size() != type.containedTypeSize()) return false;
      for (std::size_t i = 0; i < type.containedTypeSize(); ++i) {
        if (!is_of_type(value.toTupleRef().elements()[i], *type.containedType(i))) return false;
      }
      return true;
    }
    case c10::TypeKind::OptionalType:
      return value.isNone() || is_of_type(value, *type.containedType(0));
    default:
      return true;  // such as Any and interfaces: torch looks at the value itself
  }
}

void check_object(const c10::ivalue::Object& object, const std::string& path, int depth) {
  const auto type = object.type();
  if (depth > 200) input_error("{}: its objects are nested more than 200 deep", path);
  for (std::size_t i = 0; i < type->numAttributes(); ++i) {
    const at::IValue& value = object.getSlot(i);
    if (!is_of_type(value, *type->getAttribute(i))) {
      input_error("{}: attribute {} of {} should be a {} and is a {}", path, type->getAttributeName(i), type->name()->name(),
                  type->getAttribute(i)->annotation_str(), value.tagKind());
    }
    if (value.isObject()) check_object(value.toObjectRef(), path, depth + 1);
  }
}

}  // namespace operators

bool only_computes(const std::string& operation) {
  const std::size_t colons = operation.find("::");
  if (colons == std::string::npos) return false;
  const std::string_view space = std::string_view(operation).substr(0, colons),
                         name = std::string_view(operation).substr(colons + 2);
  const auto contains = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (space == "aten") return !contains(operators::kRefusedAten);
  return space == "prim" && contains(operators::kAllowedPrim);
}

void refuse_operators_that_do_not_compute(const torch::jit::Module& module, const std::string& path) {
  operators::Check check(path);
  for (torch::jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) check.check(*function);
  for (const torch::jit::Module& part : module.modules()) {
    for (torch::jit::Function* hook : part.type()->getForwardHooks()) check.check(*hook);
    for (torch::jit::Function* hook : part.type()->getForwardPreHooks()) check.check(*hook);
  }
  operators::check_object(*module._ivalue(), path, 0);
}

}  // namespace holdfast::model::torchscript

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

// Of aten's names with an underscore in front, only these: exported programs and the sources of torch.nn have them. The others
// take indices, sizes and memory from a caller who has checked them, and believe what they are given.
constexpr std::array<std::string_view, 107> kAllowedInternal{"_adaptive_avg_pool2d",
                                                             "_adaptive_avg_pool3d",
                                                             "_addmm_activation",
                                                             "_aminmax",
                                                             "_assert_async",
                                                             "_assert_int_or_pair",
                                                             "_assert_scalar",
                                                             "_assert_tensor_metadata",
                                                             "_autocast_to_full_precision",
                                                             "_autocast_to_reduced_precision",
                                                             "_batch_norm_impl_index",
                                                             "_batch_norm_no_update",
                                                             "_batch_norm_with_update",
                                                             "_batch_norm_with_update_functional",
                                                             "_cast_Byte",
                                                             "_cast_Char",
                                                             "_cast_Double",
                                                             "_cast_Float",
                                                             "_cast_Half",
                                                             "_cast_Int",
                                                             "_cast_Long",
                                                             "_cast_Short",
                                                             "_cdist_forward",
                                                             "_conj",
                                                             "_conj_copy",
                                                             "_conj_physical",
                                                             "_convolution",
                                                             "_convolution_mode",
                                                             "_dim_arange",
                                                             "_embedding_bag",
                                                             "_euclidean_dist",
                                                             "_fft_c2c",
                                                             "_fft_c2r",
                                                             "_fft_r2c",
                                                             "_functional_assert_async",
                                                             "_functional_assert_scalar",
                                                             "_functional_sym_constrain_range",
                                                             "_functional_sym_constrain_range_for_size",
                                                             "_fused_rms_norm",
                                                             "_fused_sdp_choice",
                                                             "_get_tracing_state",
                                                             "_grad_sum_to_size",
                                                             "_infer_size",
                                                             "_is_all_true",
                                                             "_is_any_true",
                                                             "_lazy_clone",
                                                             "_linalg_det",
                                                             "_linalg_eigh",
                                                             "_linalg_eigvals",
                                                             "_linalg_slogdet",
                                                             "_linalg_solve_ex",
                                                             "_linalg_svd",
                                                             "_list_to_tensor",
                                                             "_local_scalar_dense",
                                                             "_log_softmax",
                                                             "_logcumsumexp",
                                                             "_masked_softmax",
                                                             "_native_batch_norm_legit",
                                                             "_native_batch_norm_legit_functional",
                                                             "_native_batch_norm_legit_no_training",
                                                             "_native_multi_head_attention",
                                                             "_neg_view",
                                                             "_nested_tensor_from_mask",
                                                             "_nested_tensor_from_mask_left_aligned",
                                                             "_nnpack_available",
                                                             "_no_grad_embedding_renorm_",
                                                             "_no_grad_fill_",
                                                             "_no_grad_normal_",
                                                             "_no_grad_uniform_",
                                                             "_no_grad_zero_",
                                                             "_pack_padded_sequence",
                                                             "_pad_circular",
                                                             "_pad_enum",
                                                             "_pad_packed_sequence",
                                                             "_pdist_forward",
                                                             "_prelu_kernel",
                                                             "_reshape_copy",
                                                             "_reshape_from_tensor",
                                                             "_safe_softmax",
                                                             "_scaled_dot_product_attention_math",
                                                             "_scaled_dot_product_efficient_attention",
                                                             "_scaled_dot_product_flash_attention",
                                                             "_scaled_dot_product_flash_attention_for_cpu",
                                                             "_set_item",
                                                             "_shape_as_tensor",
                                                             "_size_if_not_equal",
                                                             "_slow_conv2d_forward",
                                                             "_softmax",
                                                             "_stack",
                                                             "_standard_gamma",
                                                             "_tensor_to_list",
                                                             "_to_copy",
                                                             "_to_cpu",
                                                             "_transformer_encoder_layer_fwd",
                                                             "_trilinear",
                                                             "_unique",
                                                             "_unique2",
                                                             "_unsafe_view",
                                                             "_unwrap_optional",
                                                             "_upsample_bicubic2d_aa",
                                                             "_upsample_bilinear2d_aa",
                                                             "_upsample_lanczos2d_aa",
                                                             "_upsample_nearest_exact1d",
                                                             "_upsample_nearest_exact2d",
                                                             "_upsample_nearest_exact3d",
                                                             "_weight_norm",
                                                             "_weight_norm_interface"};

// Of its other names all but these: files, the memory of other tensors, and what does not hold indices against sizes.
constexpr std::array<std::string_view, 20> kRefusedAten{"from_file",
                                                        "save",
                                                        "load",
                                                        "set",
                                                        "set_",
                                                        "set_data",
                                                        "segment_reduce",
                                                        "ctc_loss",
                                                        "indices",
                                                        "crow_indices",
                                                        "col_indices",
                                                        "ccol_indices",
                                                        "row_indices",
                                                        "indices_copy",
                                                        "crow_indices_copy",
                                                        "col_indices_copy",
                                                        "ccol_indices_copy",
                                                        "row_indices_copy",
                                                        "hspmm",
                                                        "sspaddmm"};

// And these beginnings: the indices of a sparse tensor can be changed after they were checked; packed weights are memory.
constexpr std::array<std::string_view, 5> kRefusedFamilies{"sparse_", "to_sparse", "fbgemm_", "mkldnn_", "quantized_"};

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
  if (space == "aten") {
    const bool is_dunder = name.starts_with("__");  // Python's operators
    if (name.starts_with('_') && !is_dunder) return contains(operators::kAllowedInternal);
    const bool is_of_refused_family = std::any_of(operators::kRefusedFamilies.begin(), operators::kRefusedFamilies.end(),
                                                  [&](std::string_view family) { return name.starts_with(family); });
    // A gradient's own operators are for autograd, which knows its indices.
    return !contains(operators::kRefusedAten) && !is_of_refused_family && name.find("backward") == std::string_view::npos;
  }
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

// Attention and whole layers of transformers that torch computes in one kernel.
//
// In evaluation mode nn.MultiheadAttention and nn.TransformerEncoderLayer take a fast path: one kernel without any derivative.
// Where a file holds that kernel, its formula is put in its place. The kernel of scaled_dot_product_attention has one derivative;
// its math kernel has two.
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/ir/ir.h>

#include "script.h"

namespace holdfast::model::torchscript {
namespace attention {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// The arguments are those of the kernels. A mask says what is left out: mask_type 0 for pairs [L, L], 1 for keys [B, L], 2 for
// [B, heads, L, L]. The math kernel adds its mask, so one of booleans (type 11) becomes one of numbers.
constexpr const char* kFormulas = R"(
def _native_multi_head_attention(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor,
                                 qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, mask: Optional[Tensor],
                                 need_weights: bool, average_attn_weights: bool, mask_type: Optional[int]):
    weights = torch.chunk(qkv_weight, 3, 0)
    biases = torch.chunk(qkv_bias, 3, 0)
    q = torch.linear(query, weights[0], biases[0]).unflatten(-1, [num_head, -1]).transpose(1, 2)
    k = torch.linear(key, weights[1], biases[1]).unflatten(-1, [num_head, -1]).transpose(1, 2)
    v = torch.linear(value, weights[2], biases[2]).unflatten(-1, [num_head, -1]).transpose(1, 2)
    scores = torch.matmul(q, k.transpose(-2, -1)) / (float(embed_dim // num_head) ** 0.5)
    allowed: Optional[Tensor] = None
    if mask is not None:
        kept = torch.eq(mask, 0)
        if mask_type is not None:
            if mask_type == 1:
                kept = kept.unsqueeze(1).unsqueeze(1)
        allowed = kept
        scores = scores.masked_fill(torch.logical_not(kept), float("-inf"))
    maps = torch.softmax(scores, -1)
    if average_attn_weights:
        maps = maps.mean(1)
    mixed = torch.scaled_dot_product_attention(q, k, v, allowed, 0.0, False)
    return torch.linear(mixed.transpose(1, 2).flatten(2), proj_weight, proj_bias), maps

def _transformer_encoder_layer_fwd(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor,
                                   proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float,
                                   norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor,
                                   ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor,
                                   mask: Optional[Tensor], mask_type: Optional[int]) -> Tensor:
    x = src
    y = x
    if norm_first:
        y = torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
    y, _ = torch._native_multi_head_attention(y, y, y, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask,
                                              False, True, mask_type)
    x = x + y
    if norm_first:
        y = torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)
    else:
        x = torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
        y = x
    y = torch.linear(y, ffn_weight_1, ffn_bias_1)
    if use_gelu:
        y = torch.gelu(y)
    else:
        y = torch.relu(y)
    x = x + torch.linear(y, ffn_weight_2, ffn_bias_2)
    if not norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)
    return x

def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float,
                                 is_causal: bool, scale: Optional[float], enable_gqa: bool) -> Tensor:
    mask = attn_mask
    if mask is not None:
        if mask.dtype == 11:
            mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(torch.logical_not(mask), float("-inf"))
    mixed, _ = torch._scaled_dot_product_attention_math(query, key, value, mask, dropout_p, is_causal, None, scale=scale,
                                                        enable_gqa=enable_gqa)
    return mixed
)";

std::shared_ptr<Graph> formula(const char* name) {
  static const auto unit = [] {
    auto made = std::make_shared<torch::jit::CompilationUnit>();
    made->define(std::nullopt, kFormulas, torch::jit::nativeResolver(), nullptr);
    return made;
  }();
  return toGraphFunction(unit->get_function(name)).graph();
}

// Puts the formula's graph in the place of every node of that name.
bool open(Graph& graph, const char* name) {
  bool edited = false;
  visit_nodes(graph.block(), [&](Node* node) {
    if (node->kind() != c10::Symbol::aten(name)) return;
    const torch::jit::WithInsertPoint before(node);
    std::vector<Value*> results = torch::jit::insertGraph(graph, *formula(name), node->inputs());
    if (node->outputs().size() > 1) {
      const auto unpacked = graph.insertNode(graph.createTupleUnpack(results.at(0)))->outputs();
      results.assign(unpacked.begin(), unpacked.end());
    }
    for (std::size_t i = 0; i < results.size(); ++i) node->outputs()[i]->replaceAllUsesWith(results[i]);
    node->destroy();
    edited = true;
  });
  return edited;
}

}  // namespace attention

bool open_fast_paths(torch::jit::Graph& graph) {
  const bool layers = attention::open(graph, "_transformer_encoder_layer_fwd");
  return attention::open(graph, "_native_multi_head_attention") || layers;
}

bool choose_math_attention(torch::jit::Graph& graph) {
  return attention::open(graph, "scaled_dot_product_attention");
}

}  // namespace holdfast::model::torchscript

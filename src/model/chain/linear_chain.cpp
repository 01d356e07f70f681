#include "holdfast/model/linear_chain.h"

#include <algorithm>
#include <string>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "loops.h"

namespace holdfast::model {
namespace chain {

// Weights that stay in a core's cache beside the rows of a block; with more, large products of matrices are faster.
constexpr std::int64_t kMostWeights = 1 << 17;

// What torch was told to use counts here too. Null: no fused operations.
const Loops* choose_loops() {
#if defined(__x86_64__)
  const std::string set = at::get_cpu_capability();
  if (set == "AVX512" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    return avx512_loops();
  if ((set == "AVX512" || set == "AVX2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_loops();
#endif
  return nullptr;
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
}

// Reads the nodes of a network one after the other.
class Reader {
 public:
  Reader(const Rule& rule, const at::Tensor& inputs)
      : betas_(rule.softplus_beta), inputs_(inputs), dim_(inputs.dim()), width_(inputs.numel() / inputs.size(0)) {}

  bool read(const Node& node) {
    const auto* linear = std::get_if<op::Linear>(&node.operation);
    if (linear != nullptr) return read(*linear);
    const auto* activation = std::get_if<op::Activation>(&node.operation);
    if (activation != nullptr) return read(*activation);
    if (const auto* affine = std::get_if<op::Affine>(&node.operation)) return read(*affine);
    if (const auto* flatten = std::get_if<op::Flatten>(&node.operation)) {
      dim_ = std::min<std::int64_t>(dim_, 2);
      return flatten->start == 1;
    }
    return std::holds_alternative<op::Dropout>(node.operation);
  }

  // Whether the last layer is a linear one, and the betas were of this network: one for all, or one for each activation.
  bool is_whole() const {
    return !parts.layers.empty() && parts.layers.back().bend == Bend::kNone &&
           (betas_.size() <= 1 || betas_.size() == activations_);
  }

  ChainParts parts;

 private:
  using Layer = ChainParts::Layer;

  bool fits(const at::Tensor& weights) const {
    return weights.device() == inputs_.device() && weights.scalar_type() == inputs_.scalar_type() && weights.is_contiguous();
  }

  bool read(const op::Linear& linear) {
    if (dim_ != 2 || !fits(linear.weight) || linear.weight.dim() != 2 || linear.weight.size(1) != width_) return false;
    if (linear.bias.defined() && !fits(linear.bias)) return false;
    if (!parts.layers.empty() && parts.layers.back().bend == Bend::kNone) {  // two in a row: the head of one logit
      parts.layers.back().bend = Bend::kLeaky;
      parts.layers.back().slope = 1;
    }
    width_ = linear.weight.size(0);
    parts.layers.push_back({.weight = linear.weight, .bias = linear.bias});
    return true;
  }

  bool read(const op::Activation& activation) {
    using Kind = op::Activation::Kind;
    if (parts.layers.empty() || parts.layers.back().bend != Bend::kNone) return false;
    Layer& layer = parts.layers.back();
    const double beta = betas_.empty() ? 0 : betas_.size() == 1 ? betas_.front() : beta_at(activations_);
    ++activations_;
    if (activation.kind == Kind::kSoftplus) {
      layer.bend = Bend::kSoftplus;
      layer.beta = activation.parameter;
      return true;
    }
    if (activation.kind != Kind::kRelu && activation.kind != Kind::kLeakyRelu) return false;
    layer.slope = activation.kind == Kind::kRelu ? 0 : activation.parameter;
    layer.bend = betas_.empty() ? Bend::kLeaky : Bend::kSoftplus;
    layer.beta = beta;
    return betas_.empty() || beta > 0;
  }

  double beta_at(std::size_t activation) const { return activation < betas_.size() ? betas_[activation] : 0; }

  bool read(const op::Affine& affine) {
    if (!parts.layers.empty() || parts.scale.defined() || dim_ != 2) return false;
    parts.scale = affine.scale;
    parts.shift = affine.shift;
    return is_for_inputs(affine.scale) && is_for_inputs(affine.shift);
  }
  bool is_for_inputs(const at::Tensor& values) const {
    return fits(values) && values.dim() <= 1 && (values.numel() == 1 || values.numel() == width_);
  }

  const std::vector<double>& betas_;
  const at::Tensor& inputs_;
  std::int64_t dim_, width_;
  std::size_t activations_ = 0;
};

std::vector<float> copied(const at::Tensor& values, std::int64_t width) {
  if (!values.defined()) return {};
  const float* from = values.const_data_ptr<float>();
  if (values.numel() == 1) return std::vector<float>(static_cast<std::size_t>(width), *from);
  return {from, from + width};
}

}  // namespace chain

using namespace chain;

LinearChain::LinearChain() = default;
LinearChain::LinearChain(LinearChain&&) noexcept = default;
LinearChain& LinearChain::operator=(LinearChain&&) noexcept = default;
LinearChain::~LinearChain() = default;

std::optional<ChainParts> ChainParts::of(const Network& network, const Rule& rule, const at::Tensor& inputs) {
  if (inputs.dim() < 2 || inputs.size(0) == 0 || rule.keep_pre_activations || rule.keep_values) return std::nullopt;
  Reader reader(rule, inputs);
  const std::vector<Node>& nodes = network.nodes();
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].inputs.size() != 1 || nodes[i].inputs[0] != static_cast<int>(i) - 1 || !reader.read(nodes[i]))
      return std::nullopt;
  }
  if (!reader.is_whole()) return std::nullopt;
  return std::move(reader.parts);
}

std::optional<LinearChain> LinearChain::of(const Network& network, const Rule& rule, const at::Tensor& inputs) {
  static const Loops* const loops = choose_loops();
  if (loops == nullptr || !is_plain(inputs)) return std::nullopt;
  const std::optional<ChainParts> parts = ChainParts::of(network, rule, inputs);
  if (!parts) return std::nullopt;
  LinearChain result;
  result.loops_ = loops;
  std::int64_t weights = 0;
  for (const ChainParts::Layer& part : parts->layers) {
    weights += part.weight.numel();
    result.layers_.push_back({.weight = part.weight.const_data_ptr<float>(),
                              .bias = part.bias.defined() ? part.bias.const_data_ptr<float>() : nullptr,
                              .ins = part.weight.size(1),
                              .outs = part.weight.size(0),
                              .bend = part.bend,
                              .slope = static_cast<float>(part.slope),
                              .beta = static_cast<float>(part.beta)});
    result.weights_.push_back(part.weight);
    if (part.bias.defined()) result.weights_.push_back(part.bias);
  }
  if (weights > kMostWeights) return std::nullopt;
  result.scale_ = copied(parts->scale, result.inputs());
  result.shift_ = copied(parts->shift, result.inputs());
  std::int64_t widest = result.inputs();
  for (const Layer& layer : result.layers_) {
    widest = std::max(widest, layer.outs);
    if (layer.bend != Bend::kNone) result.hidden_ += layer.outs;
    result.bends_ |= layer.bend == Bend::kSoftplus;
  }
  result.widest_ = widest;
  result.scratch_.resize(static_cast<std::size_t>(loops->rows * (2 * widest + (result.bends_ ? result.hidden_ : 0))));
  return result;
}

std::int64_t LinearChain::inputs() const {
  return layers_.front().ins;
}

std::int64_t LinearChain::classes() const {
  return layers_.back().outs;
}

std::int64_t LinearChain::block_rows() const {
  return loops_->rows;
}

std::int64_t LinearChain::kept(bool twice) const {
  return loops_->rows * hidden_ * (twice && bends_ ? 2 : 1);
}

Chain LinearChain::chain() {
  float* const scratch = scratch_.data();
  const std::int64_t buffer = loops_->rows * widest_;
  return {.layers = layers_.data(),
          .count = std::ssize(layers_),
          .scale = scale_.empty() ? nullptr : scale_.data(),
          .shift = shift_.empty() ? nullptr : shift_.data(),
          .bends = bends_,
          .hidden = hidden_,
          .one = scratch,
          .other = scratch + buffer,
          .curved = scratch + 2 * buffer};
}

void LinearChain::forward(const float* points, std::int64_t rows, bool twice, float* kept, float* logits) {
  loops_->forward(chain(), points, rows, twice, kept, logits);
}

void LinearChain::pull(const float* cotangent, std::int64_t rows, bool twice, float* kept, float* gradient) {
  loops_->pull(chain(), cotangent, rows, twice, kept, gradient);
}

void LinearChain::push(const float* direction, std::int64_t rows, const float* kept, float* change) {
  loops_->push(chain(), direction, rows, kept, change);
}

void LinearChain::pull_again(const float* cotangent, std::int64_t rows, const float* kept, float* gradient) {
  loops_->pull_again(chain(), cotangent, rows, kept, gradient);
}

at::Tensor chain_input_gradient(const Network& network, const Rule& rule, const at::Tensor& inputs, const at::Tensor& cotangent) {
  const at::Tensor points = inputs.detach();
  std::optional<LinearChain> chain = LinearChain::of(network, rule, points);
  if (!chain || !is_plain(cotangent)) return {};
  HOLDFAST_CHECK(cotangent.size(0) == points.size(0) && cotangent.size(1) == chain->classes());
  at::Tensor gradient = at::empty_like(points);
  const std::int64_t rows = points.size(0), n = chain->inputs(), classes = chain->classes(), most = chain->block_rows();
  std::vector<float> kept(static_cast<std::size_t>(chain->kept(false))), logits(static_cast<std::size_t>(most * classes));
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    const std::int64_t count = std::min(most, rows - begin);
    chain->forward(points.const_data_ptr<float>() + begin * n, count, false, kept.data(), logits.data());
    chain->pull(cotangent.const_data_ptr<float>() + begin * classes, count, false, kept.data(),
                gradient.mutable_data_ptr<float>() + begin * n);
  }
  return gradient;
}

}  // namespace holdfast::model

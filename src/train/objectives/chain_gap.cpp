#include "chain_gap.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "gap_rows.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"

namespace holdfast::train {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What the way forward leaves for the way back. Rows of a stack are [networks, B / networks, width] throughout. Vectors have
// their first layer at 0.
struct ChainGap::Pass {
  std::vector<op::Linear> layers;
  variable_list values;                    // a_(l-1), what each layer reads
  variable_list slopes, bends;             // s'(z_l) and s''(z_l) of all layers but the last; no bend where it is zero
  at::Tensor labels, explained, p, q, ce;  // of the logits
  at::Tensor gradient;
  gap_rows::Shape shape;

  void activate_next(const op::Activation& activation, at::Tensor& x);
  void explain(const at::Tensor& logits, ExplainedQuantity quantity);
  void pull_back();
};

namespace {

bool has_slopes(const op::Activation& activation) {
  return activation.kind == op::Activation::Kind::kRelu || activation.kind == op::Activation::Kind::kSoftplus;
}

// Input, linear, activation, linear, ..., linear.
bool alternates(const Network& network) {
  const std::vector<Node>& nodes = network.nodes();
  if (nodes.size() % 2 != 0) return false;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (!reads_the_node_before(network, i)) return false;
    const auto* linear = std::get_if<op::Linear>(&nodes[i].operation);
    const auto* activation = std::get_if<op::Activation>(&nodes[i].operation);
    const bool right =
        i % 2 == 1 ? linear != nullptr && linear->bias.defined() : activation != nullptr && has_slopes(*activation);
    if (!right) return false;
  }
  return true;
}

// Multiplies two matrices, or those of each network in a stack.
at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  return a.dim() == 2 ? at::mm(a, b) : at::bmm(a, b);
}

at::Tensor apply_layer(const op::Linear& layer, const at::Tensor& x) {
  if (layer.weight.dim() == 2) return at::linear(x, layer.weight, layer.bias);
  return at::baddbmm(layer.bias.unsqueeze(1), x, layer.weight.transpose(1, 2));
}

// [B, n], cut into the parts of a stack's networks.
at::Tensor rows_of(const op::Linear& first, const at::Tensor& x) {
  return first.weight.dim() == 2 ? x : x.view({first.weight.size(0), -1, x.size(1)});
}

}  // namespace

void ChainGap::Pass::activate_next(const op::Activation& activation, at::Tensor& x) {
  const at::Tensor value = activate(activation, x);
  if (activation.kind == op::Activation::Kind::kRelu) {
    slopes.push_back(value.sign());
    bends.emplace_back();
  } else {
    const double beta = activation.parameter;
    slopes.push_back(at::sigmoid(x * beta));
    bends.push_back(slopes.back() * (1 - slopes.back()) * beta);
  }
  x = value;
}

void ChainGap::Pass::explain(const at::Tensor& logits, ExplainedQuantity quantity) {
  const bool probability = quantity == ExplainedQuantity::kProbability;
  const at::Tensor rows = logits.contiguous();
  shape = {.rows = labels.size(0), .classes = rows.size(-1), .probability = probability};
  explained = probability ? rows.argmax(-1).view(-1) : labels;
  p = at::empty_like(rows), q = at::empty_like(rows), ce = at::empty({shape.rows}, rows.options());
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "gap_rows_forward", [&] {
    gap_rows::forward(shape, rows.const_data_ptr<scalar_t>(), labels.const_data_ptr<std::int64_t>(),
                      explained.const_data_ptr<std::int64_t>(), p.data_ptr<scalar_t>(), q.data_ptr<scalar_t>(),
                      ce.data_ptr<scalar_t>());
  });
}

void ChainGap::Pass::pull_back() {
  at::Tensor signal = q;
  for (std::size_t l = layers.size() - 1; l > 0; --l) signal = product(signal, layers[l].weight) * slopes[l - 1];
  gradient = product(signal, layers[0].weight).view({shape.rows, -1});
}

// Computes both terms as one step of the graph.
class ChainGap::Step : public torch::autograd::Function<ChainGap::Step> {
 public:
  using Shared = std::shared_ptr<const Pass>;

  // `parameters`: weight and bias of each layer, for the graph to see; the pass has them too.
  static variable_list forward(AutogradContext* context, const Shared& pass, const at::Tensor& c, at::TensorList) {
    variable_list tangents{rows_of(pass->layers[0], c)}, moved;  // t_(l-1) and u_l
    for (std::size_t l = 0; l < pass->layers.size(); ++l) {
      moved.push_back(product(tangents[l], pass->layers[l].weight.transpose(-2, -1)));
      if (l < pass->slopes.size()) tangents.push_back(moved[l] * pass->slopes[l]);
    }
    const at::Tensor gaps = (pass->q * moved.back()).sum(-1).view(-1);
    context->saved_data["pass"] = c10::IValue::make_capsule(c10::make_intrusive<SavedPass>(pass));
    tangents.insert(tangents.end(), moved.begin(), moved.end());
    context->save_for_backward(std::move(tangents));
    return {pass->ce.detach(), gaps};
  }

  static variable_list backward(AutogradContext* context, const variable_list& weights) {
    HOLDFAST_CHECK(!at::GradMode::is_enabled());  // terms are differentiable once
    const Shared pass = c10::static_intrusive_pointer_cast<SavedPass>(context->saved_data["pass"].toCapsule())->pass;
    const std::size_t count = pass->layers.size();
    const variable_list saved = context->get_saved_variables();
    const auto tangent = [&](std::size_t l) { return saved[l]; };
    const auto moved = [&](std::size_t l) { return saved[count + l]; };

    at::Tensor e = by_logits(*pass, moved(count - 1), weights[0], weights[1]);
    at::Tensor f = pass->q * weights[1].view(e.sizes().slice(0, e.dim() - 1)).unsqueeze(-1);
    variable_list gradients(2 + 2 * count);  // the first two are the pass's and c's
    for (std::size_t l = count - 1;; --l) {
      gradients[2 + 2 * l] = product(e.transpose(-2, -1), pass->values[l]).add_(product(f.transpose(-2, -1), tangent(l)));
      gradients[3 + 2 * l] = e.sum(-2);
      if (l == 0) return gradients;
      e = product(e, pass->layers[l].weight).mul_(pass->slopes[l - 1]);
      f = product(f, pass->layers[l].weight);
      if (pass->bends[l - 1].defined()) e.addcmul_(f * moved(l - 1), pass->bends[l - 1]);
      f.mul_(pass->slopes[l - 1]);
    }
  }

 private:
  struct SavedPass : torch::CustomClassHolder {
    explicit SavedPass(Shared kept) : pass(std::move(kept)) {}
    Shared pass;
  };

  static at::Tensor by_logits(const Pass& pass, const at::Tensor& moved, const at::Tensor& ce_weights,
                              const at::Tensor& gap_weights) {
    const at::Tensor u = moved.contiguous(), of_ce = ce_weights.contiguous(), of_gap = gap_weights.contiguous();
    at::Tensor result = at::empty_like(u);
    AT_DISPATCH_FLOATING_TYPES(u.scalar_type(), "gap_rows_backward", [&] {
      gap_rows::backward(pass.shape, pass.labels.const_data_ptr<std::int64_t>(), pass.explained.const_data_ptr<std::int64_t>(),
                         pass.p.const_data_ptr<scalar_t>(), pass.q.const_data_ptr<scalar_t>(), u.const_data_ptr<scalar_t>(),
                         of_ce.const_data_ptr<scalar_t>(), of_gap.const_data_ptr<scalar_t>(), result.data_ptr<scalar_t>());
    });
    return result;
  }
};

bool ChainGap::fits(const Trainee& trainee, const TrainBatch& batch) {
  return trainee.network() != nullptr && !trainee.modes_differ() && batch.inputs.is_cpu() && batch.inputs.dim() == 2 &&
         alternates(*trainee.network());
}

ChainGap::ChainGap(const Network& network, const TrainBatch& batch, ExplainedQuantity quantity) {
  const at::NoGradGuard no_graph;
  const auto made = std::make_shared<Pass>();
  Pass& pass = *made;
  at::Tensor x;
  for (const Node& node : network.nodes()) {
    if (const auto* activation = std::get_if<op::Activation>(&node.operation)) pass.activate_next(*activation, x);
    const auto* linear = std::get_if<op::Linear>(&node.operation);
    if (linear == nullptr) continue;
    if (pass.layers.empty()) x = rows_of(*linear, batch.inputs);
    pass.layers.push_back(*linear);
    pass.values.push_back(x);
    x = apply_layer(*linear, x);
  }
  pass.labels = batch.labels.contiguous();
  pass.explain(x, quantity);
  pass.pull_back();
  pass_ = made;
}

const at::Tensor& ChainGap::gradient() const {
  return pass_->gradient;
}

ChainGap::Terms ChainGap::terms(const at::Tensor& c) const {
  variable_list parameters;
  for (const op::Linear& layer : pass_->layers) parameters.insert(parameters.end(), {layer.weight, layer.bias});
  const variable_list terms = Step::apply(pass_, c, at::TensorList(parameters));
  return {terms[0], terms[1]};
}

}  // namespace holdfast::train

// lrp: layer-wise relevance propagation. The explained logit is handed back layer by layer, each output giving what it has to its
// inputs in proportion to what they contributed; the sum stays, but for what biases and epsilon keep.
//     R at the logits = z_c at the class c          map = R at the input
// Bach et al., "On Pixel-Wise Explanations for Non-Linear Classifier Decisions by Layer-Wise Relevance Propagation", PLOS ONE
// 2015; Montavon et al., "Layer-Wise Relevance Propagation: An Overview", 2019: the rules of dense layers and convolutions
// (lrp_rules.h).
//
// The other operations:
//     activations         relevance passes; f(0) != 0 (softplus, sigmoid) counts as a bias: the share f(0) / f(z) stays there
//     batch normalisation part of the layer before it (`fold_batch_norm`); standing alone its shift is a bias like any other
//     sums, means, |u-v|  in proportion, under the epsilon rule: residual branches share by their values
//     max pooling         to the maximum
//     products            in proportion, half to each factor (Achtibat et al., AttnLRP, ICML 2024)
//     preprocessing       an affine map, standardisation or graph normalisation keeps elements one to one: relevance passes
//     moving of values    relevance moves back
//
// target=probability and ce linearise the softmax: R at the logits is z_j times its derivative there. `delta` is the sum of the
// map minus the sum of R at the logits. Where one-hot groups are projected, the map is x times the projected multipliers of the
// first layer, and preprocessing is part of that layer.
#include "lrp_rules.h"

#include <algorithm>
#include <optional>

#include "finish.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "layer_explainer.h"

namespace holdfast::explain::lrp {

const MethodInfo kInfo{
    .name = "lrp",
    .summary = "the class's logit handed back layer by layer in proportion to contributions",
    .citation =
        "Bach et al., On Pixel-Wise Explanations for Non-Linear Classifier Decisions by Layer-Wise Relevance Propagation, "
        "PLOS ONE 2015",
    .options = {target_option("logit"),
                {"rule", "composite", one_of({"composite", "epsilon", "gamma", "alphabeta"}),
                 "of all layers; composite: epsilon for dense layers, `convolutions` for convolutions"},
                {"convolutions", "gamma", one_of({"gamma", "alphabeta"}), "their rule under rule=composite"},
                {"first", "same", one_of({"same", "flat", "box"}),
                 "rule of the layer that reads the input; box: knows that the input lies between low and high"},
                {"epsilon", 1e-6, above(0),
                 "keeps denominators away from 0; larger ones absorb weak and contradictory relevance"},
                {"gamma", 0.25, at_least(0), "how much positive contributions are favoured"},
                {"alpha", 2.0, at_least(1), "share of positive contributions; alpha - 1 of negative ones"},
                {"bias", "absorb", one_of({"absorb", "ignore"}), "biases keep their share of relevance, or have none"},
                {"low", 0.0, anything(), "lower limit of the inputs, for first=box"},
                {"high", 1.0, anything(), "upper limit of the inputs, for first=box"},
                project_option()},
    .needs = {"layers of a network"},
    .notes =
        "With bias=ignore the maps of a network of ReLUs sum to the logit, but for units that see only zeros (black areas of an "
        "image): no input takes their relevance. What is missing is reported as delta."};

// The layer followed by the normalisation, or nothing where it is no layer that can take it in.
std::optional<Operation> fold_into(const Operation& layer, const op::BatchNorm& norm) {
  at::Tensor scale = (norm.variance + norm.epsilon).rsqrt();
  if (norm.weight.defined()) scale = scale * norm.weight;
  const auto fold = [&](auto taken) -> Operation {
    std::vector<std::int64_t> one_a_row(static_cast<std::size_t>(taken.weight.dim()), 1);
    one_a_row[0] = -1;
    const at::Tensor shift = taken.bias.defined() ? taken.bias - norm.mean : -norm.mean;
    taken.weight = taken.weight * scale.view(one_a_row);
    taken.bias = norm.bias.defined() ? shift * scale + norm.bias : shift * scale;
    return taken;
  };
  if (const auto* conv = std::get_if<op::Conv2d>(&layer)) return fold(*conv);
  if (const auto* linear = std::get_if<op::Linear>(&layer)) {
    // The channels of a dense layer's output are its features only where it reads vectors, which the sizes tell.
    if (linear->weight.size(0) == norm.mean.size(0)) return fold(*linear);
  }
  return std::nullopt;
}

// The same function with every batch normalisation that alone reads a convolution or a dense layer made part of it, so that
// relevance meets one linear layer instead of two: weight w s, bias (b - mean) s + shift, s = scale / sqrt(variance + epsilon).
// Other nodes share their tensors with `network`. A function of the weights that autograd can differentiate.
Network fold_batch_norm(const Network& network) {
  const std::vector<Node>& nodes = network.nodes();
  std::vector<int> readers(nodes.size());
  for (const Node& node : nodes) {
    for (const int input : node.inputs) ++readers[static_cast<std::size_t>(input)];
  }
  // For each layer, the normalisation that goes into it.
  std::vector<std::optional<Operation>> replaced(nodes.size());
  std::vector<bool> gone(nodes.size());
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const auto* norm = std::get_if<op::BatchNorm>(&nodes[i].operation);
    if (norm == nullptr) continue;
    const auto layer = static_cast<std::size_t>(nodes[i].inputs[0]);
    if (readers[layer] != 1) continue;
    replaced[layer] = fold_into(nodes[layer].operation, *norm);
    gone[i] = replaced[layer].has_value();
  }

  Network result;
  std::vector<int> moved(nodes.size());  // where each node's value is found now
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<int> inputs;
    for (const int input : nodes[i].inputs) inputs.push_back(moved[static_cast<std::size_t>(input)]);
    moved[i] = gone[i] ? inputs[0] : result.add(nodes[i].name, replaced[i].value_or(nodes[i].operation), inputs);
  }
  return result;
}

bool is_layer(const Operation& operation) {
  return is_one_of<op::Linear, op::Conv2d>(operation);
}

// Which nodes come before any layer: the input, moved about and preprocessed.
std::vector<bool> nodes_before_layers(const Network& network) {
  std::vector<bool> before;
  for (const Node& node : network.nodes()) {
    const bool prepares =
        is_one_of<op::Input, op::Affine, op::Standardize, op::ReverseChannels, op::BatchNorm, op::Pad, op::Slice, op::Multiply,
                  op::Concat, op::Flatten, op::Reshape, op::FoldSides, op::Dropout, op::SelectIndex, op::Permute>(node.operation);
    before.push_back(prepares && std::all_of(node.inputs.begin(), node.inputs.end(),
                                             [&](int input) { return before[static_cast<std::size_t>(input)]; }));
  }
  return before;
}

class Lrp final : public LayerExplainer {
 public:
  explicit Lrp(const Options& options)
      : LayerExplainer(options.canonical()),
        quantity_(parse_explained_quantity(options.word("target"))),
        rule_(options.word("rule")),
        convolutions_(options.word("convolutions")),
        first_(options.word("first")),
        low_(options.real("low")),
        high_(options.real("high")),
        parameters_{.epsilon = options.real("epsilon"),
                    .gamma = options.real("gamma"),
                    .alpha = options.real("alpha"),
                    .absorb_bias = options.word("bias") == "absorb"},
        projection_(options, name()) {
    if (first_ == "box" && !(low_ < high_)) usage_error("{}: low is {}, high is {}; low must be below high", name(), low_, high_);
  }

  // Both signs of weights, and of inputs, are a pass each.
  std::int64_t evaluations(const Schema&) const override { return rule_ == "epsilon" ? 1 : 4; }

  void check_task(const ExplainTask& task) const override {
    check(task.model);
    if (projection_.applies(task)) check_projected(*task.model.network());
  }

 protected:
  void check_network(const Network& network, const std::string& model) const override {
    if (first_ != "box") return;
    const std::vector<bool> before = nodes_before_layers(network);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i] && is_one_of<op::Standardize>(network.nodes()[i].operation))
        usage_error("{}: {} standardises its inputs, so the first layer's are in no known box; choose first=flat", name(), model);
    }
  }

 private:
  // One walk's state.
  struct Pass {
    const Network& network;
    std::vector<bool> before;
    bool multipliers;              // the input's multipliers are wanted, not its relevance
    std::vector<at::Tensor> lows;  // of each node before the layers, where the first layer's rule is box
    std::vector<at::Tensor> highs;
  };

  Traced trace(const ExplainTask& task, const Network& network, const at::Tensor& inputs) const override {
    const bool project = projection_.applies(task);
    if (project) check_projected(network);
    const Network folded = fold_batch_norm(network);
    const LayerValues here = run_layers(folded, inputs, task.rule);
    const LogitCotangent cotangent = logit_cotangent(here.logits(), task.samples.targets, quantity_);
    const at::Tensor relevance = cotangent.value * here.logits();

    Pass pass{.network = folded, .before = nodes_before_layers(folded), .multipliers = project, .lows = {}, .highs = {}};
    if (first_ == "box") set_box(pass, inputs, task.rule);
    const at::Tensor below = walk_back(here, relevance, [&](const LayerStep& step) { return hand_down(step, pass); });
    at::Tensor maps = project ? inputs * projection_.project(below, task) : below;
    return {.maps = maps,
            .log_scale = cotangent.log_scale,
            .logits = here.logits(),
            .delta = missing(maps, relevance, cotangent.log_scale),
            .gauge_share = project ? projection_.gauge_share(below, task) : at::Tensor()};
  }

  // [B] double.
  static at::Tensor missing(const at::Tensor& maps, const at::Tensor& relevance, const at::Tensor& log_scale) {
    const auto sum = [](const at::Tensor& values) { return values.detach().to(at::kDouble).flatten(1).sum(1); };
    return (sum(maps) - sum(relevance)) * log_scale.to(at::kDouble).exp();
  }

  LrpRule rule_of(const Operation& layer, bool reads_input) const {
    using Kind = LrpRule::Kind;
    LrpRule rule = parameters_;
    const std::string of_composite = is_one_of<op::Conv2d>(layer) ? convolutions_ : "epsilon";
    const std::string& kind = rule_ == "composite" ? of_composite : rule_;
    rule.kind = kind == "gamma" ? Kind::kGamma : kind == "alphabeta" ? Kind::kAlphaBeta : Kind::kEpsilon;
    if (reads_input && first_ == "flat") rule.kind = Kind::kFlat;
    if (reads_input && first_ == "box") rule.kind = Kind::kBox;
    return rule;
  }

  std::vector<at::Tensor> hand_down(const LayerStep& step, const Pass& pass) const {
    const Operation& operation = step.node().operation;
    if (is_layer(operation)) return {through_layer(step, pass)};
    if (pass.before[step.position()] && pass.multipliers) return step.pull(step.cotangent());
    const bool shifts = is_one_of<op::BatchNorm>(operation) && !pass.before[step.position()] && parameters_.absorb_bias;
    if (shifts) return {relevance_below(step, parameters_)};
    if (is_one_of<op::Activation>(operation)) return {through_activation(step)};
    // Relevance is handed down one to one.
    if (is_one_of<op::Affine, op::Standardize, op::BatchNorm, op::Multiply, op::Abs>(operation)) return {step.cotangent()};
    if (is_one_of<op::Adjacency>(operation)) return {through_adjacency(step)};
    if (is_one_of<op::Add, op::Mean, op::AvgPool2d, op::AdaptiveAvgPool2d, op::SideDistance>(operation))
      return in_proportion(step, 1);
    if (is_one_of<op::Product, op::MatMul>(operation)) return in_proportion(step, 0.5);
    // Values are moved, or the largest is: the vector-Jacobian product moves relevance back.
    HOLDFAST_CHECK((is_one_of<op::ReverseChannels, op::MaxPool2d, op::Pad, op::Slice, op::Concat, op::Flatten, op::Reshape,
                              op::FoldSides, op::Dropout, op::SelectIndex, op::Permute>(operation)));
    return step.pull(step.cotangent());
  }

  at::Tensor through_layer(const LayerStep& step, const Pass& pass) const {
    const auto source = static_cast<std::size_t>(step.node().inputs[0]);
    const bool reads_input = pass.before[source];
    const LrpRule rule = rule_of(step.node().operation, reads_input);
    if (reads_input && pass.multipliers) return epsilon_multipliers(step, rule);
    if (rule.kind != LrpRule::Kind::kBox) return relevance_below(step, rule);
    return relevance_below(step, rule, beside(pass.lows[source], step.operand()), beside(pass.highs[source], step.operand()));
  }

  at::Tensor through_activation(const LayerStep& step) const {
    const at::Tensor at_zero = step.activate_at(at::zeros({1}, step.operand().options().requires_grad(false)));
    if (!parameters_.absorb_bias || at_zero.item<double>() == 0) return step.cotangent();
    return step.cotangent() * (step.value() - at_zero) / kept_from_zero(step.value(), parameters_.epsilon);
  }

  // An edge stands at two places of the matrix; the relevance of the loops, which are constants, stays there.
  static at::Tensor through_adjacency(const LayerStep& step) {
    const at::Tensor& index = std::get<op::Adjacency>(step.node().operation).index;
    const std::int64_t edges = step.operand().size(1);
    const at::Tensor all = at::zeros({step.operand().size(0), edges + 1}, step.cotangent().options().requires_grad(false));
    return all.index_add(1, index, step.cotangent().flatten(1)).slice(1, 0, edges);
  }

  std::vector<at::Tensor> in_proportion(const LayerStep& step, double share) const {
    std::vector<at::Tensor> parts = step.pull(share * step.cotangent() / kept_from_zero(step.value(), parameters_.epsilon));
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = parts[i] * step.operand(i);
    return parts;
  }

  // Where low and high of the input end up: preprocessing is monotonous in each element.
  void set_box(Pass& pass, const at::Tensor& inputs, const Rule& rule) const {
    const at::NoGradGuard no_graph;
    const at::Tensor one = inputs.detach().slice(0, 0, 1);
    const std::vector<at::Tensor> low = run_layers(pass.network, at::full_like(one, low_), rule).values;
    const std::vector<at::Tensor> high = run_layers(pass.network, at::full_like(one, high_), rule).values;
    for (std::size_t i = 0; i < low.size(); ++i) {
      pass.lows.push_back(at::minimum(low[i], high[i]));
      pass.highs.push_back(at::maximum(low[i], high[i]));
    }
  }

  // The gauge is linear in the first layer's weights and moves its bias: only a rule that is linear in the one and looks at the
  // other through the whole sum alone can be projected.
  void check_projected(const Network& network) const {
    const Network folded = fold_batch_norm(network);
    const std::vector<bool> before = nodes_before_layers(folded);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Node& node = folded.nodes()[i];
      const bool reads_input =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](int input) { return before[static_cast<std::size_t>(input)]; });
      if (before[i] || !reads_input) continue;
      const bool by_epsilon =
          is_layer(node.operation) && parameters_.absorb_bias && rule_of(node.operation, true).kind == LrpRule::Kind::kEpsilon;
      if (!by_epsilon) {
        usage_error(
            "{}: one-hot groups are projected only where the epsilon rule with bias=absorb reads them, and layer '{}' reads them "
            "by another; use project=none",
            name(), node.name);
      }
    }
  }

  ExplainedQuantity quantity_;
  std::string rule_, convolutions_, first_;
  double low_, high_;
  LrpRule parameters_;
  Projection projection_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<Lrp>(kInfo);
}

}  // namespace holdfast::explain::lrp

// relative_input_stability, relative_output_stability and relative_representation_stability: the relative change of the map for
// the change of the input, of the logits, or of a layer's values.
//     max over y of  || (I(x) - I(y)) / I(x) ||  /  max(d(x, y), epsilon)          y uniform in a cube around x, same prediction
//     d(x, y) = || (x - y) / x ||,  || h(x) - h(y) ||  or  || (L(x) - L(y)) / L(x) ||          h: logits, L: the layer's values
// with divisions element by element. Agarwal et al., "Rethinking Stability for Attribution-based Explanations", 2022, equations
// 2, 3 and 5.
//
// The paper does not say what an element that is zero at x has for a relative change; it has none, and is left out of the
// norm. How many were is in `map_zeros` and `input_zeros` or `representation_zeros`. A sample all of whose elements are zero is
// undefined.
//
// quantus=true, as Quantus 0.6: zeros are replaced by epsilon, so that on images with black pixels, or behind a ReLU, both
// norms are almost only that epsilon; the noise is one-sided, uniform in [0.02, radius]; and one point with another prediction
// makes the sample undefined.

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"
#include "holdfast/model/model.h"
#include "relative_rows.h"
#include "stability.h"

namespace holdfast::measure::relative_stability {

const char* const kAgarwal = "Agarwal et al., Rethinking Stability for Attribution-based Explanations, 2022";

std::vector<OptionSpec> relative_options(std::vector<OptionSpec> own) {
  std::vector<OptionSpec> all{norm_option(), {"epsilon", 1e-6, above(0), "least denominator"}};
  all.insert(all.end(), own.begin(), own.end());
  return stability_options("box", all);
}

const MethodInfo kInputInfo{.name = "relative_input_stability",
                            .summary = "largest relative change of the map for the relative change of the input",
                            .citation = kAgarwal,
                            .options = relative_options({})};

const MethodInfo kOutputInfo{.name = "relative_output_stability",
                             .summary = "largest relative change of the map for the change of the logits",
                             .citation = kAgarwal,
                             .options = relative_options({})};

const MethodInfo kRepresentationInfo{
    .name = "relative_representation_stability",
    .summary = "largest relative change of the map for the relative change of a layer's values",
    .citation = kAgarwal,
    .options =
        relative_options({{"layer", "last", anything(), "a layer's name; last: what the last layer with weights reads; all"}}),
    .needs = {"layers"}};

bool has_weights(const Node& node) {
  return std::holds_alternative<op::Linear>(node.operation) || std::holds_alternative<op::Conv2d>(node.operation);
}

std::size_t last_hidden(const Network& network, const std::string& who) {
  const std::vector<Node>& nodes = network.nodes();
  std::size_t last = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (has_weights(nodes[i])) last = static_cast<std::size_t>(nodes[i].inputs.at(0));
  }
  for (std::size_t i = 0; i <= last; ++i) {
    if (has_weights(nodes[i])) return last;
  }
  usage_error("{}: the network has no hidden layer; name a layer with layer=NAME", who);
}

std::size_t named(const Network& network, const std::string& layer, const std::string& who) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < network.nodes().size(); ++i) {
    if (network.nodes()[i].name == layer) return i;
    known.push_back(network.nodes()[i].name);
  }
  usage_error("{}: the network has no layer '{}'{}", who, layer, suggestion(layer, known));
}

// What a network makes of an input on the way to its logits: the values of one layer, or of all of them.
class Representation {
 public:
  // `layer`: a node's name; "last": what the last node with weights reads; "all": every node's value but the input. Throws
  // kUsage, naming `who` asks, when the model has no layers to look into or none of that name.
  Representation(const Model& model, const std::string& layer, const std::string& who) : network_(model.network()) {
    if (network_ == nullptr)
      usage_error("{}: the model is opaque, its layers cannot be read; it needs a network of known operations", who);
    if (layer == "all") {
      for (std::size_t i = 1; i < network_->nodes().size(); ++i) nodes_.push_back(i);
    } else {
      nodes_.push_back(layer == "last" ? last_hidden(*network_, who) : named(*network_, layer, who));
    }
  }

  // [B, sample...] -> [B, values]. Both sides of a pair go through a network as two rows after each other: they are values of one
  // sample.
  at::Tensor values(const at::Tensor& inputs) const {
    const at::NoGradGuard no_graph;
    const std::vector<at::Tensor> all = network_->run(inputs, {.keep_values = true}).values;
    std::vector<at::Tensor> chosen;
    for (const std::size_t node : nodes_) chosen.push_back(all[node].reshape({inputs.size(0), -1}));
    return chosen.size() == 1 ? chosen[0] : at::cat(chosen, 1);
  }

 private:
  const Network* network_;
  std::vector<std::size_t> nodes_;
};

std::vector<double> zeros_of(const at::Tensor& rows) {
  const at::Tensor count = rows.flatten(1).eq(0).sum(1).to(at::kCPU, at::kDouble).contiguous();
  return {count.const_data_ptr<double>(), count.const_data_ptr<double>() + count.numel()};
}

class RelativeStability : public Stability {
 public:
  explicit RelativeStability(const Options& options)
      : Stability(options, Over::kMax, Flips::kUndefine, /*one_sided=*/true),
        norm_(norm_order(options.word("norm"))),
        epsilon_(options.real("epsilon")) {}

 protected:
  // d(x, y), [samples, points].
  virtual at::Tensor distance(const Nearby& nearby) const = 0;

  at::Tensor terms(const Nearby& nearby) const override {
    if (quantus()) {
      const at::Tensor below = distance(nearby);
      return relative_change(nearby.true_maps(), nearby.true_near_maps()) /
             below.where(below != 0, at::full_like(below, epsilon_));
    }
    return relative_change(nearby.maps, nearby.near_maps) / distance(nearby).clamp_min(epsilon_);
  }

  // || (from - to) / from ||; NaN where all of `from` is zero.
  at::Tensor relative_change(const at::Tensor& from, const at::Tensor& to) const {
    const at::Tensor zero = from.eq(0);
    if (quantus()) return norm_of((to - from) / from.masked_fill(zero, epsilon_), norm_);
    // Where all elements are taken out, nothing is left to measure.
    return change_but_zeros(from, to, zero).masked_fill(zero.all(2), std::numeric_limits<double>::quiet_NaN());
  }

  at::Tensor change_but_zeros(const at::Tensor& from, const at::Tensor& to, const at::Tensor& zero) const {
    const bool known = to.scalar_type() == at::kFloat || to.scalar_type() == at::kDouble;
    if (norm_ == 2 && to.is_cpu() && known) return l2_change(from.contiguous(), to.contiguous());
    // An infinite divisor takes an element out.
    return norm_of((to - from) / from.masked_fill(zero, std::numeric_limits<double>::infinity()), norm_);
  }

  // A pass over the points for each operation would cost as much as a small network's gradients.
  static at::Tensor l2_change(const at::Tensor& from, const at::Tensor& to) {
    at::Tensor change = at::empty({to.size(0), to.size(1)}, to.options());
    AT_DISPATCH_FLOATING_TYPES(to.scalar_type(), "l2_change", [&] {
      relative_rows::change<scalar_t>({to.size(0), to.size(1), to.size(2)}, from.const_data_ptr<scalar_t>(),
                                      to.const_data_ptr<scalar_t>(), change.mutable_data_ptr<scalar_t>());
    });
    return change;
  }

  at::Tensor absolute_change(const at::Tensor& from, const at::Tensor& to) const { return norm_of(to - from, norm_); }

  std::vector<std::pair<std::string, std::vector<double>>> notes(const MeasureTask& task,
                                                                 const Explanation& clean) const override {
    (void)task;
    return {{"map_zeros", zeros_of(clean.maps)}};
  }

 private:
  double norm_, epsilon_;
};

class RelativeInputStability final : public RelativeStability {
 public:
  using RelativeStability::RelativeStability;

 protected:
  at::Tensor distance(const Nearby& nearby) const override { return relative_change(nearby.inputs, nearby.near_inputs); }

  std::vector<std::pair<std::string, std::vector<double>>> notes(const MeasureTask& task,
                                                                 const Explanation& clean) const override {
    return {{"map_zeros", zeros_of(clean.maps)}, {"input_zeros", zeros_of(task.samples.inputs)}};
  }
};

class RelativeOutputStability final : public RelativeStability {
 public:
  using RelativeStability::RelativeStability;

 protected:
  at::Tensor distance(const Nearby& nearby) const override { return absolute_change(nearby.logits, nearby.near_logits); }
};

class RelativeRepresentationStability final : public RelativeStability {
 public:
  explicit RelativeRepresentationStability(const Options& options) : RelativeStability(options), layer_(options.word("layer")) {}

  void check(const MeasureTask& task) const override {
    Stability::check(task);
    (void)Representation(task.model, layer_, name());
  }

 protected:
  at::Tensor distance(const Nearby& nearby) const override {
    const Representation layer(nearby.task.model, layer_, name());
    const auto values = [&](const at::Tensor& inputs) {
      std::vector<std::int64_t> shape = nearby.task.samples.inputs.sizes().vec();
      shape[0] = inputs.size(0) * inputs.size(1);
      return layer.values(inputs.reshape(shape)).view({inputs.size(0), inputs.size(1), -1});
    };
    return relative_change(values(nearby.inputs), values(nearby.near_inputs));
  }

  std::vector<std::pair<std::string, std::vector<double>>> notes(const MeasureTask& task,
                                                                 const Explanation& clean) const override {
    const Representation layer(task.model, layer_, name());
    std::vector<double> zeros;
    const std::int64_t rows = rows_that_fit(task, Pass::kForward);
    for (std::int64_t begin = 0; begin < task.samples.inputs.size(0); begin += rows) {
      const std::vector<double> some = zeros_of(layer.values(task.samples.inputs.slice(0, begin, begin + rows)));
      zeros.insert(zeros.end(), some.begin(), some.end());
    }
    return {{"map_zeros", zeros_of(clean.maps)}, {"representation_zeros", zeros}};
  }

 private:
  std::string layer_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<RelativeInputStability>(kInputInfo);
  registry.add<RelativeOutputStability>(kOutputInfo);
  registry.add<RelativeRepresentationStability>(kRepresentationInfo);
}

}  // namespace holdfast::measure::relative_stability

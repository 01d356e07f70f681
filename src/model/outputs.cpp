#include "holdfast/model/outputs.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/log.h"
#include "holdfast/core/method.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/model/model.h"

namespace holdfast::model {
namespace reading {

// How far from 1 rounding may take a sum of probabilities.
constexpr double kSumRounding = 1e-3;

bool is_one_number(OutputKind kind) {
  return kind == OutputKind::kLogit || kind == OutputKind::kProbability || kind == OutputKind::kValue;
}

// A model whose outputs are read as one of the kinds.
class ReadOutputs final : public Model {
 public:
  ReadOutputs(std::shared_ptr<const Model> model, OutputKind kind) : model_(std::move(model)), kind_(kind) {
    set_name(model_->name());
    if (model_->network() != nullptr) network_ = with_head(*model_->network());
  }

  at::Tensor logits(const at::Tensor& inputs) const override { return read(model_->logits(inputs)); }
  at::Tensor logits(const at::Tensor& inputs, const Rule& rule) const override { return read(model_->logits(inputs, rule)); }

  OutputKind output_kind() const override { return kind_; }
  Capabilities capabilities() const override {
    Capabilities can = model_->capabilities();
    can.layers = network_.has_value();
    return can;
  }
  const Network* network() const override { return network_ ? &*network_ : nullptr; }
  std::optional<std::int64_t> parameter_count() const override { return model_->parameter_count(); }
  at::Device device() const override { return model_->device(); }
  at::ScalarType dtype() const override { return model_->dtype(); }
  std::optional<Layout> layout() const override { return model_->layout(); }
  std::unique_ptr<Model> in_double() const override {
    std::unique_ptr<Model> exact = model_->in_double();
    return exact ? std::make_unique<ReadOutputs>(std::move(exact), kind_) : nullptr;
  }
  std::string describe() const override { return fmt::format("{} What it gives: {}.", model_->describe(), output_words(kind_)); }

 private:
  at::Tensor read(const at::Tensor& outputs) const {
    if (const std::string wrong = wrong_outputs(outputs.sizes(), outputs.size(0), kind_); !wrong.empty())
      input_error("{} {}", name(), wrong);
    return logits_from(outputs, kind_);
  }

  // The two logits of one are a linear layer; logarithms are no operation of a network.
  std::optional<Network> with_head(const Network& body) const {
    if (kind_ == OutputKind::kValue) return body;
    if (kind_ != OutputKind::kLogit) return std::nullopt;
    const at::TensorOptions numbers = at::TensorOptions(body.device()).dtype(body.dtype());
    const at::Tensor halves = at::tensor({-0.5, 0.5}, numbers).view({2, 1});
    if (std::optional<Network> folded = with_last_layer_times(halves, body)) return folded;
    Network network = body;
    network.add("two_logits", op::Linear{.weight = halves, .bias = {}});
    return network;
  }

  // A last linear layer gives both logits itself, so that what is known of chains of layers holds: certificates, exact attacks. A
  // layer that is being trained keeps its own weights.
  std::optional<Network> with_last_layer_times(const at::Tensor& halves, const Network& body) const {
    const std::size_t place = before_reshapes(body);
    const Node& last = body.nodes()[place];
    const auto* linear = std::get_if<op::Linear>(&last.operation);
    if (linear == nullptr || linear->weight.requires_grad() || linear->weight.size(0) != 1) return std::nullopt;
    const at::NoGradGuard no_graph;
    Network network;
    for (std::size_t i = 0; i < place; ++i) network.add(body.nodes()[i].name, body.nodes()[i].operation, body.nodes()[i].inputs);
    const at::Tensor bias = linear->bias.defined() ? halves.squeeze(1) * linear->bias : at::Tensor();
    network.add(last.name, op::Linear{.weight = at::matmul(halves, linear->weight), .bias = bias}, last.inputs);
    return network;
  }

  // The last node but for those that only drop the dimension of one logit and bring it back. What they read must be that logit,
  // [B, 1], on a sample.
  std::size_t before_reshapes(const Network& body) const {
    const std::size_t end = body.nodes().size() - 1;
    std::size_t place = end;
    const auto only_reshapes = [&](std::size_t i) {
      const Node& node = body.nodes()[i];
      return is_one_of<op::Reshape, op::Flatten, op::SelectIndex>(node.operation) &&
             node.inputs == std::vector{static_cast<int>(i) - 1};
    };
    while (place > 1 && only_reshapes(place)) --place;
    const std::optional<Layout> known = model_->layout();
    if (place == end || !known) return end;
    std::vector<std::int64_t> shape = known->sample_shape();
    shape.insert(shape.begin(), 2);
    const at::NoGradGuard no_graph;
    const at::Tensor sample = at::zeros(shape, at::TensorOptions(body.device()).dtype(body.dtype()));
    return body.run(sample, {.keep_values = true}).values[place].dim() == 2 ? place : end;
  }

  std::shared_ptr<const Model> model_;
  OutputKind kind_;
  std::optional<Network> network_;
};

}  // namespace reading

const std::vector<std::string>& output_kinds() {
  static const std::vector<std::string> kinds{"auto", "logits", "logit", "probabilities", "probability", "value"};
  return kinds;
}

OutputKind parse_output_kind(const std::string& text) {
  const auto& kinds = output_kinds();
  const auto found = std::find(kinds.begin(), kinds.end(), text);
  if (found == kinds.end())
    usage_error("output kind '{}' is not one of {}{}", text, fmt::join(kinds, ", "), suggestion(text, kinds));
  return static_cast<OutputKind>(found - kinds.begin());
}

std::string output_kind_name(OutputKind kind) {
  return output_kinds()[static_cast<std::size_t>(kind)];
}

at::Tensor logits_from(const at::Tensor& outputs, OutputKind kind) {
  HOLDFAST_CHECK(kind != OutputKind::kAuto);
  const at::Tensor rows = outputs.dim() == 1 ? outputs.unsqueeze(1) : outputs;
  switch (kind) {
    case OutputKind::kLogit:
      return at::cat({-0.5 * rows, 0.5 * rows}, 1);
    case OutputKind::kProbabilities:
      return rows.clamp_min(kLeastProbability).log();
    case OutputKind::kProbability:
      return at::cat({(1 - rows).clamp_min(kLeastProbability), rows.clamp_min(kLeastProbability)}, 1).log();
    default:
      return rows;
  }
}

std::string wrong_outputs(at::IntArrayRef shape, std::int64_t samples, OutputKind kind) {
  const bool batch = !shape.empty() && shape.size() <= 2 && shape[0] == samples;
  const bool one = batch && (shape.size() == 1 || shape[1] == 1);
  const bool several = batch && shape.size() == 2 && shape[1] >= 2;
  if (kind == OutputKind::kAuto ? one || several : reading::is_one_number(kind) ? one : several) return "";
  const std::string gives =
      fmt::format("gives outputs of shape {} for {}", holdfast::to_string(shape.vec()), counted(samples, "sample"));
  if (reading::is_one_number(kind)) return fmt::format("{}; a {} is one number for each sample", gives, output_kind_name(kind));
  return fmt::format("{}; it must give {}, [samples, classes], of at least two classes{}", gives,
                     kind == OutputKind::kProbabilities ? "probabilities" : "logits",
                     kind == OutputKind::kAuto ? ", or one number for each sample"
                     : one                     ? "; the output kinds logit, probability and value are one number"
                                               : "");
}

OutputKind guess_output_kind(const at::Tensor& outputs, const std::string& model) {
  const at::Tensor rows = outputs.detach().to(at::kDouble).flatten(outputs.dim() == 1 ? 0 : 1);
  const bool none_negative = (rows >= 0).all().item<bool>();
  if (rows.dim() == 2 && rows.size(1) > 1) {
    const bool sum_to_one = ((rows.sum(1) - 1).abs() < reading::kSumRounding).all().item<bool>();
    return none_negative && sum_to_one ? OutputKind::kProbabilities : OutputKind::kLogits;
  }
  if (none_negative && (rows <= 1).all().item<bool>()) {
    input_error(
        "{} gives one number for each sample, and it lies in [0, 1] for each of {}: say by the output kind whether it is "
        "a probability, a logit or a value (--output-kind; holdfast.as_model(model, output_kind=...))",
        model, counted(rows.size(0), "sample"));
  }
  return OutputKind::kLogit;
}

std::string output_words(OutputKind kind) {
  switch (kind) {
    case OutputKind::kAuto:
      return "not known before it is run";
    case OutputKind::kLogits:
      return "a logit for each class";
    case OutputKind::kLogit:
      return "one logit, positive for class 1";
    case OutputKind::kProbabilities:
      return "a probability for each class, whose logarithm is its logit";
    case OutputKind::kProbability:
      return "the probability of class 1";
    case OutputKind::kValue:
      return "a value, not a class";
  }
  return {};
}

std::shared_ptr<const Model> with_logits(std::shared_ptr<const Model> model, OutputKind asked, const at::Tensor& inputs) {
  // What the model itself knows was found with the asked kind in mind: a sigmoid that was cut leaves no probability.
  OutputKind kind = model->output_kind() == OutputKind::kAuto ? asked : model->output_kind();
  if (kind == OutputKind::kLogits) return model;
  const at::NoGradGuard no_graph;
  if (kind == OutputKind::kAuto) {  // one sample mostly tells; all of them would cost a pass of their own
    const at::Tensor first = model->logits(inputs.slice(0, 0, 1).to(at::TensorOptions(model->device()).dtype(model->dtype())));
    const bool several = first.dim() == 2 && first.size(0) == 1 && first.size(1) > 1;
    if (several && guess_output_kind(first, model->name()) == OutputKind::kLogits) return model;
  }
  const at::Tensor some = inputs.slice(0, 0, kSamplesSeen);
  const at::Tensor given = model->logits(some.to(at::TensorOptions(model->device()).dtype(model->dtype())));
  const bool several = given.dim() == 2 && given.size(1) > 1;
  if (several && kind == OutputKind::kLogit && asked != kind) kind = OutputKind::kLogits;  // what went into several sigmoids
  if (const std::string wrong = wrong_outputs(given.sizes(), some.size(0), kind); !wrong.empty())
    input_error("{} {}", model->name(), wrong);
  if (kind == OutputKind::kAuto) {
    kind = guess_output_kind(given, model->name());
    if (kind != OutputKind::kLogits)
      log_warning("{}: what it gives is taken as {} (output kind {})", model->name(), output_words(kind), output_kind_name(kind));
  }
  if (kind == OutputKind::kLogits) return model;
  return std::make_shared<reading::ReadOutputs>(std::move(model), kind);
}

at::Tensor class_scores(const at::Tensor& logits, const at::Tensor& classes) {
  const at::Tensor rows = logits.to(at::kDouble);
  return (rows.size(1) == 1 ? rows : at::softmax(rows, 1)).gather(1, classes.unsqueeze(1)).squeeze(1);
}

}  // namespace holdfast::model

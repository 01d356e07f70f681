#include "path_penalty.h"

#include <algorithm>
#include <memory>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "holdfast/core/torch.h"
#include "holdfast/explain/batch_rows.h"
#include "holdfast/model/model.h"
#include "holdfast/train/objective.h"

namespace holdfast::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Retraced : torch::CustomClassHolder {
  Retraced(Path along, std::vector<Path::Block> cut) : path(std::move(along)), blocks(std::move(cut)) {}
  Path path;
  std::vector<Path::Block> blocks;
};

// The sum of the gradients of some blocks as one step of the graph: its backward pass makes each block's graph again and drops
// it.
class RetracedSum : public torch::autograd::Function<RetracedSum> {
 public:
  static at::Tensor forward(AutogradContext* context, const c10::intrusive_ptr<Retraced>& retraced, const at::Tensor& moved,
                            at::TensorList parameters) {
    variable_list saved{moved};
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(saved);
    context->saved_data["retraced"] = c10::IValue::make_capsule(retraced);
    at::Tensor sum;
    for (const Path::Block& block : retraced->blocks) {
      const at::Tensor part = retraced->path.trace(moved.detach(), block, /*create_graph=*/false).gradients;
      sum = sum.defined() ? sum.add_(part) : part;
    }
    return sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& cotangents) {
    const at::AutoGradMode with_graph(true);
    const auto retraced = c10::static_intrusive_pointer_cast<Retraced>(context->saved_data["retraced"].toCapsule());
    variable_list saved = context->get_saved_variables(), sources;
    saved[0] = saved[0].detach().requires_grad_(context->needs_input_grad(0));
    std::vector<std::size_t> places;  // among `saved`
    for (std::size_t i = 0; i < saved.size(); ++i) {
      if (!context->needs_input_grad(i)) continue;
      sources.push_back(saved[i]);
      places.push_back(i);
    }
    variable_list gradients(1 + saved.size());  // the first is that of no tensor
    for (const Path::Block& block : retraced->blocks) {
      const at::Tensor part = retraced->path.trace(saved[0], block, /*create_graph=*/true).gradients;
      const variable_list more = torch::autograd::grad({part}, sources, {cotangents[0]}, false, false, /*allow_unused=*/true);
      for (std::size_t i = 0; i < places.size(); ++i) {
        at::Tensor& sum = gradients[1 + places[i]];
        if (more[i].defined()) sum = sum.defined() ? sum + more[i] : more[i];
      }
    }
    return gradients;
  }
};

variable_list trainable(const Network& network) {
  variable_list tensors;
  for (const Parameter& parameter : network.parameters()) {
    if (parameter.trainable && parameter.tensor.requires_grad()) tensors.push_back(parameter.tensor);
  }
  return tensors;
}

bool is_stack(const Network& network) {
  return std::ranges::any_of(network.nodes(), [](const Node& node) {
    const auto* linear = std::get_if<op::Linear>(&node.operation);
    return linear != nullptr && linear->weight.dim() == 3;
  });
}

// [n] -> [1, n, 1, ...]: beside points [B, n, sample...].
at::Tensor along_path(const at::Tensor& values, std::int64_t dims) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(dims), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

Path::Settings path_settings(const Options& options, const char* steps) {
  return {.steps = options.integer(steps), .memory = options.integer("memory") << 20};
}

}  // namespace

Path::Path(Trainee& trainee, const TrainBatch& batch, Settings settings)
    : start_(batch.inputs), labels_(batch.labels), settings_(settings) {
  const std::int64_t first = settings.with_start ? 0 : 1, points = settings.steps + 1 - first, samples = start_.size(0);
  std::int64_t block = points;
  if (const Network* network = trainee.network(); network != nullptr && !is_stack(*network)) {
    const std::shared_ptr<const Model> model = make_model(*network);  // shares the weights
    const BatchRows rows({.model = *model, .samples = {.inputs = batch.inputs}, .memory = settings.memory});
    held_ = rows.all_fit(samples * points, Pass::kPullback);
    block = even_part(points, std::max<std::int64_t>(1, rows.most(Pass::kPullback) / samples));
    parameters_ = trainable(*network);
    logits_ = [model](const at::Tensor& inputs) { return model->logits(inputs); };
  } else {
    // A stack of networks runs all its rows at once, and so does a model that cannot be looked into.
    logits_ = [&trainee](const at::Tensor& inputs) { return trainee.logits(inputs); };
  }
  for (std::int64_t at = first; at <= settings.steps; at += block)
    blocks_.push_back({at, std::min(block, settings.steps + 1 - at)});
}

Path::Traced Path::trace(const at::Tensor& moved, const Block& block, bool create_graph) const {
  const at::AutoGradMode with_graph(true);
  const at::Tensor shares =
      at::arange(block.first, block.first + block.count, start_.options()) / static_cast<double>(settings_.steps);
  // Sample by sample, each with its points: rows of a stack's networks stay together.
  at::Tensor rows =
      at::addcmul(start_.unsqueeze(1), (moved - start_).unsqueeze(1), along_path(shares, start_.dim() + 1)).flatten(0, 1);
  if (!rows.requires_grad()) rows.requires_grad_();
  const at::Tensor logits = logits_(rows);
  const at::Tensor losses = cross_entropies(logits, labels_.repeat_interleave(block.count));
  at::Tensor gradients = torch::autograd::grad({losses.sum()}, {rows}, {}, create_graph, create_graph)[0];
  gradients = gradients.unflatten(0, {start_.size(0), block.count});
  if (block.first == 0) gradients = gradients.slice(1, 1);  // x itself is no point of the sum
  return {gradients.sum(1), logits.unflatten(0, {start_.size(0), block.count})};
}

PathValues Path::to(const at::Tensor& moved) const {
  PathValues values;
  at::Tensor sum;
  std::vector<Block> retraced;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const bool last = i + 1 == blocks_.size(), starts = i == 0 && settings_.with_start;
    if (!held_ && !last && !starts) {
      retraced.push_back(blocks_[i]);
      continue;
    }
    const Traced traced = trace(moved, blocks_[i], /*create_graph=*/true);
    sum = sum.defined() ? sum + traced.gradients : traced.gradients;
    if (starts) values.start_logits = traced.logits.select(1, 0);
    if (last) values.end_logits = traced.logits.select(1, -1);
  }
  if (!retraced.empty())
    sum = sum + RetracedSum::apply(c10::make_intrusive<Retraced>(*this, retraced), moved, at::TensorList(parameters_));
  const at::Tensor integrated = (moved - start_) * sum / static_cast<double>(settings_.steps);
  values.penalty = integrated.flatten(1).abs().sum(1);
  return values;
}

std::vector<OptionSpec> path_options() {
  return {{"path_steps", 50, at_least(1), "points of the line from a sample to its worst point, in the penalty"},
          {"inner_path_steps", 10, at_least(1), "the same while the worst point is sought"},
          {"memory", 2048, at_least(1), "MiB that the path's graph may take; beyond that parts of it are made twice"}};
}

std::vector<OptionSpec> PathObjective::options_with(OptionSpec weight) {
  std::vector<OptionSpec> options{std::move(weight)};
  for (auto& part : {InnerMaximum::options(), path_options()}) options.insert(options.end(), part.begin(), part.end());
  return options;
}

PathObjective::PathObjective(const Options& options, const std::vector<std::string>& weights)
    : Objective(options.canonical(), weights),
      weight_(options.real("weight")),
      inner_(InnerMaximum::of(options)),
      inner_path_(path_settings(options, "inner_path_steps")),
      path_(path_settings(options, "path_steps")) {}

std::vector<Term> PathObjective::terms(double) const {
  return {{.name = "ce"}, {.name = "penalty", .weight = weight_}, {.name = "robust_accuracy", .weight = 0}};
}

}  // namespace holdfast::train

// steady_map: adversarial training in which the explanation must hold as well as the prediction.
//     CE(x') + weight * D(x, x') + apart * B(x, y)          D(x, x') = 1 - cosine(a(x), a(x'))     B(x, y) = cosine(a(x), a(y))
// x': where the first two are largest together in an l_inf ball round x (inner_maximum.h). y: the next sample of the batch: a map
// that is the same for every sample holds for nothing, and B keeps maps apart. a(x): magnitudes of the map of the label's logit,
// channels summed, to the power `power` (1/2: D is half the squared Hellinger distance of maps scaled to sum 1, in which the many
// middling features count as much as the few large ones); the gradient (saliency), the integrated gradients from zero in
// `path_steps` points, or the mean of both distances. With `window` w > 0 maps are first averaged over (2w+1)^2 windows, so that
// a shift by w pixels costs little: what LENS measures. Our own. Near to it: Ivankay et al., "FAR: A General Framework for
// Attributional Robustness", 2020, which penalises the Pearson distance of whole maps.
//
// The last point of the path is x' itself: prediction, saliency and integrated gradients share one pass. Gradients of a
// piecewise-linear network do not change inside a linear region, so that nothing leads to a point where its map differs: the
// inner maximisation runs on a copy with softplus for its hinges, `sharpness` over the deviation of each layer's inputs. The loss
// is that of the network itself. Both weights rise in a line over the share `ramp` of the training: a map that is held before the
// network has learnt anything is held for nothing. The defaults are those of lens/beyond (docs/training-appendix.md says how
// they were chosen; lens/ablation, what each brings).
#include <algorithm>

#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"
#include "holdfast/train/objective.h"
#include "inner_maximum.h"

namespace holdfast::train::steady_map {

std::vector<OptionSpec> options_of() {
  std::vector<OptionSpec> options{
      {"weight", 6.0, at_least(0), "of the map's change, in the loss and in what the worst point maximises"},
      {"apart", 2.0, at_least(0), "weight of the likeness of different samples' maps"},
      {"explanation", "saliency", one_of({"saliency", "integrated_gradients", "both"}), "whose map must hold"},
      {"path_steps", 4, at_least(1), "points of integrated gradients, where their map must hold"},
      {"window", 0, at_least(0), "radius in pixels within which a map's changes hardly count"},
      {"power", 0.5, above(0), "of the magnitudes, before maps are compared; less than 1: large ones count less"},
      {"ramp", 0.2, between(0, 1), "share of the training over which the weights rise"},
      {"sharpness", 10.0, above(0), "of the softplus that stands for hinges while the worst point is sought"}};
  for (OptionSpec& option : InnerMaximum::options()) options.push_back(std::move(option));
  return options;
}

const MethodInfo kInfo{
    .name = "steady_map",
    .summary = "adversarial training with a penalty on the change of the explanation at the worst point",
    .options = options_of(),
    .presets = chen_presets(),
    .needs = {"gradients of gradients"},
    .notes =
        "A step of the inner maximisation costs path_steps points (one for explanation=saliency), each about three gradient "
        "evaluations. robust_accuracy in the history is that at the worst point of prediction and map together."};

using Logits = std::function<at::Tensor(const at::Tensor&)>;

struct Settings {
  bool saliency, integrated;
  std::int64_t path_steps, window;
  double power;
};

struct Explained {
  std::vector<at::Tensor> maps;  // folded, [B, features]
  at::Tensor logits;             // at the samples, [B, classes]
};

// What is compared, [B, features]. Powers below 1 have no slope at 0, where integrated gradients of dark pixels lie: a thousandth
// of the mean keeps away from it.
at::Tensor folded(const at::Tensor& map, const Settings& settings, const Layout& layout) {
  at::Tensor magnitudes = map.abs();
  if (layout.kind == Layout::Kind::kGrid) {
    magnitudes = magnitudes.sum(1, /*keepdim=*/true);
    if (settings.window > 0) magnitudes = at::avg_pool2d(magnitudes, 2 * settings.window + 1, 1, settings.window);
  }
  magnitudes = magnitudes.flatten(1);
  if (settings.power == 1) return magnitudes;
  return (magnitudes + 1e-3 * magnitudes.mean(1, /*keepdim=*/true) + 1e-12).pow(settings.power);
}

// Differentiable by `inputs` where they require gradients, and by the parameters.
Explained explain(const Logits& logits_of, const at::Tensor& inputs, const TrainBatch& batch, const Settings& settings) {
  const at::AutoGradMode with_graph(true);
  const std::int64_t count = settings.integrated ? settings.path_steps : 1;
  std::vector<std::int64_t> beside(static_cast<std::size_t>(inputs.dim() + 1), 1);
  beside[1] = count;
  const at::Tensor shares = at::arange(1, count + 1, inputs.options()).div_(static_cast<double>(count)).view(beside);
  at::Tensor rows = (inputs.unsqueeze(1) * shares).flatten(0, 1);  // sample by sample: rows of a stack's networks stay together
  if (!rows.requires_grad()) rows.requires_grad_();
  const at::Tensor logits = logits_of(rows);
  const at::Tensor of_label = logits.gather(1, batch.labels.repeat_interleave(count).unsqueeze(1)).sum();
  const at::Tensor gradients =
      torch::autograd::grad({of_label}, {rows}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0].unflatten(0, {-1, count});
  Explained explained{.maps = {}, .logits = logits.unflatten(0, {-1, count}).select(1, -1)};
  const Layout& layout = batch.schema.layout;
  if (settings.saliency) explained.maps.push_back(folded(gradients.select(1, -1), settings, layout));
  if (settings.integrated) explained.maps.push_back(folded(inputs * gradients.mean(1), settings, layout));
  return explained;
}

// Mean of the cosine over the kinds of maps, [B]. Maps that are zero everywhere are like nothing.
at::Tensor likeness(const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second) {
  at::Tensor sum;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const at::Tensor cosine = at::cosine_similarity(first[i], second[i], 1, 1e-12);
    sum = sum.defined() ? sum + cosine : cosine;
  }
  return sum / static_cast<double>(first.size());
}

at::Tensor change(const Explained& clean, const Explained& moved) {
  return 1 - likeness(clean.maps, moved.maps);
}

// Compares the map of every sample with that of the next sample of its network.
at::Tensor likeness_between(const Explained& explained, std::int64_t networks) {
  std::vector<at::Tensor> next;
  for (const at::Tensor& map : explained.maps) next.push_back(map.unflatten(0, {networks, -1}).roll(-1, 1).flatten(0, 1));
  return likeness(explained.maps, next);
}

// A stack's batch holds the samples of one network after those of the other.
std::int64_t networks_in(const Trainee& trainee) {
  if (trainee.network() == nullptr) return 1;
  for (const Node& node : trainee.network()->nodes()) {
    const auto* linear = std::get_if<op::Linear>(&node.operation);
    if (linear != nullptr && linear->weight.dim() == 3) return linear->weight.size(0);
  }
  return 1;
}

// The network with softplus for its hinges; as it is where it has none or cannot be looked into.
Logits smoothed(Trainee& trainee, const at::Tensor& inputs, double sharpness) {
  const Network* network = trainee.network();
  const auto hinge = [](const Node& node) {
    const auto* activation = std::get_if<op::Activation>(&node.operation);
    return activation != nullptr && model::is_piecewise_linear(*activation);
  };
  if (network == nullptr || std::ranges::none_of(network->nodes(), hinge))
    return [&trainee](const at::Tensor& rows) { return trainee.logits(rows); };
  Rule rule;
  const at::NoGradGuard no_graph;
  for (const at::Tensor& before : network->run(inputs, {.keep_pre_activations = true}).pre_activations)
    rule.softplus_beta.push_back(sharpness / std::max(before.std(/*unbiased=*/false).item<double>(), 1e-6));
  return [network, rule](const at::Tensor& rows) { return network->run(rows, rule).logits; };
}

class SteadyMap final : public Objective {
 public:
  explicit SteadyMap(const Options& options)  // its weight changes the worst point: it is no weight alone
      : Objective(options.canonical()),
        weight_(options.real("weight")),
        apart_(options.real("apart")),
        ramp_(options.real("ramp")),
        sharpness_(options.real("sharpness")),
        settings_{.saliency = options.word("explanation") != "integrated_gradients",
                  .integrated = options.word("explanation") != "saliency",
                  .path_steps = options.integer("path_steps"),
                  .window = options.integer("window"),
                  .power = options.real("power")},
        inner_(InnerMaximum::of(options)) {}

  bool compares_samples() const override { return true; }

  void check_samples(const Schema& schema) const override {
    if (settings_.window > 0 && schema.layout.kind != Layout::Kind::kGrid)
      usage_error("{}: window={} needs images; the samples are a {}", name(), settings_.window, schema.layout.describe());
  }

  std::vector<Term> terms(double progress) const override {
    const double share = risen(progress);
    return {{.name = "ce"},
            {.name = "change", .weight = share * weight_},
            {.name = "between", .weight = share * apart_},
            {.name = "robust_accuracy", .weight = 0}};
  }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    const at::Tensor moved = worst_point(trainee, batch);
    const Logits exact = [&](const at::Tensor& rows) { return trainee.logits(rows); };
    const Explained clean = explain(exact, batch.inputs, batch, settings_), there = explain(exact, moved, batch, settings_);
    const at::Tensor logits = trainee.modes_differ() ? trainee.training_logits(moved, batch.seed) : there.logits;
    return {cross_entropies(logits, batch.labels), change(clean, there), likeness_between(clean, networks_in(trainee)),
            hits(logits, batch.labels)};
  }

 private:
  double risen(double progress) const { return ramp_ > 0 ? std::min(1.0, progress / ramp_) : 1; }

  at::Tensor worst_point(Trainee& trainee, const TrainBatch& batch) const {
    const double now = risen(batch.progress) * weight_;
    if (now == 0) {
      return inner_.find(batch, [&](const at::Tensor& point) { return cross_entropies(trainee.logits(point), batch.labels); });
    }
    const Logits smooth = smoothed(trainee, batch.inputs, sharpness_);
    Explained clean = explain(smooth, batch.inputs, batch, settings_);
    for (at::Tensor& map : clean.maps) map = map.detach();
    return inner_.find(batch, [&](const at::Tensor& point) {
      const Explained here = explain(smooth, point, batch, settings_);
      return cross_entropies(here.logits, batch.labels) + now * change(clean, here);
    });
  }

  double weight_, apart_, ramp_, sharpness_;
  Settings settings_;
  InnerMaximum inner_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<SteadyMap>(kInfo);
}

}  // namespace holdfast::train::steady_map

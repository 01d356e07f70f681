#include "holdfast/data/synthetic.h"

#include <cmath>
#include <numbers>

#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/splits.h"

namespace holdfast::data::synthetic {

const MethodInfo kInfo{
    .name = "synthetic",
    .summary = "samples of a function whose attributions are known exactly",
    .options = {{"samples", 2000, at_least(10), "how many"},
                {"linear", 4, at_least(0), "features with a linear effect"},
                {"additive", 4, at_least(0), "features with a curved effect of their own"},
                {"pairs", 2, at_least(0), "pairs of features that only matter together"},
                {"noise", 4, at_least(0), "features without any effect"},
                {"levels", 3, at_least(0), "levels of a one-hot category; 0 for none"},
                {"correlation", 0.5, between(0, 0.999), "between the normal scores of any two features"},
                {"strength", 2.0, above(0), "scale of the logit: higher makes labels more certain"},
                {"function", 0, at_least(0), "which weights"}},
    .notes = "include/holdfast/data/synthetic.h gives the formula; SyntheticFunction gives gradients and contributions"};

// Gives weights with magnitudes in [1/2, 3/2] and random signs.
at::Tensor random_weights(std::int64_t count, double strength, std::uint64_t seed, std::string_view purpose) {
  RandomStream stream(seed, purpose);
  std::vector<double> weights;
  for (std::int64_t i = 0; i < count; ++i) {
    const double magnitude = stream.uniform(0.5, 1.5);
    weights.push_back(strength * (stream.uniform() < 0.5 ? -magnitude : magnitude));
  }
  return at::tensor(weights, at::kDouble);
}

double normal_distribution(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

// Gives a mask of the columns that take the first of the two shapes.
at::Tensor takes_sine(const at::Tensor& u) {
  return at::arange(u.size(1), u.options()).remainder(2) == 0;
}

}  // namespace holdfast::data::synthetic

namespace holdfast::data {

struct SyntheticFunction::Parts {
  at::Tensor linear, additive;         // u
  at::Tensor pair_first, pair_second;  // u
  at::Tensor noise, levels;            // x
};

SyntheticFunction::SyntheticFunction(const Options& options)
    : linear_(options.integer("linear")),
      additive_(options.integer("additive")),
      pairs_(options.integer("pairs")),
      noise_(options.integer("noise")),
      levels_(options.integer("levels")) {
  if (levels_ == 1) usage_error("synthetic(levels=1): a category needs at least 2 levels, or 0 for none");
  const auto seed = static_cast<std::uint64_t>(options.integer("function"));
  const double strength = options.real("strength");
  linear_weights_ = synthetic::random_weights(linear_, strength, seed, "synthetic.linear");
  additive_weights_ = synthetic::random_weights(additive_, strength, seed, "synthetic.additive");
  pair_weights_ = synthetic::random_weights(pairs_, strength, seed, "synthetic.pairs");
  level_weights_ = synthetic::random_weights(levels_, strength, seed, "synthetic.levels");
  if (levels_ > 0) level_weights_ = level_weights_ - level_weights_.mean();

  const auto add = [&](std::string name, double step = 0) {
    schema_.features.push_back({.name = std::move(name), .low = 0, .high = 1, .step = step});
  };
  for (std::int64_t i = 0; i < linear_; ++i) add(fmt::format("linear_{}", i));
  for (std::int64_t i = 0; i < additive_; ++i) add(fmt::format("additive_{}", i));
  for (const char side : {'a', 'b'}) {
    for (std::int64_t i = 0; i < pairs_; ++i) add(fmt::format("pair_{}{}", i, side));
  }
  for (std::int64_t i = 0; i < noise_; ++i) add(fmt::format("noise_{}", i));
  Group group{.name = "category"};
  for (std::int64_t i = 0; i < levels_; ++i) {
    group.columns.push_back(static_cast<std::int64_t>(schema_.features.size()));
    group.levels.push_back(fmt::format("{}", i));
    add(fmt::format("category={}", i), 1);
  }
  if (levels_ > 0) schema_.groups.push_back(std::move(group));
  if (schema_.features.empty()) usage_error("synthetic: no features are asked for");
  schema_.layout = Layout::vector(static_cast<std::int64_t>(schema_.features.size()));
  schema_.classes = {"0", "1"};
}

SyntheticFunction SyntheticFunction::of(const std::string& call) {
  return SyntheticFunction(datasets().options(call));
}

SyntheticFunction::Parts SyntheticFunction::cut(const at::Tensor& x) const {
  HOLDFAST_CHECK(x.dim() == 2 && x.size(1) == schema_.layout.inputs());
  const std::vector<at::Tensor> parts = x.split_with_sizes({linear_, additive_, pairs_, pairs_, noise_, levels_}, 1);
  const auto centred = [](const at::Tensor& part) { return 2 * part - 1; };
  return {centred(parts[0]), centred(parts[1]), centred(parts[2]), centred(parts[3]), parts[4], parts[5]};
}

at::Tensor SyntheticFunction::relevant() const {
  const auto influential = linear_ + additive_ + 2 * pairs_;
  return at::cat({at::ones({influential}, at::kBool), at::zeros({noise_}, at::kBool), at::ones({levels_}, at::kBool)});
}

at::Tensor SyntheticFunction::baseline() const {
  const std::int64_t continuous = schema_.layout.inputs() - levels_;
  const double level = levels_ > 0 ? 1.0 / static_cast<double>(levels_) : 0;
  return at::cat({at::full({continuous}, 0.5, at::kDouble), at::full({levels_}, level, at::kDouble)});
}

at::Tensor SyntheticFunction::logits(const at::Tensor& x) const {
  const Parts part = cut(x);
  const auto weighted = [&](const at::Tensor& values, const at::Tensor& weights) {
    return (values * weights.to(x.scalar_type())).sum(1);
  };
  const at::Tensor shaped =
      at::where(synthetic::takes_sine(part.additive), (std::numbers::pi * part.additive).sin(), part.additive.square());
  return weighted(part.linear, linear_weights_) + weighted(shaped, additive_weights_) +
         weighted(part.pair_first * part.pair_second, pair_weights_) + weighted(part.levels, level_weights_);
}

at::Tensor SyntheticFunction::gradients(const at::Tensor& x) const {
  const Parts part = cut(x);
  const auto of = [&](const at::Tensor& weights) { return weights.to(x.scalar_type()); };
  const at::Tensor slope = at::where(synthetic::takes_sine(part.additive),
                                     std::numbers::pi * (std::numbers::pi * part.additive).cos(), 2 * part.additive);
  // u = 2x - 1 doubles every derivative but the levels'.
  return at::cat({2 * of(linear_weights_).expand_as(part.linear), 2 * of(additive_weights_) * slope,
                  2 * of(pair_weights_) * part.pair_second, 2 * of(pair_weights_) * part.pair_first, at::zeros_like(part.noise),
                  of(level_weights_).expand_as(part.levels)},
                 1);
}

at::Tensor SyntheticFunction::contributions(const at::Tensor& x) const {
  const Parts part = cut(x);
  const auto of = [&](const at::Tensor& weights) { return weights.to(x.scalar_type()); };
  const at::Tensor shaped =
      at::where(synthetic::takes_sine(part.additive), (std::numbers::pi * part.additive).sin(), part.additive.square());
  const at::Tensor shared = of(pair_weights_) * part.pair_first * part.pair_second / 2;
  const double middle = levels_ > 0 ? 1.0 / static_cast<double>(levels_) : 0;
  return at::cat({of(linear_weights_) * part.linear, of(additive_weights_) * shaped, shared, shared, at::zeros_like(part.noise),
                  of(level_weights_) * (part.levels - middle)},
                 1);
}

}  // namespace holdfast::data

namespace holdfast::data::synthetic {

class Synthetic final : public DatasetLoader {
 public:
  explicit Synthetic(const Options& options)
      : function_(options), samples_(options.integer("samples")), correlation_(options.real("correlation")) {}

  Dataset load(const LoadContext& context) const override {
    Dataset dataset;
    dataset.schema = function_.schema();
    const std::int64_t levels =
        dataset.schema.groups.empty() ? 0 : static_cast<std::int64_t>(dataset.schema.groups[0].columns.size());
    const std::int64_t continuous = dataset.schema.layout.inputs() - levels;
    dataset.inputs = at::zeros({samples_, continuous + levels}, at::kFloat);
    auto values = dataset.inputs.accessor<float, 2>();
    for (std::int64_t i = 0; i < samples_; ++i) {
      RandomStream stream(context.seed, "synthetic.sample", static_cast<std::uint64_t>(i));
      const double common = stream.normal();
      const auto uniform = [&] {
        return normal_distribution(std::sqrt(correlation_) * common + std::sqrt(1 - correlation_) * stream.normal());
      };
      for (std::int64_t j = 0; j < continuous; ++j) values[i][j] = static_cast<float>(uniform());
      if (levels > 0)
        values[i][continuous + std::min(levels - 1, static_cast<std::int64_t>(uniform() * static_cast<double>(levels)))] = 1;
    }
    label(dataset, context.seed);
    return dataset;
  }

 private:
  void label(Dataset& dataset, std::uint64_t seed) const {
    const at::Tensor probabilities = function_.logits(dataset.inputs.to(at::kDouble)).sigmoid();
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < samples_; ++i) {
      RandomStream stream(seed, "synthetic.label", static_cast<std::uint64_t>(i));
      labels.push_back(stream.uniform() < probabilities[i].item<double>() ? 1 : 0);
    }
    Split split = stratified_split(labels, seed);
    dataset.labels = at::tensor(labels, at::kLong);
    dataset.train = std::move(split.train);
    dataset.validation = std::move(split.validation);
    dataset.test = std::move(split.test);
  }

  SyntheticFunction function_;
  std::int64_t samples_;
  double correlation_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Synthetic>(kInfo);
}

}  // namespace holdfast::data::synthetic

// lens_distance: what of either top k is not within w of the other, d_k^(w), or its weighted sum over several k and w, d; or the
// same without locality, u (lens_distance.h). Ties to the lower index. The chance level is exact: S is missed by a random T
// as in lens_precision, T by S as in lens_recall.
#include "holdfast/metric/lens_distance.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "chance.h"
#include "holdfast/metric/top_k.h"
#include "set_metric.h"

namespace holdfast::metric::lens_distance_metric {

const MethodInfo kInfo{
    .name = "lens_distance",
    .summary = "share of either top k that is not within w of the other, added; lower is more alike",
    .citation = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024",
    .options = {{"k", "100", anything(), "features compared; several: 50x100x200"},
                {"w", "1", anything(), "radius of the neighbourhood; several: 0x1x2"},
                {"alpha", "", anything(), "weights of several k, as 0.5x0.3x0.2; equal ones that sum to 1 when not given"},
                {"beta", "", anything(), "weights of several w"},
                {"form", "d", one_of({"d", "u"}), "d: windows of radius w; u: none, an upper bound that is a pseudometric"}}};

// Counts the members of S \ N_w(T) and of T \ N_w(S).
class UnmatchedFeatures {
 public:
  UnmatchedFeatures(const MapView& a, const MapView& b, std::int64_t k) : schema_(a.schema), k_(k) {
    const Neighborhood shape(schema_, 0);
    for (const auto& [set, map] : {std::pair{&a_, &a}, std::pair{&b_, &b}}) {
      shape.reset(*set);
      top_k_bits(map->values, k, *set);
    }
  }
  double share(std::int64_t w) const {
    const std::int64_t near = a_.common(grown(b_, w)) + b_.common(grown(a_, w));
    return static_cast<double>(2 * k_ - near) / static_cast<double>(k_);
  }

 private:
  FeatureSet grown(FeatureSet set, std::int64_t w) const {
    Neighborhood(schema_, w).grow(set);
    return set;
  }

  const Schema& schema_;
  std::int64_t k_;
  FeatureSet a_, b_;
};

double weighted(const MapView& a, const MapView& b, const LensWeights& weights, bool local) {
  double sum = 0;
  for (const auto& [k, alpha] : weights.k) {
    const UnmatchedFeatures sets(a, b, k);
    for (const auto& [w, beta] : weights.w) sum += alpha * beta * sets.share(local ? w : 0);
  }
  return sum;
}

// The mean of one term against a map in random order.
double chance_of_term(const MapView& original, std::int64_t k, std::int64_t w) {
  const Neighborhood near(original.schema, w);
  FeatureSet set;
  near.reset(set);
  top_k_bits(original.values, k, set);
  const double precision = chance_of_being_near(set, near, k);
  near.grow(set);
  return 2 - precision - static_cast<double>(set.count()) / static_cast<double>(original.size());
}

template <class Number>
std::vector<Number> parse_list(const std::string& text, const char* option) {
  std::vector<Number> numbers;
  for (const char* at = text.data(); at < text.data() + text.size(); ++at) {
    Number number{};
    const auto [end, status] = std::from_chars(at, text.data() + text.size(), number);
    const bool ends = end == text.data() + text.size() || (*end == 'x' && end + 1 < text.data() + text.size());
    if (status != std::errc() || !ends)
      usage_error("lens_distance({}={}): expected numbers with x between, such as 50x100", option, text);
    numbers.push_back(number);
    at = end;
  }
  return numbers;
}

std::vector<Weighted> parse_weighted(const Options& options, const char* sizes, const char* weights, std::int64_t least) {
  const std::vector<std::int64_t> values = parse_list<std::int64_t>(options.word(sizes), sizes);
  std::vector<double> shares = parse_list<double>(options.word(weights), weights);
  for (const std::int64_t value : values) {
    if (value < least) usage_error("lens_distance({}={}): {} must be >= {}", sizes, options.word(sizes), sizes, least);
  }
  if (shares.empty()) shares.assign(values.size(), 1 / static_cast<double>(values.size()));
  if (shares.size() != values.size()) {
    usage_error("lens_distance: {} has {} weights for {} values of {}", weights, shares.size(), values.size(), sizes);
  }
  std::vector<Weighted> result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(shares[i] >= 0) || !std::isfinite(shares[i]))
      usage_error("lens_distance({}={}): weights must be >= 0", weights, options.word(weights));
    result.push_back({values[i], shares[i]});
  }
  return result;
}

// The name has k and w always, the other options where they were changed.
std::string name_of(const Options& options) {
  std::string name = fmt::format("lens_distance(k={},w={}", options.word("k"), options.word("w"));
  for (const char* option : {"alpha", "beta"}) {
    if (!options.word(option).empty()) name += fmt::format(",{}={}", option, options.word(option));
  }
  return name + (options.word("form") == "u" ? ",form=u)" : ")");
}

class LensDistance final : public Metric {
 public:
  explicit LensDistance(const Options& options)
      : Metric(name_of(options)),
        weights_{parse_weighted(options, "k", "alpha", 1), parse_weighted(options, "w", "beta", 0)},
        local_(options.word("form") == "d") {
    for (const auto& [k, weight] : weights_.k) largest_k_ = std::max(largest_k_, k);
  }

  Direction direction() const override { return Direction::kLowerIsMoreAlike; }
  void check(const Schema& schema) const override { check_k(name(), largest_k_, schema); }
  double compare(const MapView& original, const MapView& perturbed) const override {
    return weighted(original, perturbed, weights_, local_);
  }
  std::optional<double> chance(const MapView& original) const override {
    double sum = 0;
    for (const auto& [k, alpha] : weights_.k) {
      for (const auto& [w, beta] : weights_.w) sum += alpha * beta * chance_of_term(original, k, local_ ? w : 0);
    }
    return sum;
  }
  double perfect() const override { return 0; }
  double floor() const override {
    double alphas = 0, betas = 0;
    for (const auto& [k, weight] : weights_.k) alphas += weight;
    for (const auto& [w, weight] : weights_.w) betas += weight;
    return 2 * alphas * betas;
  }

  std::vector<std::int64_t> top_set(const MapView& map) const override { return top_k_set(map.values, largest_k_); }
  std::optional<std::int64_t> top_count() const override { return largest_k_; }
  Aim aim() const override {
    const std::int64_t radius = local_ ? weights_.w.front().size : 0;
    return {.at = radius > 0 ? Aim::At::kNearTop : Aim::At::kTop, .radius = radius};
  }

 private:
  LensWeights weights_;
  bool local_;
  std::int64_t largest_k_ = 0;
};

void add_to(Registry<Metric>& registry) {
  registry.add<LensDistance>(kInfo);
}

}  // namespace holdfast::metric::lens_distance_metric

namespace holdfast::metric {

double lens_distance(const MapView& a, const MapView& b, const LensWeights& weights) {
  return lens_distance_metric::weighted(a, b, weights, /*local=*/true);
}

double top_distance(const MapView& a, const MapView& b, const LensWeights& weights) {
  return lens_distance_metric::weighted(a, b, weights, /*local=*/false);
}

}  // namespace holdfast::metric

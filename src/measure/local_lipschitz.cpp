// local_lipschitz: the steepest change of the map between the sample and a point near it.
//     max over y of ||I(y) - I(x)|| / ||y - x||          y Gaussian around x
// Alvarez-Melis, Jaakkola, "On the Robustness of Interpretability Methods", ICML workshop 2018. The paper maximises over a ball
// by optimisation; the field samples, and so does this.
//
// normalise says in which units maps are: none is the paper's, max divides each map by its own largest magnitude, so that
// models of different steepness can be compared. batch is what Quantus 0.6 does by default: maps of `batch` consecutive
// samples are divided by the largest magnitude among all of them, so a sample's value depends on its neighbours in the array
// and on the batch size. It breaks the rule that samples never mix and is there for comparison alone.
//
// quantus=true: normalise=batch, points with another prediction taken in, 1e-10 added to the distance of the inputs.

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"
#include "stability.h"

namespace holdfast::measure::local_lipschitz {

const MethodInfo kInfo{.name = "local_lipschitz",
                       .summary = "largest change of the map for the distance of the inputs, at points around the sample",
                       .citation = "Alvarez-Melis, Jaakkola, On the Robustness of Interpretability Methods, ICML workshop 2018",
                       .options = stability_options(
                           "gaussian", {{"norm", "l2", one_of({"l2", "l1", "linf"}), "of differences of maps"},
                                        {"input_norm", "l2", one_of({"l2", "l1", "linf"}), "of differences of inputs"},
                                        {"normalise", "none", one_of({"none", "max", "batch"}),
                                         "maps as they are, divided by their largest magnitude, or by that of a whole batch"},
                                        {"batch", 64, at_least(1), "samples of a batch; normalise=batch"}})};

constexpr double kQuantusAdded = 1e-10;

// What is kept of a point until the batch's largest magnitudes are known: ||a - b||^2 = a.a - 2 a.b + b.b after any scaling.
enum Term { kAA, kAB, kBB, kLargestA, kLargestB, kDistance, kTerms };

at::Tensor largest_magnitude(const at::Tensor& maps) {
  return maps.abs().amax({-1});
}

class LocalLipschitz final : public Stability {
 public:
  explicit LocalLipschitz(const Options& options)
      : Stability(options, Over::kMax, Flips::kKeep),
        norm_(norm_order(options.word("norm"))),
        input_norm_(norm_order(options.word("input_norm"))),
        normalise_(quantus() && !options.given("normalise") ? "batch" : options.word("normalise")),
        batch_(options.integer("batch")) {
    if (normalise_ == "batch" && options.word("norm") != "l2")
      usage_error("{}: normalise=batch is for norm=l2, as in Quantus", name());
  }

 protected:
  at::Tensor terms(const Nearby& nearby) const override {
    const at::Tensor distance =
        norm_of(nearby.near_inputs - nearby.inputs, input_norm_).to(at::kDouble) + (quantus() ? kQuantusAdded : 0);
    if (normalise_ == "batch") return sums(nearby, distance);
    if (normalise_ == "max") {
      const at::Tensor own = nearby.maps / largest_magnitude(nearby.maps).unsqueeze(2);
      return norm_of(nearby.near_maps / largest_magnitude(nearby.near_maps).unsqueeze(2) - own, norm_) / distance;
    }
    return norm_of(nearby.near_maps - nearby.maps, norm_) * nearby.log_scale.to(at::kDouble).exp() / distance;
  }

  at::Tensor ratios(const at::Tensor& terms) const override {
    if (normalise_ != "batch") return terms;
    at::Tensor result = at::empty({terms.size(0), terms.size(1)}, terms.options());
    for (std::int64_t begin = 0; begin < terms.size(0); begin += batch_)
      result.slice(0, begin, begin + batch_).copy_(batch_ratios(terms.slice(0, begin, begin + batch_)));
    return result;
  }

 private:
  static at::Tensor sums(const Nearby& nearby, const at::Tensor& distance) {
    const at::Tensor b = nearby.true_near_maps().to(at::kDouble), a = nearby.true_maps().to(at::kDouble);
    at::Tensor all = at::empty({b.size(0), b.size(1), kTerms}, b.options());
    all.select(2, kAA).copy_(a.square().sum(2));
    all.select(2, kAB).copy_((a * b).sum(2));
    all.select(2, kBB).copy_(b.square().sum(2));
    all.select(2, kLargestA).copy_(largest_magnitude(a));
    all.select(2, kLargestB).copy_(largest_magnitude(b));
    all.select(2, kDistance).copy_(distance);
    return all;
  }

  // Quantus explains the clean batch once and a batch of points after the other, number p of every sample: each of these batches
  // is divided by its own largest magnitude, and left as it is when that is 0.
  static at::Tensor batch_ratios(const at::Tensor& terms) {
    const auto term = [&](Term which) { return terms.select(2, which); };
    const auto largest = [](const at::Tensor& of) {
      const at::Tensor most = of.amax({0}, /*keepdim=*/true);
      return most.where(most > 0, at::ones_like(most));
    };
    const at::Tensor a = largest(term(kLargestA)), b = largest(term(kLargestB));
    const at::Tensor squared = term(kAA) / a.square() - 2 * term(kAB) / (a * b) + term(kBB) / b.square();
    return squared.clamp_min(0).sqrt() / term(kDistance);
  }

  double norm_, input_norm_;
  std::string normalise_;
  std::int64_t batch_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<LocalLipschitz>(kInfo);
}

}  // namespace holdfast::measure::local_lipschitz

// max_sensitivity and avg_sensitivity: how far the map moves, of its own size, at points around the sample.
//     max or mean over y of ||I(y) - I(x)|| / ||I(x)||          y uniform in the cube of half side `radius` around x
// Yeh et al., "On the (In)fidelity and Sensitivity of Explanations", NeurIPS 2019, definition 3; the mean: Bhatt et al.,
// "Evaluating and Aggregating Feature-based Model Explanations", IJCAI 2020. The division by the map's size is the field's
// (Captum, Quantus), not the paper's: without it a model that is twice as steep is twice as sensitive. Maps are taken as the
// explainer gives them, with their channels and signs.
//
// quantus=true: points with another prediction are taken in, and a sample with a zero map is infinite instead of undefined.

#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"
#include "stability.h"

namespace holdfast::measure::sensitivity_measures {

const char* const kYeh = "Yeh et al., On the (In)fidelity and Sensitivity of Explanations, NeurIPS 2019";

const MethodInfo kMaxInfo{.name = "max_sensitivity",
                          .summary = "largest relative change of the map at points around the sample",
                          .citation = kYeh,
                          .options = stability_options("box", {norm_option()})};

const MethodInfo kAverageInfo{.name = "avg_sensitivity",
                              .summary = "mean relative change of the map at points around the sample",
                              .citation = "Bhatt et al., Evaluating and Aggregating Feature-based Model Explanations, IJCAI 2020",
                              .options = stability_options("box", {norm_option()})};

class Sensitivity final : public Stability {
 public:
  Sensitivity(const Options& options, Over over)
      : Stability(options, over, Flips::kKeep), norm_(norm_order(options.word("norm"))) {}

 protected:
  at::Tensor terms(const Nearby& nearby) const override {
    return norm_of(nearby.near_maps - nearby.maps, norm_) / norm_of(nearby.maps, norm_);
  }

 private:
  double norm_;
};

void add_to(Registry<Measure>& registry) {
  registry.add(kMaxInfo, [](const Options& options) { return std::make_unique<Sensitivity>(options, Stability::Over::kMax); });
  registry.add(kAverageInfo,
               [](const Options& options) { return std::make_unique<Sensitivity>(options, Stability::Over::kMean); });
}

}  // namespace holdfast::measure::sensitivity_measures

// target: raises the map inside a region.
//     maximise  sum_{i in M} a_i(x'),   a = n |I| / sum |I|,   M the region
// Ghorbani, Abid, Zou, "Interpretation of Neural Networks is Fragile", AAAI 2019 (their targeted attack); settings of the LENS
// paper as presets. Directions come from a softplus surrogate, as for top_t.
//
// M is a quarter of an image by name (`region=top-left`; `center` is the middle quarter), half of one (`region=top`), or any
// mask: `mask=FILE.npy` has one number for each feature of a map, features with another number than 0 are inside. In a pair of
// images both sides have the region.

#include "feature_maps.h"
#include "gradient_attack.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "published.h"
#include "share_inside.h"

namespace holdfast::attack::target {

const MethodInfo kInfo{
    .name = "target",
    .summary = "gradient attack that raises the map inside a region",
    .citation = "Ghorbani, Abid, Zou, Interpretation of Neural Networks is Fragile, AAAI 2019",
    .options = with_walk_options(
        {{"region", "top-left",
          one_of({"top-left", "top-right", "bottom-left", "bottom-right", "center", "top", "bottom", "left", "right"}),
          "quarter or half of an image"},
         {"mask", "none", anything(), "FILE.npy with a number for each feature, not 0 inside; instead of a region"}},
        {.surrogate = "softplus"}),
    .presets = lens_presets(/*with_t=*/false),
    .needs = {"gradients of gradients", "layers, unless surrogate=none"}};

// Begin and length of a half along one axis: the first or the last, the middle one, or all of it.
std::pair<std::int64_t, std::int64_t> extent(std::int64_t size, bool first, bool last, bool middle) {
  const std::int64_t half = (size + 1) / 2;
  if (middle) return {(size - half) / 2, half};
  return first ? std::pair(std::int64_t{0}, half) : last ? std::pair(size - half, half) : std::pair(std::int64_t{0}, size);
}

// [features], 1 inside.
at::Tensor region_mask(const Layout& layout, const std::string& region) {
  const auto says = [&](const char* word) { return region.find(word) != std::string::npos; };
  const auto [y, rows] = extent(layout.height, says("top"), says("bottom"), says("center"));
  const auto [x, columns] = extent(layout.width, says("left"), says("right"), says("center"));
  at::Tensor mask = at::zeros({layout.sides, layout.height, layout.width}, at::kDouble);
  mask.narrow(1, y, rows).narrow(2, x, columns).fill_(1);
  return mask.flatten();
}

class Target final : public GradientAttack {
 public:
  explicit Target(const Options& options)
      : GradientAttack(options), region_(options.word("region")), file_(options.word("mask")) {
    if (file_ == "none") return;
    if (options.given("region")) usage_error("{}: a region and a mask are both given", name());
    mask_ = (read_inputs(file_).flatten() != 0).to(at::kDouble);
  }

  void check(const AttackTask& task) const override {
    GradientAttack::check(task);
    const Layout& layout = task.map_schema().layout;
    if (mask_.defined()) {
      check_mask(layout);
    } else if (layout.kind != Layout::Kind::kGrid) {
      usage_error("{}: a {} has no regions; write target(mask=FILE.npy)", name(), layout.describe());
    }
  }

 private:
  void check_mask(const Layout& layout) const {
    if (mask_.numel() != layout.features())
      input_error("{}: has {} numbers; a map of this data has {} features", file_, mask_.numel(), layout.features());
    const auto inside = mask_.sum().item<std::int64_t>();
    if (inside == 0 || inside == layout.features())
      input_error("{}: {} of {} features are inside; some must be and some not", file_, inside, layout.features());
  }

  std::unique_ptr<Descent> descent(const AttackTask& task, const Explanation& clean) const override {
    const Layout& layout = task.map_schema().layout;
    const at::Tensor mask = mask_.defined() ? mask_ : region_mask(layout, region_);
    const at::Tensor rows = mask.unsqueeze(0).expand({clean.maps.size(0), layout.features()});
    return share_inside(spread_features(layout, rows, clean.maps).to(clean.maps.options()), /*raise=*/true);
  }

  std::string region_, file_;
  at::Tensor mask_;  // [features]; undefined: the region
};

void add_to(Registry<Attack>& registry) {
  registry.add<Target>(kInfo);
}

}  // namespace holdfast::attack::target

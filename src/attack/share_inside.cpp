#include "share_inside.h"

#include <limits>

#include "feature_maps.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack {
namespace {

class ShareInside final : public Descent {
 public:
  ShareInside(at::Tensor mask, bool raise) : mask_(std::move(mask)), raise_(raise) {}

  // d share / d I_i = sign(I_i) (mask_i - share) / sum |I|. The divisor is left out: steps have the length they have.
  at::Tensor gradient(Linearization& here, const ExplainTask&) override {
    const at::Tensor& maps = here.at().maps;
    const at::Tensor magnitudes = maps.abs();
    const at::Tensor total = magnitudes.flatten(1).sum(1).clamp_min(std::numeric_limits<float>::min());
    const at::Tensor share = (magnitudes * mask_).flatten(1).sum(1) / total;
    const at::Tensor excess = mask_ - per_row(share, maps.dim());
    return here.pullback(maps.sign() * (raise_ ? -excess : excess));
  }

  void keep(const at::Tensor& rows) override { mask_ = mask_.index_select(0, rows.to(mask_.device())); }

 private:
  at::Tensor mask_;
  bool raise_;
};

}  // namespace

std::unique_ptr<Descent> share_inside(at::Tensor mask, bool raise) {
  return std::make_unique<ShareInside>(std::move(mask), raise);
}

}  // namespace holdfast::attack

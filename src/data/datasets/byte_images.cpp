#include "holdfast/data/byte_images.h"

#include <algorithm>

#include "holdfast/core/large_tensor.h"
#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"

namespace holdfast::data {

void warn_of_byte_images(const at::Tensor& inputs, const Schema& schema, const std::string& where) {
  constexpr double kHighestInUnits = 2;  // images in [0, 1], with room for augmentation and noise
  if (schema.layout.kind != Layout::Kind::kGrid || inputs.numel() == 0) return;
  double low = 0, high = 0;
  for_each_part(inputs, [&](std::int64_t begin, const at::Tensor& part) {
    const at::Tensor finite = part.nan_to_num(0, 0, 0);
    low = begin == 0 ? finite.min().item<double>() : std::min(low, finite.min().item<double>());
    high = begin == 0 ? finite.max().item<double>() : std::max(high, finite.max().item<double>());
  });
  if (!(low >= 0 && high > kHighestInUnits && high <= 255)) return;
  if (schema.range && high <= schema.range->second) return;
  log_warning("{}: pixels go from {:g} to {:g}; images are expected in [0, 1]: divide by 255, or state the range in a schema",
              where, low, high);
}

}  // namespace holdfast::data

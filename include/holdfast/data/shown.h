// Samples and maps as they are written for people: without context, and with one value for each token.
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/data/schema.h"

namespace holdfast::data {

// What is written of samples and of maps of this layout. Tokens are positions in a row.
Layout shown_layout(const Layout& layout);
Schema shown_schema(const Schema& schema);
// Rows [B, sample...] without their context; maps of another length, one value for each feature, have none.
at::Tensor without_context(const at::Tensor& rows, const Layout& layout);
// The same of maps; of a token the sum of magnitudes over its embedding.
at::Tensor shown_maps(const at::Tensor& maps, const Layout& layout);

}  // namespace holdfast::data

// What the readers of image formats share.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/core/image.h"

namespace holdfast {

// Throws kInput unless the sides that a header claims are positive and the image has at most 2^26 pixels.
void check_image_size(std::uint64_t height, std::uint64_t width, const std::string& where);

// The image with 1 or 3 channels; 0 leaves it as it is. Grey is made with the weights of ITU-R 601, as Pillow does.
Image with_channels(Image image, std::int64_t channels);

}  // namespace holdfast

#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/data/schema.h"

namespace holdfast::data {

// Warns, in one sentence, of images that look like bytes: a forgotten division by 255 makes every radius mean something else.
// Silent where the schema's range says that they are meant so, and for what is no image.
void warn_of_byte_images(const at::Tensor& inputs, const Schema& schema, const std::string& where);

}  // namespace holdfast::data

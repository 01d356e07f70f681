// Models that were tried before: a sample's logits do not depend on the others of its batch (Capabilities::known_apart).
#pragma once

#include <memory>

#include "holdfast/core/stages.h"
#include "holdfast/model/model.h"

namespace holdfast::python {

// The same model, which need not be tried again.
std::shared_ptr<Model> known_apart(std::shared_ptr<Model> model);

}  // namespace holdfast::python

// Programs as models.
#pragma once

#include <memory>

#include "holdfast/model/model.h"
#include "program.h"

namespace holdfast::model {

// The program as a Network where every operation is known, else as it is: as for TorchScript (holdfast/model/torchscript.h).
std::unique_ptr<Model> load_program(program::Program program, at::Device device, const ModelOptions& options = {});

}  // namespace holdfast::model

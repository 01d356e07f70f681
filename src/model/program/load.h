// Files with a graph as models.
#pragma once

#include <memory>

#include "holdfast/model/packing.h"
#include "program.h"

namespace holdfast::model {

// The program as a Network where every operation is known, else as it is: as for TorchScript (holdfast/model/torchscript.h).
PackedModel load_program(program::Program program, at::Device device, const ModelOptions& options, const GivenInputs& given);

}  // namespace holdfast::model

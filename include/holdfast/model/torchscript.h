// TorchScript files as models.
//
// A file is read, put in evaluation mode and frozen (a copy of it: the file's own module is not touched). When every
// operation of its graph is known, it becomes a Network, which surrogates and layer-wise explainers need; the Network
// is only trusted after it gave the file's own logits to 1e-5 on random inputs. Otherwise the module runs as it is,
// with the executor's optimisation off, so that results do not depend on the order of calls; `describe()` says why.
//
// Models here give logits in evaluation mode, so three things are put right in the copy, with a warning: dropout and batch
// statistics that tracing in training mode fixed are turned off, and a softmax, log_softmax or sigmoid at the end is cut, since
// what goes into it are the logits.
#pragma once

#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/model/model.h"

namespace holdfast::model {

// Throws kInput in one sentence: a missing, truncated or foreign file, a module that takes anything but one tensor,
// NaN or infinity in its weights (named).
std::unique_ptr<Model> load_torchscript(const std::string& path, at::Device device, const ModelOptions& options = {});

}  // namespace holdfast::model

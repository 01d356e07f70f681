// These functions find out what a script does by trying it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/model/model.h"
#include "script.h"

namespace holdfast::model::torchscript {

// Three random samples of this shape, the same ones every time, that require gradients.
at::Tensor trial_inputs(const Script& script, const std::vector<std::int64_t>& sample_shape);

// In what a network that was read from the script differs from it on these inputs, in words, or nothing: logits to 1e-5 and
// input gradients are compared.
std::string difference_from(const Script& script, const Network& network, const at::Tensor& inputs);

// Whether a script that was made for batches of one size takes others too: samples then give what they give in such batches.
bool takes_any_batch(const Script& script);

// What the script can do as it is. Where no shape of samples goes through, it is taken to have derivatives but no double
// precision.
Capabilities tried_capabilities(const Script& script);

}  // namespace holdfast::model::torchscript

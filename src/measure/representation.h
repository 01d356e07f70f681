// What a network makes of an input on the way to its logits: the values of one layer, or of all of them.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/model/model.h"

namespace holdfast::measure {

class Representation {
 public:
  // `layer`: a node's name; "last": what the last node with weights reads; "all": every node's value but the input. Throws
  // kUsage, naming `who` asks, when the model has no layers to look into or none of that name.
  Representation(const Model& model, const std::string& layer, const std::string& who);

  // [B, sample...] -> [B, values].
  at::Tensor values(const at::Tensor& inputs) const;

 private:
  const Network* network_;
  std::vector<std::size_t> nodes_;
};

}  // namespace holdfast::measure

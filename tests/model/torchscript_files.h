// The files that make_torchscript.py wrote.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/core/npy.h"
#include "holdfast/core/tensor.h"
#include "holdfast/model/torchscript.h"

namespace holdfast::model {

inline std::string torchscript_file(const std::string& name) {
  return HOLDFAST_TORCHSCRIPT_FILES "/" + name;
}

inline std::unique_ptr<Model> load_script(const std::string& name) {
  return load_torchscript(torchscript_file(name + ".pt"), at::kCPU).model;
}

// "inputs", "logits" or "gradients" as Python computed them.
inline at::Tensor stored(const std::string& name, const std::string& what) {
  return to_tensor(read_npy(torchscript_file(name + "." + what + ".npy")));
}

inline std::vector<std::string> listed(const std::string& file) {
  std::ifstream lines(torchscript_file(file));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) names.push_back(line);
  return names;
}

// The sum that make_torchscript.py differentiates.
inline at::Tensor weighted_sum(const at::Tensor& logits) {
  return (logits * at::arange(1, logits.size(1) + 1, logits.options()) / static_cast<double>(logits.size(1))).sum();
}

}  // namespace holdfast::model

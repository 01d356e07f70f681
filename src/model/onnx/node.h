// An ONNX graph without the protobuf around it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "../program/program.h"
#include "holdfast/core/raw_array.h"

namespace holdfast::model::onnx {

using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                               std::vector<std::string>, RawArray>;

struct Node {
  std::string type;  // "Conv"
  std::string name;
  std::vector<std::string> inputs, outputs;  // an empty name: left out
  std::map<std::string, Attribute> attributes;
};

struct Graph {
  std::string path;
  std::int64_t opset = 0;
  std::vector<program::Input> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, RawArray> constants;  // weights by name
  std::map<std::string, std::int64_t> ranks;  // of the values whose shape the file tells
  std::vector<Node> nodes;
};

// Every node as calls of torch's operators (translator.h). Throws kInput naming the first that is not read.
program::Program to_program(Graph graph);

}  // namespace holdfast::model::onnx

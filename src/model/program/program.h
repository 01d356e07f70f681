// A model's program as a plain list of calls: what torch.export programs and ONNX files are read into.
//
// It holds numbers and names only, so reading one runs nothing. `graph.h` turns it into a graph of torch's operators and holds
// every call against the operator's schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "holdfast/core/raw_array.h"

namespace holdfast::model::program {

struct None {};
// A value by its name.
struct Reference {
  std::string name;
};
// The device that the model is on, whichever one the file was made for.
struct OwnDevice {};

struct Argument {
  std::variant<None, Reference, std::int64_t, double, bool, std::string, ElementType, OwnDevice, std::vector<Argument>> value;
};

struct NamedArgument {
  std::string name;  // empty: by position
  Argument value;
};

// What a call gives: one value or a list of them. An empty name is a value that nobody reads.
struct Result {
  std::vector<std::string> names;
  bool is_list = false;
};

struct Call {
  std::string operation;                // "aten::linear"
  std::optional<std::string> overload;  // "" is the one without a name; nothing: the one that the arguments fit
  std::vector<NamedArgument> arguments;
  std::vector<Result> results;
  std::string where;  // for messages: "node 3 (torch.ops.aten.linear.default)"
};

struct Input {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<std::optional<std::int64_t>> sizes;  // nothing: any size
};

// A weight, or another array that the program carries.
struct Constant {
  std::string name;      // of the value in the program
  std::string own_name;  // "encoder.weight"
  bool is_parameter = false;
  RawArray array;
};

struct Output {
  std::string key;   // of a dictionary, or empty
  std::string name;  // of the value
};

struct Program {
  std::string path;
  std::string kind;  // "a torch.export program"
  std::vector<Input> inputs;
  std::vector<Constant> constants;
  std::vector<Call> calls;
  std::vector<Output> outputs;
};

}  // namespace holdfast::model::program

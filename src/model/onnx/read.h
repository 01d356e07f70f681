// ONNX files: a protobuf with a graph of operators and its weights, read into calls of torch's operators.
//
// Read are the operators that classifiers are usually made of, in the meaning that opset 7 and later give them. Weights that
// lie in other files are refused: a model file names no other file to read.
#pragma once

#include <string>

#include "../program/program.h"
#include "holdfast/core/files.h"

namespace holdfast::model::onnx {

// Throws kInput in one sentence: what is damaged, or the first operator that is not read.
program::Program read_program(const Bytes& bytes, const std::string& path);

}  // namespace holdfast::model::onnx

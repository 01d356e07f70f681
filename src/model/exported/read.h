// Programs of torch.export (.pt2): an archive with the graph as JSON and the weights as plain bytes.
//
// The archive also holds pickled parts, such as sample inputs. They are never read, and weights that are pickled are refused.
#pragma once

#include <string>

#include "../program/program.h"
#include "holdfast/core/files.h"

namespace holdfast::model::exported {

// Whether a checked archive's records are those of such a program; `name` is a record's, with its folder.
bool is_record_of_program(const std::string& name);

// Throws kInput in one sentence for what is damaged, of another version of the format, or holds more than a graph and arrays.
program::Program read_program(const Bytes& bytes, const std::string& path);

}  // namespace holdfast::model::exported

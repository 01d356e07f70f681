// Several processes that torchrun or srun has started with one command line.
#pragma once

#include <memory>
#include <string>

#include "holdfast/core/communicator.h"

namespace holdfast::cli {

// Joins the other ranks before the command starts; null for a single process. Throws kUsage for a command that one process does.
std::unique_ptr<Communicator> join_ranks(const std::string& command);

// Whether this process prints and writes: a single one, or rank 0.
inline bool leads(const std::unique_ptr<Communicator>& ranks) {
  return ranks == nullptr || ranks->leads();
}

}  // namespace holdfast::cli

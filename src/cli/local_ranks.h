// A command on all GPUs of this machine: one process for each, which share the work as torchrun's ranks do (core/rank_place.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// How many processes a command line asks for: one for each GPU with `--device cuda`, of commands that share work; 1 for all
// others and within ranks. HOLDFAST_PROCESSES says another number, on the CPU too.
int local_ranks(const std::vector<std::string>& arguments);

// Starts the same command so many times and waits for all. If one is killed, the others are ended. Returns rank 0's exit code.
int run_local_ranks(int count, char** argv);

}  // namespace holdfast::cli

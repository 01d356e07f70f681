// Counts the memory of tensors on the CPU and refuses what goes over a limit, so that running out of it is a sentence and not the
// end of the process.
#pragma once

#include <cstdint>
#include <exception>

#include "holdfast/core/memory.h"

namespace holdfast {

// From now on torch takes no more than this: an allocation beyond it throws. For the whole process: once, by a program's main.
// Mapped tensors do not count.
void limit_tensor_memory(std::int64_t bytes);

// What tensors take now, and the most that they took since the last look at the peak; 0 where nothing was limited.
std::int64_t tensor_memory();
void reset_peak_tensor_memory();
std::int64_t peak_tensor_memory();

// To be called where a failure of torch was caught: throws OutOfMemory when it is one of memory, on whatever device. What ran out
// in this thread since the last call counts, because an interpreter of models hides the type of what it caught.
void throw_if_out_of_memory(const std::exception& error);

}  // namespace holdfast

// Exceptions on their way to Python.
//
//     a mistake of the user (kUsage, kInput)      holdfast.Error, a ValueError
//     what the user's model raised                itself: the same object with its traceback
//     an interrupt                                KeyboardInterrupt
//     a bug or a failure of the machine           RuntimeError
//     what torch throws in C++                    as torch's own functions raise it
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace holdfast::python {

void bind_errors(py::module_& module);

}  // namespace holdfast::python

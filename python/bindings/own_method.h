// Methods that are written in Python: registered by name in the registries that all stages read, so that they work wherever a
// built-in one does. What Python gives is checked in python/holdfast/_extend.py; here it is called.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <torch/csrc/utils/pybind.h>

#include "holdfast/core/json.h"
#include "holdfast/core/method.h"
#include "holdfast/core/stages.h"

namespace holdfast::python {

// A Python object that may be let go on any thread.
using SharedObject = std::shared_ptr<py::object>;
SharedObject share(py::object object);

struct OwnMethod {
  MethodInfo info;
  SharedObject function;
  Json facts;  // what the kind asks for beside it: direction, evaluations, terms
};

// Python's methods are called one at a time, whatever thread asks: those of other libraries put hooks into the model. Holds the
// interpreter lock too.
class PythonTurn {
 public:
  PythonTurn();

 private:
  std::unique_lock<std::recursive_mutex> turn_;
  py::gil_scoped_acquire locked_;
};

// The options as keyword arguments. With the interpreter lock.
py::dict keywords_of(const MethodInfo& info, const Options& options);

void bind_own_methods(py::module_& module);
// One for each kind.
void extend_metrics(OwnMethod method);
void extend_explainers(OwnMethod method);
void extend_attacks(OwnMethod method);
void extend_measures(OwnMethod method);
void extend_objectives(OwnMethod method);

}  // namespace holdfast::python

#include "errors.h"

#include <regex>
#include <string>

#include <torch/csrc/Exceptions.h>

#include "holdfast/core/error.h"
#include "holdfast/core/json_error.h"

namespace holdfast::python {
namespace {

// Lives as long as the process, as Python's own exception types do.
PyObject* error_type = nullptr;

PyObject* type_for(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kInput:
      return error_type;
    case ErrorKind::kInterrupted:
      return PyExc_KeyboardInterrupt;
    case ErrorKind::kFailure:
    case ErrorKind::kBug:
      break;
  }
  return PyExc_RuntimeError;
}

// The same sentences serve the command line: where they name one of its flags, "--baseline FILE", the argument is meant.
std::string with_arguments(const std::string& message) {
  static const std::regex flag("--([a-z]+)(-([a-z]+))?( FILE| NUMBER)?");
  std::string text;
  auto behind = message.begin();
  for (std::sregex_iterator match(message.begin(), message.end(), flag), end; match != end; ++match) {
    text.append(behind, (*match)[0].first);
    text += (*match)[1].str() + ((*match)[2].matched ? "_" + (*match)[3].str() : "") + "=";
    behind = (*match)[0].second;
  }
  return text.append(behind, message.end());
}

void translate(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& own) {
    // The signal that interrupted us is still pending in Python: its handler raises KeyboardInterrupt itself.
    if (own.kind() == ErrorKind::kInterrupted && PyErr_CheckSignals() != 0) return;
    PyErr_SetString(type_for(own.kind()), with_arguments(own.what()).c_str());
  } catch (const Json::exception& wrong) {
    const std::string sentence = wrong_json_sentence(wrong);
    PyErr_SetString(sentence.empty() ? PyExc_RuntimeError : error_type,
                    sentence.empty() ? json_reason(wrong).c_str() : sentence.c_str());
  } catch (const python_error&) {  // from Python code in a backward pass: autograd carried it here
    torch::translate_exception_to_python(error);
  } catch (const c10::Error&) {
    torch::translate_exception_to_python(error);
  }
}

}  // namespace

void bind_errors(py::module_& module) {
  error_type = PyErr_NewExceptionWithDoc("holdfast.Error",
                                         "A mistake in what was asked for, in one sentence that names the value and the limit.",
                                         PyExc_ValueError, nullptr);
  if (error_type == nullptr) throw py::error_already_set();
  module.add_object("Error", py::handle(error_type));
  py::register_local_exception_translator(translate);
}

}  // namespace holdfast::python

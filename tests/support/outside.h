// What tests find outside the program: the data folder, and Python for references computed by other libraries.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace holdfast {

// A file or folder of HOLDFAST_DATA, or nothing when it is not there.
inline std::optional<std::string> test_data(const std::string& name) {
  const char* folder = std::getenv("HOLDFAST_DATA");
  if (folder == nullptr) return std::nullopt;
  const std::string path = std::string(folder) + "/" + name;
  return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

// The project's Python when it can import `module`, else nothing.
inline std::optional<std::string> python_with(const std::string& module) {
  const char* given = std::getenv("HOLDFAST_PYTHON");
  const std::string python = given != nullptr ? given : HOLDFAST_SOURCE_DIR "/.venv/bin/python";
  const std::string command = "'" + python + "' -c 'import " + module + "' 2>/dev/null";
  return std::system(command.c_str()) == 0 ? std::optional(python) : std::nullopt;
}

// Runs a script of the source tree with one argument; its exit code.
inline int run_python(const std::string& python, const std::string& script, const std::string& argument) {
  const std::string command = "'" + python + "' '" HOLDFAST_SOURCE_DIR "/" + script + "' '" + argument + "'";
  return std::system(command.c_str());
}

}  // namespace holdfast

#define SKIP_WITHOUT_DATA(variable, name)                                   \
  const auto variable##_found = ::holdfast::test_data(name);                \
  if (!variable##_found) GTEST_SKIP() << "HOLDFAST_DATA has no " << (name); \
  const std::string variable = *variable##_found

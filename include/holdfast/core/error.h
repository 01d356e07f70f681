// What goes wrong, and what the program's exit code says about it.
//
// A user's mistake throws Error with one sentence that names the value, the limit and the key or the file and line.
// A broken invariant of our own is a bug: HOLDFAST_CHECK. "The attack found nothing" is a result, not an error.
// Only main, the Python translator and worker joins catch.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace holdfast {

enum class ErrorKind {
  kUsage,        // a wrong flag, name, option or configuration key
  kInput,        // a file or array that cannot be used
  kFailure,      // the machine failed us: disk full, network down, out of memory
  kInterrupted,  // Ctrl-C or a termination signal
  kBug,          // an invariant of ours is broken
};

// The program's exit codes. kGateNotMet is a result of `audit`, never of an Error.
inline constexpr int kExitDone = 0;
inline constexpr int kExitGateNotMet = 1;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitFailure = 3;

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  ErrorKind kind() const { return kind_; }
  int exit_code() const { return kind_ == ErrorKind::kUsage || kind_ == ErrorKind::kInput ? kExitBadInput : kExitFailure; }

 private:
  ErrorKind kind_;
};

template <class... Args>
[[noreturn]] void usage_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kUsage, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void input_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kInput, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void failure(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kFailure, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void bug(const char* file, int line, const char* condition);

}  // namespace holdfast

// For what only a mistake of ours can break; never for what a user gave.
#define HOLDFAST_CHECK(condition) (static_cast<bool>(condition) ? void(0) : ::holdfast::bug(__FILE__, __LINE__, #condition))

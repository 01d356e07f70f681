// Who hears warnings and progress instead of standard error: a program that has its own way to show them, such as Python.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace holdfast {

struct ProgressReport {
  const std::string& what;
  std::int64_t done, total;            // `total` 0: not known
  std::optional<double> seconds_left;  // where it is known better than from done and total
  const std::string& note;             // what is being done now
  bool finished;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // Both may be called from any thread, one call at a time.
  virtual void warned(const std::string& message) = 0;
  // About ten times a second, and once more at the end.
  virtual void advanced(const ProgressReport& report) = 0;
};

// Null: standard error again. The listener must outlive all work that is under way.
void set_listener(std::shared_ptr<Listener> listener);
std::shared_ptr<Listener> listener();

}  // namespace holdfast

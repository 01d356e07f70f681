// Progress: on a terminal one line that is redrawn, with rate and time left; in a log a line every ten percent or
// thirty seconds, whichever is rarer. Silent under --quiet.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast {

class Progress {
 public:
  // `total` 0: not known. Unit "B" is shown in MB.
  Progress(std::string what, std::int64_t total, std::string unit = "");
  ~Progress();  // ends the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::int64_t amount = 1);  // thread-safe
  void set(std::int64_t done);            // what a first call finds done does not count for the rate
  void note(std::string text);            // shown at the end of the line: "loss 0.31"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast

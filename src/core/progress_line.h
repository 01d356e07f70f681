// What a line of progress says and when it is due: apart from clocks and terminals, so that it can be tested.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast {

struct ProgressLine {
  std::string what;
  std::string unit;        // "B" is shown in MB
  std::int64_t total = 0;  // 0: not known
  std::int64_t done = 0;
  std::int64_t before = 0;          // part of `done` that was there before the clock started, as in a resumed download
  double seconds = 0;               // since the start
  bool finished = false;            // tells the time it took instead of the time left
  bool only_share = false;          // shows neither counts nor a rate, which mean nothing where pieces differ in cost
  std::optional<double> left = {};  // seconds; what the rate gives where it is not set
  std::string note;
};

// "train: 45 % 450/1000 samples, 123 samples/s, 5 s left, loss 0.31"
std::string to_string(const ProgressLine& line);

// Whether a log gets another line: ten percent and thirty seconds since the last one have both passed.
bool log_line_due(double seconds_since_last, std::int64_t done_since_last, std::int64_t total);

}  // namespace holdfast

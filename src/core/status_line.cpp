#include "status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

namespace holdfast {
namespace {

constexpr const char* kClearLine = "\r\x1b[K";

struct Terminal {
  std::mutex mutex;
  std::string status;  // empty: none is shown
};

Terminal& terminal() {
  static Terminal instance;
  return instance;
}

// One write a line, so that lines of several processes that share a log stay whole.
void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string cut_to_width(const std::string& line) {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  // The last column stays free: some terminals wrap when it is filled.
  std::size_t columns = (known ? size.ws_col : 80U) - 1U;
  std::size_t end = 0;
  while (end < line.size()) {
    const bool starts_character = (static_cast<unsigned char>(line[end]) & 0xC0U) != 0x80U;
    if (starts_character && columns-- == 0) break;
    ++end;
  }
  return line.substr(0, end);
}

}  // namespace

bool stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

void print_line(const std::string& line) {
  Terminal& shared = terminal();
  const std::lock_guard lock(shared.mutex);
  std::fflush(stdout);  // what was printed before comes before, also where both go to one file
  if (shared.status.empty()) {
    put(line + "\n");
  } else {
    put(kClearLine + line + "\n" + shared.status);
  }
}

void show_status(const std::string& line) {
  Terminal& shared = terminal();
  const std::lock_guard lock(shared.mutex);
  shared.status = cut_to_width(line);
  put(kClearLine + shared.status);
}

void end_status() {
  Terminal& shared = terminal();
  const std::lock_guard lock(shared.mutex);
  if (!shared.status.empty()) put("\n");
  shared.status.clear();
}

}  // namespace holdfast

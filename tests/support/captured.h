// What a piece of code writes to standard error, with standard error being a file or a terminal.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

namespace holdfast {

// Runs `code` with standard error replaced by the write end; returns what the read end gave.
inline std::string captured(int read_end, int write_end, const std::function<void()>& code) {
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  dup2(write_end, STDERR_FILENO);
  close(write_end);
  std::string text;
  std::thread reader([&] {
    char buffer[4096];
    // A terminal whose last writer has gone ends with an error, a pipe with 0.
    for (ssize_t got = 0; (got = read(read_end, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(got));
  });
  code();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  reader.join();
  close(read_end);
  return text;
}

inline std::string captured_in_log(const std::function<void()>& code) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  return captured(ends[0], ends[1], code);
}

// Line ends come back as \r\n, as a terminal gets them.
inline std::string captured_on_terminal(const std::function<void()>& code, unsigned short columns = 80) {
  int master = -1, slave = -1;
  const winsize size{24, columns, 0, 0};
  if (openpty(&master, &slave, nullptr, nullptr, &size) != 0) throw std::runtime_error("no terminal");
  return captured(master, slave, code);
}

}  // namespace holdfast

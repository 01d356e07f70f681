// range_server.py, running while the object lives.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast {

class LoopbackServer {
 public:
  // Serves `folder`; see the script for the manners of doing it.
  explicit LoopbackServer(const std::string& folder) : folder_(folder) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    process_ = fork();
    if (process_ < 0) throw std::runtime_error("no process");
    if (process_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execlp("python3", "python3", HOLDFAST_SOURCE_DIR "/tests/support/range_server.py", folder.c_str(),
             static_cast<char*>(nullptr));
      _exit(127);
    }
    close(ends[1]);
    char letter = 0;
    while (read(ends[0], &letter, 1) == 1 && letter != '\n') port_ += letter;
    close(ends[0]);
    if (port_.empty()) throw std::runtime_error("range_server.py did not start");
  }
  ~LoopbackServer() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  std::string address() const { return "http://127.0.0.1:" + port_; }

  void forget() const { unlink((folder_ + ".log").c_str()); }
  // "/good/name bytes=5-" for each request so far.
  std::vector<std::string> requests() const {
    std::ifstream file(folder_ + ".log");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

 private:
  std::string folder_, port_;
  pid_t process_ = 0;
};

}  // namespace holdfast

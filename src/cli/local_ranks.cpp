#include "local_ranks.h"

#include <arpa/inet.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <torch/cuda.h>

#include "holdfast/core/error.h"
#include "holdfast/core/rank_place.h"
#include "holdfast/core/torch.h"

namespace holdfast::cli {
namespace {

// A training shares batches, not tiles: its user says so with torchrun.
constexpr std::array<std::string_view, 4> kSharesTiles{"attack", "audit", "measure", "reproduce"};
// Flags with which a command does no work that could be shared.
constexpr std::array<std::string_view, 7> kNoWork{"--help", "-h", "--plan", "--suggest", "--check", "--list", "--help-all"};

bool has(const std::vector<std::string>& arguments, std::string_view word) {
  return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
}

std::string value_of(const std::vector<std::string>& arguments, const std::string& flag) {
  std::string value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == flag && i + 1 < arguments.size()) value = arguments[i + 1];
    if (arguments[i].starts_with(flag + "=")) value = arguments[i].substr(flag.size() + 1);
  }
  return value;
}

// A port that nobody listens at now.
int free_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool found = listener >= 0 && ::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const std::string reason = std::strerror(errno);
  if (listener >= 0) ::close(listener);
  if (!found) failure("no port was found at which the processes can meet: {}", reason);
  return ntohs(address.sin_port);
}

std::vector<pid_t> started;  // read by the signal handler

void pass_on(int signal) {
  for (const pid_t process : started) ::kill(process, signal);
}

pid_t start(char** argv, int rank, int count, int port) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::string_view(*variable).starts_with("HOLDFAST_PROCESSES=")) continue;
    environment.emplace_back(*variable);
  }
  const auto add = [&](const char* name, const std::string& value) { environment.push_back(name + ("=" + value)); };
  add("RANK", std::to_string(rank));
  add("LOCAL_RANK", std::to_string(rank));
  add("WORLD_SIZE", std::to_string(count));
  add("LOCAL_WORLD_SIZE", std::to_string(count));
  add("MASTER_ADDR", "127.0.0.1");
  add("MASTER_PORT", std::to_string(port));
  add("TORCHELASTIC_RUN_ID", fmt::format("local-{}", ::getpid()));
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  pid_t process = 0;
  if (const int error = posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, argv, variables.data()); error != 0)
    failure("a process could not be started: {}", std::strerror(error));
  return process;
}

}  // namespace

int local_ranks(const std::vector<std::string>& arguments) {
  const bool shares = arguments.size() > 1 &&
                      std::find(kSharesTiles.begin(), kSharesTiles.end(), arguments[1]) != kSharesTiles.end() &&
                      (arguments[1] != "measure" || !value_of(arguments, "--model").empty());
  const bool works = std::none_of(kNoWork.begin(), kNoWork.end(), [&](std::string_view flag) { return has(arguments, flag); });
  if (!shares || !works || rank_place().is_one_of_many()) return 1;
  if (const char* wanted = std::getenv("HOLDFAST_PROCESSES"); wanted != nullptr && *wanted != '\0') {
    constexpr int kMost = 1024;
    int count = 0;
    const auto [end, status] = std::from_chars(wanted, wanted + std::strlen(wanted), count);
    if (status != std::errc() || *end != '\0' || count < 1 || count > kMost)
      usage_error("HOLDFAST_PROCESSES={}: must be a whole number of 1 to {}", wanted, kMost);
    return count;
  }
  if (value_of(arguments, "--device") != "cuda" || !at::hasCUDA()) return 1;
  return std::max(1, static_cast<int>(torch::cuda::device_count()));
}

int run_local_ranks(int count, char** argv) {
  const int port = free_port();
  for (int rank = 0; rank < count; ++rank) started.push_back(start(argv, rank, count, port));
  std::signal(SIGINT, SIG_IGN);  // a terminal sends it to all of them
  std::signal(SIGTERM, pass_on);
  const pid_t first = started.front();
  int exit_code = kExitFailure;
  for (std::size_t left = started.size(); left > 0;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) break;
    --left;
    sigset_t terminations, before;
    sigemptyset(&terminations);
    sigaddset(&terminations, SIGTERM);
    sigprocmask(SIG_BLOCK, &terminations, &before);
    std::erase(started, ended);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (ended == first && WIFEXITED(status)) exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) pass_on(SIGTERM);
  }
  return exit_code;
}

}  // namespace holdfast::cli

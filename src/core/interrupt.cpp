#include "holdfast/core/interrupt.h"

#include <atomic>
#include <csignal>

#include "holdfast/core/error.h"

namespace holdfast {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch nothing else");

void handle(int signal) {
  if (!requested.exchange(true)) return;
  // The second one: as if the signal had never been caught. It is delivered when this handler returns.
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A limit on file sizes is then reported by the write that meets it, in a sentence.
  std::signal(SIGXFSZ, SIG_IGN);
}

void request_interrupt() {
  requested = true;
}
void clear_interrupt() {
  requested = false;
}
bool interrupted() {
  return requested;
}

void throw_if_interrupted() {
  if (interrupted()) throw Error(ErrorKind::kInterrupted, "interrupted");
}

}  // namespace holdfast

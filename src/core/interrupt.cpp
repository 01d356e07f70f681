#include "holdfast/core/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <string_view>

#include "holdfast/core/error.h"

namespace holdfast {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch nothing else");

// Seconds until somebody must have looked, and from then on until the work must have ended.
constexpr unsigned kPatience = 1, kGrace = 10;
std::atomic<bool> seen{false}, granted{false};
char note[256] = "interrupted\n";

// Does only what a signal handler may do.
void end_now(int) {
  if (seen && !granted.exchange(true)) {
    ::alarm(kGrace);
    return;
  }
  const ssize_t ignored = ::write(STDERR_FILENO, note, std::strlen(note));
  (void)ignored;
  ::_exit(kExitFailure);
}

// Files are mapped: one that is cut short while it is read, or a disk that fails, comes as a signal.
void end_of_mapped_file(int) {
  constexpr std::string_view kSentence = "\nerror: a file that is read was cut short, or a disk failed\n";
  const ssize_t ignored = ::write(STDERR_FILENO, kSentence.data(), kSentence.size());
  (void)ignored;
  ::_exit(kExitFailure);
}

void handle(int signal) {
  if (!requested.exchange(true)) {
    ::alarm(kPatience);
    return;
  }
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
  std::signal(SIGALRM, end_now);
  std::signal(SIGBUS, end_of_mapped_file);
  // A limit on file sizes is then reported by the write that meets it, in a sentence.
  std::signal(SIGXFSZ, SIG_IGN);
}

void set_interrupt_note(const std::string& text) {
  const std::string line = "\nerror: interrupted; " + text + "\n";
  note[line.copy(note, sizeof(note) - 1)] = '\0';
}

void request_interrupt() {
  requested = true;
}
void clear_interrupt() {
  requested = false;
}
bool interrupted() {
  if (requested) seen = true;
  return requested;
}

void throw_if_interrupted() {
  if (interrupted()) throw Error(ErrorKind::kInterrupted, "interrupted");
}

}  // namespace holdfast

#include "work.h"

#include <csignal>

#include <unistd.h>

#include "holdfast/core/interrupt.h"

namespace holdfast::python {
namespace {

// Only the main thread touches these: a model may call us again while we call it.
int depth = 0;
struct sigaction before {};

void handle(int signal) {
  request_interrupt();
  before.sa_handler(signal);
}

// Must be called with the interpreter lock.
bool ctrl_c_is_ours() {
  if (gettid() != getpid()) return false;
  // The module beneath Python's `signal`, whose own functions look every answer up among enumerations first.
  const py::module_ signals = py::module_::import("_signal");
  return signals.attr("getsignal")(SIGINT).is(signals.attr("default_int_handler"));
}

}  // namespace

InterruptScope::InterruptScope() : active_(ctrl_c_is_ours()) {
  if (!active_ || depth++ > 0) return;
  clear_interrupt();
  struct sigaction action {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, nullptr, &before);
  sigaction(SIGINT, &action, nullptr);
}

InterruptScope::~InterruptScope() {
  if (!active_ || --depth > 0) return;
  sigaction(SIGINT, &before, nullptr);
  clear_interrupt();
}

}  // namespace holdfast::python

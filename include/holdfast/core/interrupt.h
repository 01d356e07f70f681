// Ctrl-C and SIGTERM ask the work to stop; loops look and leave with an Error of kind kInterrupted, so that what was
// finished is kept. A second signal ends the program at once.
#pragma once

namespace holdfast {

void catch_signals();      // called once by main
void request_interrupt();  // as a signal does; for tests
void clear_interrupt();    // for tests
bool interrupted();
void throw_if_interrupted();  // Error kInterrupted

}  // namespace holdfast

// Ctrl-C and SIGTERM ask the work to stop; loops look and leave with an Error of kind kInterrupted, so that what was
// finished is kept. Where nothing looks within a second the program says what is kept and ends; every file is written under
// another name first, so that none is left half. A second signal ends the program at once.
#pragma once

#include <string>

namespace holdfast {

void catch_signals();  // called once by main
// What an interrupt leaves behind and how to go on, for the sentence of a program that ends by itself.
void set_interrupt_note(const std::string& note);
void request_interrupt();  // as a signal does; for tests
void clear_interrupt();    // for tests
bool interrupted();
void throw_if_interrupted();  // Error kInterrupted

}  // namespace holdfast

// The one line at the bottom of a terminal that progress redraws, and whole lines printed above it. Both go to standard
// error; calls from several threads do not mix.
#pragma once

#include <string>

namespace holdfast {

// This is asked each time, because standard error may be redirected.
bool stderr_is_terminal();

// Prints a whole line; a status line that is shown moves below it.
void print_line(const std::string& line);

// Draws the status line in place of the one that is shown, cut to the terminal's width.
void show_status(const std::string& line);

// Leaves the status line as it stands and goes on below it.
void end_status();

}  // namespace holdfast

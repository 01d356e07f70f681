#include "page.h"

// The assembler includes the file as it is: compilers take seconds over an array of this size.
__asm__(
    ".section .rodata\n"
    ".global holdfast_page_begin\n"
    ".global holdfast_page_end\n"
    "holdfast_page_begin:\n"
    ".incbin \"" HOLDFAST_PAGE_FILE
    "\"\n"
    "holdfast_page_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char holdfast_page_begin[];
extern const char holdfast_page_end[];
}

namespace holdfast::report {

std::string_view page_script() {
  return {holdfast_page_begin, static_cast<std::size_t>(holdfast_page_end - holdfast_page_begin)};
}

}  // namespace holdfast::report

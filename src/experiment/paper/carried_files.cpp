// The files of configs/r2et and configs/lens, as bytes of this program. The build lists them in HOLDFAST_CARRIED_FILES, one
// CARRIED_FILE(name, path) a line. The assembler includes each file as it is, before a table of their names and ends.
#include <cstring>
#include <string_view>

#include "holdfast/core/error.h"
#include "plan.h"

#define CARRIED_FILE(name, path)          \
  "1: .asciz \"" name                     \
  "\"\n"                                  \
  "2: .incbin \"" path                    \
  "\"\n"                                  \
  "3: .pushsection .data.rel.ro,\"aw\"\n" \
  ".quad 1b, 2b, 3b\n"                    \
  ".popsection\n"

__asm__(
    ".pushsection .data.rel.ro,\"aw\"\n"
    ".balign 8\n"
    ".global holdfast_carried_files\n"
    "holdfast_carried_files:\n"
    ".popsection\n"
    ".pushsection .rodata\n"
#include HOLDFAST_CARRIED_FILES
    ".popsection\n"
    ".pushsection .data.rel.ro,\"aw\"\n"
    ".quad 0, 0, 0\n"
    ".popsection\n");

#undef CARRIED_FILE

namespace {

struct CarriedFile {
  const char *name, *begin, *end;
};

}  // namespace

extern "C" const CarriedFile holdfast_carried_files[];  // ends with a null name

namespace holdfast::experiment::paper {

std::string carried_file(const std::string& path) {
  std::vector<std::string> known;
  for (const CarriedFile* file = holdfast_carried_files; file->name != nullptr; ++file) {
    if (path == file->name) return std::string(file->begin, file->end);
    if (path.ends_with("/paper.toml") && std::string_view(file->name).ends_with("/paper.toml")) known.emplace_back(file->name);
  }
  usage_error("the program carries no file configs/{}{}", path, known.empty() ? "" : suggestion(path, known));
}

}  // namespace holdfast::experiment::paper

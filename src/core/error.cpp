#include "holdfast/core/error.h"

namespace holdfast {

void bug(const char* file, int line, const char* condition) {
  // The compiler's path starts with the folder of whoever built it.
  std::string place = file;
  for (const char* root : {"/src/", "/include/"}) {
    if (const std::size_t at = place.rfind(root); at != std::string::npos) place.erase(0, at + 1);
  }
  throw Error(ErrorKind::kBug, fmt::format("this is a bug in holdfast, please report it: {} ({}:{})", condition, place, line));
}

}  // namespace holdfast

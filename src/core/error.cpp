#include "holdfast/core/error.h"

namespace holdfast {

void bug(const char* file, int line, const char* condition) {
  throw Error(ErrorKind::kBug, fmt::format("this is a bug in holdfast, please report it: {} ({}:{})", condition, file, line));
}

}  // namespace holdfast
